// VanillaLSTMBuilder and its kin: parameters, masks, steps.
#include "dynet/lstm.h"

#include <algorithm>
#include <cmath>

#include "builders.h"

namespace dynet {

namespace {

enum { WX, WH, B, MASK_X, MASK_H };                      // of a layer's params
enum { GAIN_H, BIAS_H, GAIN_X, BIAS_X, GAIN_C, BIAS_C }; // of its ln_params

} // namespace

VanillaLSTMBuilder::VanillaLSTMBuilder()
    : input_dim(0), dropout_rate_h(0), ln_lstm(false), forget_bias(1), dropout_masks_valid(false) {}

VanillaLSTMBuilder::VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                       ParameterCollection &model, const char *name, bool ln_lstm,
                                       float forget_bias)
    : LSTMStates(layers, hidden_dim, model, name), input_dim(input_dim), dropout_rate_h(0),
      ln_lstm(ln_lstm), forget_bias(forget_bias), dropout_masks_valid(false) {}

VanillaLSTMBuilder::VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                       ParameterCollection &model, bool ln_lstm, float forget_bias)
    : VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, "vanilla-lstm-builder", ln_lstm,
                         forget_bias) {
  for (unsigned i = 0; i < layers; ++i) {
    params.push_back(make_layer(i));
    make_normalisation(model);
  }
}

std::vector<Parameter> VanillaLSTMBuilder::make_layer(unsigned layer) {
  std::vector<Parameter> made;
  made.push_back(local_model.add_parameters({4 * hid, layer == 0 ? input_dim : hid}));
  made.push_back(local_model.add_parameters({4 * hid, hid}));
  made.push_back(local_model.add_parameters({4 * hid}, ParameterInitConst(0.f)));
  return made;
}

void VanillaLSTMBuilder::make_normalisation(ParameterCollection &model) {
  if (!ln_lstm)
    return;
  std::vector<Parameter> made;
  for (unsigned rows : {4 * hid, 4 * hid, hid})
    for (float value : {1.f, 0.f})
      made.push_back(model.add_parameters({rows}, ParameterInitConst(value)));
  ln_params.push_back(made);
}

void VanillaLSTMBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  LSTMStates::new_graph_impl(cg, update);
  ln_param_vars = leaves(cg, ln_params, update);
}

void VanillaLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  LSTMStates::start_new_sequence_impl(h_0);
  dropout_masks_valid = false;
}

void VanillaLSTMBuilder::set_dropout(float d, float d_r) {
  check_rate(d);
  check_rate(d_r);
  dropout_rate = d;
  dropout_rate_h = d_r;
}

void VanillaLSTMBuilder::set_dropout_masks(unsigned batch_size) {
  masks = dropout_masks(*_cg, layers, input_dim, hid, batch_size, {dropout_rate, dropout_rate_h});
  dropout_masks_valid = true;
}

Expression VanillaLSTMBuilder::add_input_impl(int prev, const Expression &x) {
  if (dropping() && !dropout_masks_valid)
    set_dropout_masks(x.dim().bd);
  std::vector<Expression> ht(layers), ct(layers);
  Expression in = x;
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    Expression h_prev, c_prev;
    const bool has_prev = before(prev, l, h_prev, c_prev);
    if (dropout_rate > 0)
      in = cmult(in, masks[l][0]);
    if (has_prev && dropout_rate_h > 0)
      h_prev = cmult(h_prev, masks[l][1]);

    Expression all;
    if (ln_lstm) {
      const std::vector<Expression> &n = ln_param_vars[l];
      all = p[B] + layer_norm(p[WX] * in, n[GAIN_X], n[BIAS_X]);
      if (has_prev)
        all = all + layer_norm(p[WH] * h_prev, n[GAIN_H], n[BIAS_H]);
    } else {
      all = has_prev ? affine_transform({p[B], p[WX], in, p[WH], h_prev})
                     : affine_transform({p[B], p[WX], in});
    }
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
    const Expression shown =
        ln_lstm ? layer_norm(ct[l], ln_param_vars[l][GAIN_C], ln_param_vars[l][BIAS_C]) : ct[l];
    in = ht[l] = cmult(o, tanh(shown));
  }
  return made(ct, ht);
}

void VanillaLSTMBuilder::copy(const RNNBuilder &other) {
  const VanillaLSTMBuilder &o = same_kind<VanillaLSTMBuilder>(other);
  share(params, o.params);
  share(ln_params, o.ln_params);
}

// ---- SparseLSTMBuilder -----------------------------------------------------------

