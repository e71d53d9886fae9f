// Which of the engine's update rules a DyNet trainer is, and its hyper-parameters.
#ifndef VPPS_INSTALLED_RULES_HPP
#define VPPS_INSTALLED_RULES_HPP

#include <dynet/training.h>

#include <typeinfo>

#include "reveal.hpp"
#include "vpps.h"

namespace vpps {
namespace installed {

VPPS_REVEAL(MomentumSGDTrainer, dynet::real, momentum)
VPPS_REVEAL(AdagradTrainer, dynet::real, epsilon)
VPPS_REVEAL(AdadeltaTrainer, dynet::real, epsilon)
VPPS_REVEAL(AdadeltaTrainer, dynet::real, rho)
VPPS_REVEAL(RMSPropTrainer, dynet::real, epsilon)
VPPS_REVEAL(RMSPropTrainer, dynet::real, rho)
VPPS_REVEAL(AdamTrainer, float, beta_1)
VPPS_REVEAL(AdamTrainer, float, beta_2)
VPPS_REVEAL(AdamTrainer, float, epsilon)
VPPS_REVEAL(AmsgradTrainer, float, beta_1)
VPPS_REVEAL(AmsgradTrainer, float, beta_2)
VPPS_REVEAL(AmsgradTrainer, float, epsilon)

VPPS_REVEAL(EGTrainer, dynet::real, momentum)
VPPS_REVEAL(EGTrainer, bool, isCyclical)
typedef void step();
VPPS_REVEAL(CyclicalSGDTrainer, step, cyclic_update_eta)
VPPS_REVEAL(EGTrainer, step, cyclic_update_eta)

// False: the engine has no such rule.
inline bool describe(const dynet::Trainer &t, vpps_trainer_options &o) {
#define VPPS_OF(Class, name) VPPS_HIDDEN(static_cast<const dynet::Class &>(t), Class, name)
  const std::type_info &type = typeid(t);
  if (type == typeid(dynet::SimpleSGDTrainer) || type == typeid(dynet::CyclicalSGDTrainer)) {
    o.rule = VPPS_RULE_SGD;
  } else if (type == typeid(dynet::MomentumSGDTrainer)) {
    o.rule = VPPS_RULE_MOMENTUM;
    o.momentum = VPPS_OF(MomentumSGDTrainer, momentum);
  } else if (type == typeid(dynet::AdagradTrainer)) {
    o.rule = VPPS_RULE_ADAGRAD;
    o.epsilon = VPPS_OF(AdagradTrainer, epsilon);
  } else if (type == typeid(dynet::AdadeltaTrainer)) {
    o.rule = VPPS_RULE_ADADELTA;
    o.epsilon = VPPS_OF(AdadeltaTrainer, epsilon);
    o.rho = VPPS_OF(AdadeltaTrainer, rho);
  } else if (type == typeid(dynet::RMSPropTrainer)) {
    o.rule = VPPS_RULE_RMSPROP;
    o.epsilon = VPPS_OF(RMSPropTrainer, epsilon);
    o.rho = VPPS_OF(RMSPropTrainer, rho);
  } else if (type == typeid(dynet::AdamTrainer)) {
    o.rule = VPPS_RULE_ADAM;
    o.beta_1 = VPPS_OF(AdamTrainer, beta_1);
    o.beta_2 = VPPS_OF(AdamTrainer, beta_2);
    o.epsilon = VPPS_OF(AdamTrainer, epsilon);
  } else if (type == typeid(dynet::AmsgradTrainer)) {
    o.rule = VPPS_RULE_AMSGRAD;
    o.beta_1 = VPPS_OF(AmsgradTrainer, beta_1);
    o.beta_2 = VPPS_OF(AmsgradTrainer, beta_2);
    o.epsilon = VPPS_OF(AmsgradTrainer, epsilon);
  } else if (type == typeid(dynet::EGTrainer)) {
    o.rule = VPPS_RULE_EG;
    o.momentum = VPPS_OF(EGTrainer, momentum);
  } else {
    return false;
  }
#undef VPPS_OF
  return true;
}

// What an update does beside the rule: a cyclical learning rate moves on.
inline void after_update(dynet::Trainer &t) {
  if (typeid(t) == typeid(dynet::CyclicalSGDTrainer)) {
    VPPS_HIDDEN(static_cast<dynet::CyclicalSGDTrainer &>(t), CyclicalSGDTrainer, cyclic_update_eta)
    ();
  } else if (typeid(t) == typeid(dynet::EGTrainer)) {
    dynet::EGTrainer &eg = static_cast<dynet::EGTrainer &>(t);
    if (VPPS_HIDDEN(eg, EGTrainer, isCyclical))
      VPPS_HIDDEN(eg, EGTrainer, cyclic_update_eta)();
  }
}

// Whether a trainer keeps moving averages of parameters; DyNet 2.1's have none.
template <class T> auto averages(T &t, int) -> decltype(t.moving_average(), true) {
  return t.moving_average() != decltype(t.moving_average())();
}
template <class T> bool averages(T &, long) { return false; }

} // namespace installed
} // namespace vpps
#endif
