// The LSTM builders: parameters, steps, and states by step and layer.
#include "dynet/lstm.h"

#include <stdexcept>
#include <string>

namespace dynet {

VanillaLSTMBuilder::VanillaLSTMBuilder()
    : has_initial_state(false), layers(0), input_dim(0), hid(0), dropout_rate_h(0), ln_lstm(false),
      forget_bias(1), dropout_masks_valid(false), _cg(nullptr) {}

VanillaLSTMBuilder::VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                       ParameterCollection &model, bool ln_lstm, float forget_bias)
    : VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, "vanilla-lstm-builder",
                         forget_bias) {
  if (ln_lstm)
    throw std::invalid_argument("VanillaLSTMBuilder: layer normalisation (ln_lstm) is not "
                                "available in this version; pass false");
}

VanillaLSTMBuilder::VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                       ParameterCollection &model, const char *name,
                                       float forget_bias)
    : local_model(model.add_subcollection(name)), has_initial_state(false), layers(layers),
      input_dim(input_dim), hid(hidden_dim), dropout_rate_h(0), ln_lstm(false),
      forget_bias(forget_bias), dropout_masks_valid(false), _cg(nullptr) {
  for (unsigned i = 0; i < layers; ++i) {
    unsigned in = i == 0 ? input_dim : hid;
    std::vector<Parameter> layer;
    layer.push_back(local_model.add_parameters({4 * hid, in}));
    layer.push_back(local_model.add_parameters({4 * hid, hid}));
    layer.push_back(local_model.add_parameters({4 * hid}, ParameterInitConst(0.f)));
    params.push_back(layer);
  }
}

void VanillaLSTMBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  _cg = &cg;
  param_vars.assign(layers, std::vector<Expression>());
  for (unsigned i = 0; i < layers; ++i)
    for (const Parameter &p : params[i])
      param_vars[i].push_back(update ? parameter(cg, p) : const_parameter(cg, p));
}

void VanillaLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
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
  dropout_masks_valid = false;
}

void VanillaLSTMBuilder::set_dropout(float d, float d_r) {
  if (!(d >= 0 && d <= 1 && d_r >= 0 && d_r <= 1))
    throw std::invalid_argument("set_dropout: probabilities are from 0 to 1");
  dropout_rate = d;
  dropout_rate_h = d_r;
}

void VanillaLSTMBuilder::set_dropout_masks(unsigned batch_size) {
  masks.assign(layers, std::vector<Expression>());
  if (dropping())
    for (unsigned i = 0; i < layers; ++i) {
      float keep = 1 - dropout_rate, keep_h = 1 - dropout_rate_h;
      Dim x({i == 0 ? input_dim : hid}, batch_size), h({hid}, batch_size);
      masks[i].push_back(random_bernoulli(*_cg, x, keep, 1 / keep));
      masks[i].push_back(random_bernoulli(*_cg, h, keep_h, 1 / keep_h));
    }
  dropout_masks_valid = true;
}

Expression VanillaLSTMBuilder::add_input_impl(int prev, const Expression &x) {
  if (dropping() && !dropout_masks_valid)
    set_dropout_masks(x.dim().bd);
  bool has_prev = prev >= 0 || has_initial_state;
  std::vector<Expression> ht(layers), ct(layers);
  Expression in = x;
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    Expression h_prev, c_prev;
    if (has_prev) {
      h_prev = prev < 0 ? h0[l] : h[static_cast<size_t>(prev)][l];
      c_prev = prev < 0 ? c0[l] : c[static_cast<size_t>(prev)][l];
    }
    if (dropout_rate > 0)
      in = cmult(in, masks[l][0]);
    if (has_prev && dropout_rate_h > 0)
      h_prev = cmult(h_prev, masks[l][1]);

    Expression all = has_prev ? affine_transform({p[2], p[0], in, p[1], h_prev})
                              : affine_transform({p[2], p[0], in});
    Expression ai = pick_range(all, 0, hid), af = pick_range(all, hid, 2 * hid);
    Expression ao = pick_range(all, 2 * hid, 3 * hid), ag = pick_range(all, 3 * hid, 4 * hid);
    Expression i = logistic(ai);
    Expression f = logistic(forget_bias != 0 ? af + forget_bias : af);
    Expression o = logistic(ao);
    Expression g = tanh(ag);
    Expression added = cmult(i, g);
    if (has_prev)
      ct[l] = cmult(f, c_prev) + added;
    else
      ct[l] = added;
    in = ht[l] = cmult(o, tanh(ct[l]));
  }
  h.push_back(ht);
  c.push_back(ct);
  return h.back().back();
}

