// LSTM builders whose forget gate is 1 minus the input gate: CoupledLSTMBuilder, FastLSTMBuilder,
// DeepLSTMBuilder.
#include "builders.h"
#include "dynet/deep-lstm.h"
#include "dynet/fast-lstm.h"
#include "dynet/lstm.h"

namespace dynet {

namespace {

// Parameters of a layer: I + WX is the input gate's Wx. G has no WC.
enum { I = 0, O = 4, G = 8, WX = 0, WH = 1, WC = 2, B = 3 };
enum { G_B = 10 };

// above: the rows of an input of the layers above the first. wc: the columns of the matrices that
// read the cell.
LayerParameters make(ParameterCollection &m, unsigned layers, unsigned input, unsigned above,
                     unsigned hidden, unsigned wc) {
  LayerParameters params;
  for (unsigned i = 0; i < layers; ++i) {
    std::vector<Parameter> layer;
    for (int gate = 0; gate < 3; ++gate) {
      layer.push_back(m.add_parameters({hidden, i == 0 ? input : above}));
      layer.push_back(m.add_parameters({hidden, hidden}));
      if (gate < 2)
        layer.push_back(m.add_parameters({hidden, wc}));
      layer.push_back(m.add_parameters({hidden}, ParameterInitConst(0.f)));
    }
    params.push_back(layer);
  }
  return params;
}

// (1-i).c_prev + i.g, or i.g without a state before.
Expression next_cell(const Expression &i, const Expression &g, const Expression *c_prev,
                     const Expression &forget) {
  if (c_prev == nullptr)
    return cmult(i, g);
  const Expression added = cmult(i, g), kept = cmult(forget, *c_prev);
  return kept + added;
}

} // namespace

// ---- CoupledLSTMBuilder ----------------------------------------------------------

CoupledLSTMBuilder::CoupledLSTMBuilder()
    : input_dim(0), dropout_masks_valid(false), dropout_rate_h(0), dropout_rate_c(0) {}

CoupledLSTMBuilder::CoupledLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                       ParameterCollection &model)
    : LSTMStates(layers, hidden_dim, model, "lstm-builder"), input_dim(input_dim),
      dropout_masks_valid(false), dropout_rate_h(0), dropout_rate_c(0) {
  params = make(local_model, layers, input_dim, hidden_dim, hidden_dim, hidden_dim);
}

void CoupledLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  LSTMStates::start_new_sequence_impl(h_0);
  dropout_masks_valid = false;
}

void CoupledLSTMBuilder::set_dropout(float d, float d_h, float d_c) {
  check_rate(d);
  check_rate(d_h);
  check_rate(d_c);
  dropout_rate = d;
  dropout_rate_h = d_h;
  dropout_rate_c = d_c;
}

void CoupledLSTMBuilder::set_dropout_masks(unsigned batch_size) {
  masks = dropout_masks(*_cg, layers, input_dim, hid, batch_size,
                        {dropout_rate, dropout_rate_h, dropout_rate_c});
  dropout_masks_valid = true;
}

Expression CoupledLSTMBuilder::add_input_impl(int prev, const Expression &x) {
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
    // What the gates read of a cell; the cell itself goes on undropped.
    auto read = [&](const Expression &cell) {
      return dropout_rate_c > 0 ? cmult(cell, masks[l][2]) : cell;
    };
    Expression i, g;
    if (has_prev) {
      const Expression c_read = read(c_prev);
      i = logistic(
          affine_transform({p[I + B], p[I + WX], in, p[I + WH], h_prev, p[I + WC], c_read}));
    } else {
      i = logistic(affine_transform({p[I + B], p[I + WX], in}));
    }
    const Expression forget = 1.f - i;
    g = tanh(has_prev ? affine_transform({p[G_B], p[G + WX], in, p[G + WH], h_prev})
                      : affine_transform({p[G_B], p[G + WX], in}));
    ct[l] = next_cell(i, g, has_prev ? &c_prev : nullptr, forget);
    const Expression c_read = read(ct[l]);
    const Expression o = logistic(
        has_prev ? affine_transform({p[O + B], p[O + WX], in, p[O + WH], h_prev, p[O + WC], c_read})
                 : affine_transform({p[O + B], p[O + WX], in, p[O + WC], c_read}));
    in = ht[l] = cmult(o, tanh(ct[l]));
  }
  return made(ct, ht);
}

void CoupledLSTMBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<CoupledLSTMBuilder>(other).params);
}

// ---- FastLSTMBuilder -------------------------------------------------------------

FastLSTMBuilder::FastLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                 ParameterCollection &model)
    : LSTMStates(layers, hidden_dim, model, "fast-lstm-builder") {
  params = make(local_model, layers, input_dim, hidden_dim, hidden_dim, 1);
}

Expression FastLSTMBuilder::add_input_impl(int prev, const Expression &x) {
  std::vector<Expression> ht(layers), ct(layers);
  Expression in = x;
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    Expression h_prev, c_prev;
    const bool has_prev = before(prev, l, h_prev, c_prev);
    auto sum = [&](int bias, int gate) {
      return has_prev ? affine_transform({p[bias], p[gate + WX], in, p[gate + WH], h_prev})
                      : affine_transform({p[bias], p[gate + WX], in});
    };
    const Expression i = logistic(sum(I + B, I));
    const Expression forget = 1.f - i;
    const Expression g = tanh(sum(G_B, G));
    ct[l] = next_cell(i, g, has_prev ? &c_prev : nullptr, forget);
    const Expression o = logistic(sum(O + B, O));
    in = ht[l] = cmult(o, tanh(ct[l]));
  }
  return made(ct, ht);
}

void FastLSTMBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<FastLSTMBuilder>(other).params);
}

// ---- DeepLSTMBuilder -------------------------------------------------------------

DeepLSTMBuilder::DeepLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                 ParameterCollection &model)
    : LSTMStates(layers, hidden_dim, model, "deep-lstm-builder") {
  params = make(local_model, layers, input_dim, hidden_dim + input_dim, hidden_dim, hidden_dim);
}

void DeepLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  LSTMStates::start_new_sequence_impl(h_0);
  o.clear();
}

Expression DeepLSTMBuilder::add_input_impl(int prev, const Expression &x) {
  std::vector<Expression> ht(layers), ct(layers);
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    const Expression in = l == 0 ? x : concatenate({ht[l - 1], x});
    Expression h_prev, c_prev;
    const bool has_prev = before(prev, l, h_prev, c_prev);
    auto sum = [&](int bias, int gate, const Expression *cell) {
      std::vector<Expression> terms = {p[bias], p[gate + WX], in};
      if (has_prev) {
        terms.push_back(p[gate + WH]);
        terms.push_back(h_prev);
        if (cell != nullptr) {
          terms.push_back(p[gate + WC]);
          terms.push_back(*cell);
        }
      }
      return affine_transform(terms);
    };
    const Expression i = logistic(sum(I + B, I, &c_prev));
    const Expression forget = 1.f - i;
    const Expression g = tanh(sum(G_B, G, nullptr));
    ct[l] = next_cell(i, g, has_prev ? &c_prev : nullptr, forget);
    const Expression out = logistic(sum(O + B, O, &ct[l]));
    ht[l] = cmult(out, tanh(ct[l]));
  }
  made(ct, ht);
  return all_layers();
}

Expression DeepLSTMBuilder::all_layers() {
  o.push_back(concatenate(h.back()));
  return o.back();
}

Expression DeepLSTMBuilder::set_h_impl(int prev, const std::vector<Expression> &h_new) {
  LSTMStates::set_h_impl(prev, h_new);
  return all_layers();
}

Expression DeepLSTMBuilder::set_s_impl(int prev, const std::vector<Expression> &s_new) {
  LSTMStates::set_s_impl(prev, s_new);
  return all_layers();
}

void DeepLSTMBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<DeepLSTMBuilder>(other).params);
}

} // namespace dynet
