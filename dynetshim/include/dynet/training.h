// Trainers: update rules over the parameters of a collection. Fields may be changed at
// any time and count from the next update on.
#ifndef DYNET_TRAINING_H
#define DYNET_TRAINING_H

#include <iosfwd>
#include <memory>
#include <vector>

#include "dynet/model.h"

namespace dynet {

class Trainer {
public:
  virtual ~Trainer();

  // Applies the gradients to the parameters that are updated, and clears those
  // gradients. A norm that is NaN or infinite: std::runtime_error, nothing changed.
  virtual void update();
  // Does nothing but warn, as in DyNet; divide learning_rate instead.
  void update_epoch(real r = 1.0);
  // Clears the rule's state; hyper-parameters and `updates` stay.
  void restart();
  void restart(real lr);
  // "[lr=... clips=... updates=...] " to std::cerr, counts since the last status().
  void status();

  real learning_rate;
  bool clipping_enabled; // scale gradients down to a global norm of clip_threshold
  real clip_threshold;
  real clips, updates;
  real clips_since_status, updates_since_status;
  bool sparse_updates_enabled; // of tables, only rows with a gradient

  ParameterCollection *model;

  // For vpps::handle: the engine's trainer, brought up to date with the fields and with
  // parameters made since, and the bookkeeping of an update done by vpps_fb.
  vpps_trainer *engine_trainer();
  void updated_by_engine();

protected:
  Trainer(ParameterCollection &m, real learning_rate);
  // The engine's rule and its hyper-parameters.
  virtual void describe(vpps_trainer_options &options) const = 0;

private:
  Trainer(const Trainer &);
  Trainer &operator=(const Trainer &);
  void tell_updated(ParameterStorageBase &p);

  ParameterCollection own_; // keeps the parameters alive
  std::shared_ptr<Engine> engine_;
  vpps_trainer *trainer_;
  size_t parameters_, tables_; // how many the engine's trainer knows
  vpps_trainer_options sent_;
};

// p -= learning_rate * g, g clipped.
class SimpleSGDTrainer : public Trainer {
public:
  explicit SimpleSGDTrainer(ParameterCollection &m, real learning_rate = 0.1)
      : Trainer(m, learning_rate) {}

protected:
  void describe(vpps_trainer_options &options) const override;
};

} // namespace dynet
#endif