SparseLSTMBuilder::SparseLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                     ParameterCollection &model, bool ln_lstm, float forget_bias)
    : VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, "vanilla-lstm-builder", ln_lstm,
                         forget_bias) {
  for (unsigned i = 0; i < layers; ++i) {
    std::vector<Parameter> layer;
    const unsigned in = i == 0 ? input_dim : hid;
    layer.push_back(local_model.add_parameters({4 * hid, in}));
    layer.push_back(local_model.add_parameters({4 * hid, hid}));
    const Parameter x = local_model.add_parameters({4 * hid, in}, ParameterInitConst(1.f));
    const Parameter h = local_model.add_parameters({4 * hid, hid}, ParameterInitConst(1.f));
    layer.push_back(local_model.add_parameters({4 * hid}, ParameterInitConst(0.f)));
    layer.push_back(x);
    layer.push_back(h);
    params.push_back(layer);
    make_normalisation(model);
  }
}

void SparseLSTMBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  _cg = &cg;
  param_vars.assign(layers, std::vector<Expression>());
  for (unsigned i = 0; i < layers; ++i) {
    for (int w : {WX, WH}) {
      const Expression kept = const_parameter(cg, params[i][w == WX ? MASK_X : MASK_H]);
      param_vars[i].push_back(cmult(leaf(cg, params[i][w], update), kept));
    }
    param_vars[i].push_back(leaf(cg, params[i][B], update));
  }
  ln_param_vars = leaves(cg, ln_params, update);
}

void SparseLSTMBuilder::copy(const RNNBuilder &other) {
  VanillaLSTMBuilder::copy(same_kind<SparseLSTMBuilder>(other));
}

void SparseLSTMBuilder::set_sparsity(float percent) {
  if (!(percent >= 0 && percent <= 1))
    throw std::invalid_argument("set_sparsity: needs the fraction of weights to drop, from 0 to 1");
  std::vector<std::vector<float>> kept; // the masks, in order
  struct Weight {
    float size;
    size_t mask, at;
  };
  std::vector<Weight> weights;
  for (const std::vector<Parameter> &layer : params)
    for (int w : {WX, WH}) {
      const std::vector<float> values = layer[w].p.unexposed()->read(VPPS_VALUES);
      const std::vector<float> old =
          layer[w == WX ? MASK_X : MASK_H].p.unexposed()->read(VPPS_VALUES);
      for (size_t k = 0; k < values.size(); ++k)
        weights.push_back({std::abs(values[k] * old[k]), kept.size(), k});
      kept.push_back(std::vector<float>(values.size(), 1.f));
    }
  std::stable_sort(weights.begin(), weights.end(),
                   [](const Weight &a, const Weight &b) { return a.size < b.size; });
  const size_t dropped = static_cast<size_t>(percent * static_cast<float>(weights.size()));
  for (size_t k = 0; k < dropped; ++k)
    kept[weights[k].mask][weights[k].at] = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    params[i][MASK_X].set_value(kept[2 * i]);
    params[i][MASK_H].set_value(kept[2 * i + 1]);
  }
}

// ---- CompactVanillaLSTMBuilder ---------------------------------------------------

CompactVanillaLSTMBuilder::CompactVanillaLSTMBuilder(unsigned layers, unsigned input_dim,
                                                     unsigned hidden_dim,
                                                     ParameterCollection &model)
    : VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, "compact-vanilla-lstm-builder",
                         false, 1.f),
      weightnoise_std(0) {
  for (unsigned i = 0; i < layers; ++i)
    params.push_back(make_layer(i));
}

void CompactVanillaLSTMBuilder::copy(const RNNBuilder &other) {
  VanillaLSTMBuilder::copy(same_kind<CompactVanillaLSTMBuilder>(other));
}

void CompactVanillaLSTMBuilder::set_weightnoise(float std) {
  if (!(std >= 0 && std::isfinite(std)))
    throw std::invalid_argument("set_weightnoise: needs a deviation of 0 or more");
  weightnoise_std = std;
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
    if (!before(prev, l, h_prev, c_prev)) {
      h_prev = zeros(*_cg, Dim({hid}, batch));
      c_prev = zeros(*_cg, Dim({hid}, batch));
    }
    Expression gates = dropping()
                           ? vanilla_lstm_gates_dropout(in, h_prev, p[WX], p[WH], p[B], masks[l][0],
                                                        masks[l][1], weightnoise_std)
                           : vanilla_lstm_gates(in, h_prev, p[WX], p[WH], p[B], weightnoise_std);
    ct[l] = vanilla_lstm_c(c_prev, gates);
    in = ht[l] = vanilla_lstm_h(ct[l], gates);
  }
  return made(ct, ht);
}

} // namespace dynet