namespace {
void check_count(const char *what, size_t got, size_t a, size_t b) {
  if (got != a && got != b)
    throw std::invalid_argument(std::string(what) + ": needs " + std::to_string(a) +
                                (a == b ? "" : " or " + std::to_string(b)) + " expressions, got " +
                                std::to_string(got));
}
} // namespace

// What is not given comes from the step made last, as in DyNet, not from prev; before the
// first step from the initial state, and without one it is zero.
std::vector<Expression>
VanillaLSTMBuilder::missing(const std::vector<std::vector<Expression>> &steps,
                            const std::vector<Expression> &initial,
                            const std::vector<Expression> &given) const {
  if (!steps.empty())
    return steps.back();
  if (has_initial_state)
    return initial;
  std::vector<Expression> none;
  none.reserve(given.size());
  for (const Expression &e : given)
    none.push_back(zeros(*_cg, e.dim()));
  return none;
}

Expression VanillaLSTMBuilder::set_h_impl(int, const std::vector<Expression> &h_new) {
  check_count("set_h", h_new.size(), layers, layers);
  c.push_back(missing(c, c0, h_new));
  h.push_back(h_new);
  return h.back().back();
}

Expression VanillaLSTMBuilder::set_s_impl(int, const std::vector<Expression> &s_new) {
  check_count("set_s", s_new.size(), layers, 2 * layers);
  std::vector<Expression> cells(s_new.begin(), s_new.begin() + layers);
  std::vector<Expression> hidden(s_new.begin() + layers, s_new.end());
  h.push_back(hidden.empty() ? missing(h, h0, cells) : hidden);
  c.push_back(cells);
  return h.back().back();
}

Expression VanillaLSTMBuilder::back() const {
  const std::vector<Expression> &last = cur < 0 ? h0 : h[static_cast<size_t>(cur)];
  if (last.empty())
    throw std::invalid_argument("back: the sequence is empty");
  return last.back();
}

std::vector<Expression> VanillaLSTMBuilder::final_h() const { return h.empty() ? h0 : h.back(); }

std::vector<Expression> VanillaLSTMBuilder::get_h(RNNPointer i) const {
  return i < 0 ? h0 : h.at(static_cast<size_t>(i));
}

std::vector<Expression> VanillaLSTMBuilder::final_s() const {
  std::vector<Expression> s = c.empty() ? c0 : c.back(), ht = final_h();
  s.insert(s.end(), ht.begin(), ht.end());
  return s;
}

std::vector<Expression> VanillaLSTMBuilder::get_s(RNNPointer i) const {
  std::vector<Expression> s = i < 0 ? c0 : c.at(static_cast<size_t>(i)), ht = get_h(i);
  s.insert(s.end(), ht.begin(), ht.end());
  return s;
}

void VanillaLSTMBuilder::copy(const RNNBuilder &other) {
  const VanillaLSTMBuilder &o = dynamic_cast<const VanillaLSTMBuilder &>(other);
  if (o.params.size() != params.size())
    throw std::invalid_argument("copy: the other builder has " + std::to_string(o.params.size()) +
                                " layers, this one " + std::to_string(params.size()));
  params = o.params;
}

CompactVanillaLSTMBuilder::CompactVanillaLSTMBuilder(unsigned layers, unsigned input_dim,
                                                     unsigned hidden_dim,
                                                     ParameterCollection &model)
    : VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, "compact-vanilla-lstm-builder",
                         1.f) {}

void CompactVanillaLSTMBuilder::set_weightnoise(float std) {
  if (std != 0)
    throw std::invalid_argument("set_weightnoise: weight noise is not available; pass 0");
}

Expression CompactVanillaLSTMBuilder::add_input_impl(int prev, const Expression &x) {
  unsigned batch = x.dim().bd;
  if (dropping() && !dropout_masks_valid)
    set_dropout_masks(batch);
  std::vector<Expression> ht(layers), ct(layers);
  Expression in = x;
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    Expression h_prev, c_prev;
    if (prev >= 0 || has_initial_state) {
      h_prev = prev < 0 ? h0[l] : h[static_cast<size_t>(prev)][l];
      c_prev = prev < 0 ? c0[l] : c[static_cast<size_t>(prev)][l];
    } else {
      h_prev = zeros(*_cg, Dim({hid}, batch));
      c_prev = zeros(*_cg, Dim({hid}, batch));
    }
    Expression gates = dropping() ? vanilla_lstm_gates_dropout(in, h_prev, p[0], p[1], p[2],
                                                               masks[l][0], masks[l][1])
                                  : vanilla_lstm_gates(in, h_prev, p[0], p[1], p[2]);
    ct[l] = vanilla_lstm_c(c_prev, gates);
    in = ht[l] = vanilla_lstm_h(ct[l], gates);
  }
  h.push_back(ht);
  c.push_back(ct);
  return h.back().back();
}

} // namespace dynet
