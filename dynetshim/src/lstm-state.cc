// What LSTM builders have in common: states by step and layer.
#include "dynet/lstm-state.h"

#include "builders.h"

namespace dynet {

LSTMStates::LSTMStates() : has_initial_state(false), hid(0) {}

LSTMStates::LSTMStates(unsigned layers, unsigned hidden_dim, ParameterCollection &model,
                       const char *name)
    : HiddenStates(layers, model, name), has_initial_state(false), hid(hidden_dim) {}

void LSTMStates::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  if (!h_0.empty() && h_0.size() != 2 * layers)
    throw std::invalid_argument("start_new_sequence: needs " + std::to_string(2 * layers) +
                                " expressions (all cells, then all hidden vectors), got " +
                                std::to_string(h_0.size()));
  h.clear();
  c.clear();
  has_initial_state = !h_0.empty();
  if (has_initial_state) {
    c0.assign(h_0.begin(), h_0.begin() + layers);
    h0.assign(h_0.begin() + layers, h_0.end());
  }
}

bool LSTMStates::before(int prev, unsigned layer, Expression &h_prev, Expression &c_prev) const {
  if (prev >= 0) {
    h_prev = h[static_cast<size_t>(prev)][layer];
    c_prev = c[static_cast<size_t>(prev)][layer];
  } else if (has_initial_state) {
    h_prev = h0[layer];
    c_prev = c0[layer];
  }
  return prev >= 0 || has_initial_state;
}

Expression LSTMStates::made(const std::vector<Expression> &cells,
                            const std::vector<Expression> &hidden) {
  c.push_back(cells);
  h.push_back(hidden);
  return h.back().back();
}

std::vector<Expression>
LSTMStates::missing(const std::vector<std::vector<Expression>> &steps) const {
  if (!steps.empty())
    return steps.back();
  std::vector<Expression> none;
  for (unsigned i = 0; i < layers; ++i)
    none.push_back(zeros(*_cg, {hid}));
  return none;
}

Expression LSTMStates::set_h_impl(int, const std::vector<Expression> &h_new) {
  check_count("set_h", h_new.size(), layers, layers);
  return made(missing(c), h_new);
}

Expression LSTMStates::set_s_impl(int, const std::vector<Expression> &s_new) {
  check_count("set_s", s_new.size(), layers, 2 * layers);
  const std::vector<Expression> cells(s_new.begin(), s_new.begin() + layers);
  if (s_new.size() == layers)
    return made(cells, missing(h));
  return made(cells, std::vector<Expression>(s_new.begin() + layers, s_new.end()));
}

std::vector<Expression> LSTMStates::final_s() const {
  std::vector<Expression> s = c.empty() ? c0 : c.back(), ht = final_h();
  s.insert(s.end(), ht.begin(), ht.end());
  return s;
}

std::vector<Expression> LSTMStates::get_s(RNNPointer i) const {
  std::vector<Expression> s = i < 0 ? c0 : c.at(static_cast<size_t>(i)), ht = get_h(i);
  s.insert(s.end(), ht.begin(), ht.end());
  return s;
}

} // namespace dynet
