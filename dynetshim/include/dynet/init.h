// dynet::initialize: reads DyNet's flags and ours, seeds the random generator and
// opens the engine. Must come before the first parameter.
//
//   --dynet-seed N           0 (the default): from the system
//   --dynet-weight-decay L   of every ParameterCollection made afterwards
//   --dynet-devices CPU|GPU:k, --dynet-gpus N, --vpps-device cpu|cuda[:n]|auto
//   --dynet-mem, --dynet-autobatch, --dynet-profiling  accepted, without effect
//
// '-' and '_' are the same, values come after a space or '='. Flags read are taken out
// of argv, others stay. The device is, in this order: the flag, the environment
// variable VPPS_DEVICE, auto (the first GPU, else the CPU).
#ifndef DYNET_INIT_H
#define DYNET_INIT_H

#include <string>
#include <vector>

#include "dynet/globals.h"

#define VPPS_BUNDLED_DYNET 1

namespace dynet {

struct DynetParams {
  DynetParams();
  unsigned random_seed;
  std::string mem_descriptor;
  float weight_decay; // in [0,1)
  int autobatch;
  int profiling;
  bool shared_parameters;
  bool ngpus_requested, ids_requested, cpu_requested;
  int requested_gpus;
  std::vector<int> gpu_mask;
  std::string vpps_device; // "": VPPS_DEVICE, else "auto"
};

// A wrong value: std::invalid_argument.
DynetParams extract_dynet_params(int &argc, char **&argv, bool shared_parameters = false);
// A second call warns and does nothing. A device that cannot be opened:
// std::runtime_error saying why.
void initialize(DynetParams &params);
void initialize(int &argc, char **&argv, bool shared_parameters = false);
// Lets go of the engine; initialize may be called again.
void cleanup();
// Seeds rndeng and the random operations; 0: from the system.
void reset_rng(unsigned seed);

} // namespace dynet
#endif
