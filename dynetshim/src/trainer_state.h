// What an update rule remembers of each parameter, read from the engine.
#ifndef DYNETSHIM_TRAINER_STATE_H
#define DYNETSHIM_TRAINER_STATE_H

#include <cstdint>
#include <vector>

#include "dynet/training.h"

namespace dynet {

// Vectors as long as each parameter: first the dense ones, then tables.
struct RuleState {
  size_t dense, vectors;                 // dense: the number of parameters that are no tables
  std::vector<uint32_t> ids;             // [parameter]
  std::vector<size_t> sizes;             // [parameter]
  std::vector<std::vector<float>> state; // [parameter]: vectors one after the other
  uint64_t updates;                      // as the engine counts them

  // Zeros for all parameters of m, so many vectors each.
  RuleState(const ParameterCollection &m, size_t vectors_each);

  // How many vectors a rule remembers, by vpps_rule.
  static size_t vectors_of(uint32_t rule);
  // Reads, or sets, what a trainer remembers; of tables and parameters only the first ones.
  void read(vpps_trainer *trainer, size_t parameters, size_t tables);
  void write(vpps_trainer *trainer) const;
};

} // namespace dynet
#endif
