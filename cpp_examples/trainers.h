// DyNet's trainers by name.
#ifndef VPPS_EXAMPLES_TRAINERS_H
#define VPPS_EXAMPLES_TRAINERS_H

#include <dynet/training.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct trainer_kind {
  const char *name;
  dynet::Trainer *(*make)(dynet::ParameterCollection &);
};

template <class Trainer> dynet::Trainer *new_trainer(dynet::ParameterCollection &m) {
  return new Trainer(m);
}

inline const std::vector<trainer_kind> &trainer_kinds() {
  static const std::vector<trainer_kind> kinds = {
      {"sgd", new_trainer<dynet::SimpleSGDTrainer>},
      {"cyclical", new_trainer<dynet::CyclicalSGDTrainer>},
      {"momentum", new_trainer<dynet::MomentumSGDTrainer>},
      {"adagrad", new_trainer<dynet::AdagradTrainer>},
      {"adadelta", new_trainer<dynet::AdadeltaTrainer>},
      {"rmsprop", new_trainer<dynet::RMSPropTrainer>},
      {"adam", new_trainer<dynet::AdamTrainer>},
      {"amsgrad", new_trainer<dynet::AmsgradTrainer>},
  };
  return kinds;
}

inline std::vector<std::string> trainer_names() {
  std::vector<std::string> names;
  for (const trainer_kind &k : trainer_kinds())
    names.push_back(k.name);
  return names;
}

// rate 0: the trainer's own default.
inline std::unique_ptr<dynet::Trainer> make_trainer(const std::string &name,
                                                    dynet::ParameterCollection &m, float rate) {
  if (name == "cyclical" && rate > 0) // goes from a tenth of the rate up to it
    return std::unique_ptr<dynet::Trainer>(new dynet::CyclicalSGDTrainer(m, rate / 10, rate));
  for (const trainer_kind &k : trainer_kinds())
    if (name == k.name) {
      std::unique_ptr<dynet::Trainer> t(k.make(m));
      if (rate > 0)
        t->learning_rate = rate;
      return t;
    }
  throw std::runtime_error("no trainer has the name " + name);
}

#endif
