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

// One vector of what an engine's trainer remembers of a parameter.
class RuleVector : public TensorSource {
public:
  RuleVector(vpps_trainer *trainer, uint32_t id, size_t size, size_t vector, size_t vectors)
      : trainer_(trainer), id_(id), size_(size), vector_(vector), vectors_(vectors) {}
  std::vector<float> read() const override;

private:
  vpps_trainer *trainer_;
  uint32_t id_;
  size_t size_, vector_, vectors_;
};

} // namespace dynet
#endif
