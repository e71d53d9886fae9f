// Moving averages of parameters, kept on the host.
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "dynet/training.h"

namespace dynet {

std::ostream &operator<<(std::ostream &os, const MovingAverage &average) {
  static const char *const names[] = {"None", "Cumulative", "Exponential"};
  return os << names[static_cast<int>(average)];
}

std::istream &operator>>(std::istream &is, MovingAverage &average) {
  std::string name;
  is >> name;
  if (name == "None")
    average = MovingAverage::None;
  else if (name == "Cumulative")
    average = MovingAverage::Cumulative;
  else if (name == "Exponential")
    average = MovingAverage::Exponential;
  else
    throw std::runtime_error("'" + name +
                             "' is no moving average: None, Cumulative or Exponential");
  return is;
}

void Trainer::average_over(MovingAverage mode, float beta, unsigned update_freq) {
  if (updates > 0)
    throw std::runtime_error("a moving average must be chosen before the first update");
  if (update_freq == 0)
    throw std::runtime_error("a moving average needs an update frequency above 0");
  ma_mode = mode;
  ema_beta = beta;
  ma_update_freq = update_freq;
}

void Trainer::exponential_moving_average(float beta, unsigned update_freq) {
  average_over(MovingAverage::Exponential, beta, update_freq);
}

void Trainer::cumulative_moving_average(unsigned update_freq) {
  average_over(MovingAverage::Cumulative, ema_beta, update_freq);
}

namespace {

// Calls f(storage, its shadow's tensor) for those that have a shadow.
template <class F>
void each(const ParameterCollection &m, std::vector<ShadowParameters> &p,
          std::vector<ShadowLookupParameters> &lp, F f) {
  for (size_t i = 0; i < p.size(); ++i)
    f(*m.unexposed_parameters()[i], p[i].h);
  for (size_t i = 0; i < lp.size(); ++i)
    f(*m.unexposed_tables()[i], lp[i].all_h);
}

void write(ParameterStorageBase &p, const Tensor &values) {
  p.write(VPPS_VALUES, 0, values.v, values.d.size());
}

} // namespace

void Trainer::shadow(std::vector<ShadowParameters> &p,
                     std::vector<ShadowLookupParameters> &lp) const {
  allocate_shadow_parameters(own_, static_cast<unsigned>(p.size()), p);
  allocate_shadow_lookup_parameters(own_, static_cast<unsigned>(lp.size()), lp);
}

// The stored values count, without the factor of the weight decay.
void Trainer::average() {
  shadow(ma_p, ma_lp);
  swap_params_to_weights();
  const float n = static_cast<float>(ma_updates);
  each(own_, ma_p, ma_lp, [&](ParameterStorageBase &p, Tensor &average) {
    const std::vector<float> values = p.read(VPPS_VALUES);
    for (size_t i = 0; i < values.size(); ++i)
      average.v[i] = ma_mode == MovingAverage::Cumulative
                         ? (n * average.v[i] + values[i]) / (n + 1)
                         : ema_beta * average.v[i] + (1 - ema_beta) * values[i];
  });
  ++ma_updates;
}

void Trainer::swap_params_to_moving_average(bool save_weights, bool bias_correction) {
  if (ma_mode == MovingAverage::None)
    throw std::runtime_error("there is no moving average: call exponential_moving_average or "
                             "cumulative_moving_average before the first update");
  if (ma_updates == 0)
    throw std::runtime_error("the moving average has no update yet: call update first");
  if (ma_params_swapped)
    return;
  ma_params_swapped = true;
  ma_params_saved = save_weights;
  shadow(ma_p, ma_lp);
  if (save_weights) {
    shadow(ma_saved_p, ma_saved_lp);
    each(own_, ma_saved_p, ma_saved_lp, [](ParameterStorageBase &p, Tensor &saved) {
      const std::vector<float> values = p.read(VPPS_VALUES);
      std::copy(values.begin(), values.end(), saved.v);
    });
  }
  float factor = 1;
  if (ma_mode == MovingAverage::Exponential && bias_correction)
    factor = 1.f / (1.f - static_cast<float>(std::pow(ema_beta, ma_updates)));
  each(own_, ma_p, ma_lp, [&](ParameterStorageBase &p, Tensor &average) {
    std::vector<float> values = as_scale_vector(average, factor);
    p.write(VPPS_VALUES, 0, values.data(), values.size());
  });
}

void Trainer::swap_params_to_weights() {
  if (!ma_params_swapped)
    return;
  if (!ma_params_saved)
    throw std::runtime_error("the weights were not saved: call swap_params_to_moving_average with "
                             "save_weights = true");
  ma_params_swapped = false;
  each(own_, ma_saved_p, ma_saved_lp,
       [](ParameterStorageBase &p, Tensor &saved) { write(p, saved); });
}

} // namespace dynet
