/// \file
/// L2WeightDecay: one factor for all parameters of a model instead of a pass over them at every
/// update. The engine applies the factor where parameters are read.
#ifndef DYNET_WEIGHT_DECAY_H
#define DYNET_WEIGHT_DECAY_H

#include <cstdint>
#include <memory>

namespace dynet {

class Engine;

/// The weight decay of a ParameterCollection. Each update multiplies the factor by 1-lambda.
struct L2WeightDecay {
  /// A decay of lambda, 0 or more.
  explicit L2WeightDecay(float lambda = 1e-6f) : lambda_(0), collection_(0) { set_lambda(lambda); }
  /// Changes the decay from the next update on. Negative: std::domain_error. 1 or more:
  /// std::invalid_argument, at the latest when the first parameter is added.
  void set_lambda(float lambda);
  /// The decay.
  float get_lambda() const { return lambda_; }
  /// The factor that stored values are multiplied by when they are read; 1 at first. Waits for the
  /// batches in flight.
  float current_weight_decay() const;
  /// The number of the engine's collection, which is made when it is first needed. Not DyNet's.
  /// Before initialize(): std::invalid_argument.
  uint32_t collection();

private:
  float lambda_;
  uint32_t collection_;
  std::shared_ptr<Engine> engine_; // null: not made yet
};

} // namespace dynet
#endif
