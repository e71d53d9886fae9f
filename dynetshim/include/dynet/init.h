/// \file
/// dynet::initialize: reads DyNet's flags and ours, seeds the random generator and opens the
/// engine. It must come before the first parameter.
///
/// | flag | meaning |
/// | --- | --- |
/// | `--dynet-seed N` | the seed; 0 (the default): from the system |
/// | `--dynet-weight-decay L` | the weight decay of every ParameterCollection made afterwards, in
/// [0,1) | | `--vpps-device cpu`, `cuda`, `cuda:N` or `auto` | the device | | `--dynet-devices CPU`
/// or `GPU:N`, `--dynet-gpus N` | the device, in DyNet's way | | `--dynet-mem`,
/// `--dynet-autobatch`, `--dynet-autobatch-debug`, `--dynet-profiling` | accepted, without effect |
/// | `--vpps-log off`, `info` or `debug` | how much is told of what happens |
/// | `--vpps-profile 1` | measures each kind of instruction, and tells at the end |
/// | `--vpps-data-parallel` | trains together with the processes that the launcher has started: see
/// vpps/parallel.hpp |
///
/// '-' and '_' are the same; values come after a space or '='. Flags that are read are taken out of
/// argv, others stay. Without a flag the environment variable VPPS_DEVICE names the device; without
/// that it is `auto`: the first GPU, else the CPU.
#ifndef DYNET_EIGEN_INIT_H
#define DYNET_EIGEN_INIT_H

#include <string>
#include <vector>

#include "dynet/globals.h"

/// Defined by these headers, not by an installed DyNet's: tells a program which of them it is
/// compiled against.
#define VPPS_BUNDLED_DYNET 1

namespace dynet {

/// The options of initialize().
struct DynetParams {
  /// The defaults: a seed from the system, no weight decay, the device of VPPS_DEVICE or auto.
  DynetParams();
  unsigned random_seed;       ///< 0: from the system; initialize() sets the one that was taken
  std::string mem_descriptor; ///< accepted, without effect: memory grows by itself
  float weight_decay;         ///< in [0,1)
  int autobatch;              ///< accepted, without effect
  int profiling;              ///< accepted, without effect
  bool shared_parameters;     ///< accepted, without effect
  ///@{
  /// DyNet's members for devices. --dynet-gpus sets ngpus_requested and requested_gpus.
  /// --dynet-devices sets ids_requested, cpu_requested and gpu_mask, and requested_gpus to the
  /// number of GPUs less one. A program may set them itself: they count if vpps_device is empty.
  bool ngpus_requested;
  bool ids_requested;
  bool cpu_requested;
  int requested_gpus;        ///< -1: not given
  std::vector<int> gpu_mask; ///< 256 numbers; not 0: the GPU of that number
  ///@}
  std::string vpps_device; ///< "cpu", "cuda", "cuda:N", "auto"; "": VPPS_DEVICE, else "auto"
  int vpps_log;            ///< a vpps_log_level; -1: VPPS_LOG
  bool vpps_profile;       ///< measure each kind of instruction; false: VPPS_PROFILE says
  bool vpps_data_parallel; ///< train together with the launcher's other processes
};

/// Reads the flags and takes them out of argv. A wrong value: std::invalid_argument.
DynetParams extract_dynet_params(int &argc, char **&argv, bool shared_parameters = false);
///@{
/// Opens the engine, seeds the generators, and prints seed and device to std::cerr. A second call
/// warns and does nothing. A wrong option: std::invalid_argument. A device that cannot be opened:
/// std::runtime_error, whose text says why.
void initialize(DynetParams &params);
inline void initialize(DynetParams &&params) { initialize(params); }
void initialize(int &argc, char **&argv, bool shared_parameters = false);
///@}
/// Lets go of the engine, which ends with the last graph, parameter and trainer. initialize() may
/// be called again.
void cleanup();
/// Seeds rndeng and the random operations of graphs; 0: from the system. Before initialize():
/// std::invalid_argument.
void reset_rng(unsigned seed);

} // namespace dynet
#endif
