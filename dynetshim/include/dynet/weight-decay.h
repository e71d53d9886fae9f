/// \file
/// L2WeightDecay: one factor for all parameters of a model instead of a pass over them at every
/// update. The engine applies the factor where parameters are read.
#ifndef DYNET_WEIGHT_DECAY_H
#define DYNET_WEIGHT_DECAY_H

#include <cstdint>
#include <memory>

namespace dynet {

class Engine;

/// The weight decay of a ParameterCollection. Each update multiplies the factor by 1-lambda. A
/// factor that it leaves below 0.25 is multiplied into the values, and begins again with 1.
///
/// A call that changes the factor waits for the batches in flight. Graphs read the new factor from
/// their next evaluation on.
struct L2WeightDecay {
  /// A decay of lambda, 0 or more, and a factor of 1.
  explicit L2WeightDecay(float lambda = 1e-6f) : lambda_(0), factor_(1), collection_(0) {
    set_lambda(lambda);
  }
  ///@{
  /// Copies the decay and the present factor. Each object changes for itself then.
  L2WeightDecay(const L2WeightDecay &o);
  L2WeightDecay &operator=(const L2WeightDecay &o);
  ///@}
  /// Changes the decay from the next update on. Negative: std::domain_error. 1 or more:
  /// std::invalid_argument, at the latest when the first parameter is added.
  void set_lambda(float lambda);
  /// The decay.
  float get_lambda() const { return lambda_; }
  /// The factor that stored values are multiplied by when they are read; 1 at first. Waits for the
  /// batches in flight.
  float current_weight_decay() const;
  /// Lets the factor fall as num_updates updates would, without rescaling. A factor of 0:
  /// std::invalid_argument, and it stays as it was.
  void update_weight_decay(unsigned num_updates = 1);
  /// Whether the factor is below 0.25, where DyNet's trainers multiply it into the values.
  bool parameters_need_rescaled() const { return current_weight_decay() < 0.25f; }
  /// Makes the factor 1, without DyNet's message. Stored values stay: multiply them by the factor
  /// before, or call Trainer::rescale_and_reset_weight_decay(), which does both.
  void reset_weight_decay();
  /// The number of the engine's collection, which is made when it is first needed. Not DyNet's.
  /// Before initialize(): std::invalid_argument.
  uint32_t collection();

private:
  void set_factor(float factor);

  float lambda_;
  float factor_; // while there is no engine_
  uint32_t collection_;
  std::shared_ptr<Engine> engine_; // null: not made yet
};

} // namespace dynet
#endif
