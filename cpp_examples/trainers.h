// DyNet's trainers by name.
#ifndef VPPS_EXAMPLES_TRAINERS_H
#define VPPS_EXAMPLES_TRAINERS_H

#include <dynet/training.h>

#include <memory>
#include <stdexcept>
#include <string>

// rate 0: the trainer's own default.
inline std::unique_ptr<dynet::Trainer> make_trainer(const std::string &name,
                                                    dynet::ParameterCollection &m, float rate) {
  std::unique_ptr<dynet::Trainer> t;
  if (name == "sgd")
    t.reset(new dynet::SimpleSGDTrainer(m));
  else if (name == "cyclical")
    t.reset(rate > 0 ? new dynet::CyclicalSGDTrainer(m, rate / 10, rate)
                     : new dynet::CyclicalSGDTrainer(m));
  else if (name == "momentum")
    t.reset(new dynet::MomentumSGDTrainer(m));
  else if (name == "adagrad")
    t.reset(new dynet::AdagradTrainer(m));
  else if (name == "adadelta")
    t.reset(new dynet::AdadeltaTrainer(m));
  else if (name == "rmsprop")
    t.reset(new dynet::RMSPropTrainer(m));
  else if (name == "adam")
    t.reset(new dynet::AdamTrainer(m));
  else if (name == "amsgrad")
    t.reset(new dynet::AmsgradTrainer(m));
  else
    throw std::runtime_error("--trainer " + name +
                             " is unknown: give sgd, cyclical, momentum, "
                             "adagrad, adadelta, rmsprop, adam or amsgrad");
  if (rate > 0 && name != "cyclical") // there it goes from a tenth of this up to it
    t->learning_rate = rate;
  return t;
}

#endif
