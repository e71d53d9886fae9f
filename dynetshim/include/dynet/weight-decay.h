// L2WeightDecay: one factor for all parameters of a collection instead of a pass over
// them at every update. The engine applies it where parameters are read.
#ifndef DYNET_WEIGHT_DECAY_H
#define DYNET_WEIGHT_DECAY_H

#include <cstdint>
#include <memory>

namespace dynet {

class Engine;

struct L2WeightDecay {
  explicit L2WeightDecay(float lambda = 1e-6f) : lambda_(0), collection_(0) { set_lambda(lambda); }
  // Negative: std::domain_error.
  void set_lambda(float lambda);
  float get_lambda() const { return lambda_; }
  // What stored values are multiplied by; 1 at first.
  float current_weight_decay() const;
  // The collection in the engine, made when first needed.
  uint32_t collection();

private:
  float lambda_;
  uint32_t collection_;
  std::shared_ptr<Engine> engine_; // null: not made yet
};

} // namespace dynet
#endif
