// GRUBuilder: parameters and steps.
#include "dynet/gru.h"

#include "builders.h"

namespace dynet {

namespace {
// Of a layer: Z + WX is the update gate's Wx.
enum { Z = 0, R = 3, C = 6, WX = 0, WH = 1, B = 2 };
} // namespace

GRUBuilder::GRUBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                       ParameterCollection &model)
    : HiddenStates(layers, model, "gru-builder"), hidden_dim(hidden_dim) {
  for (unsigned i = 0; i < layers; ++i) {
    std::vector<Parameter> layer;
    for (int gate = 0; gate < 3; ++gate) {
      layer.push_back(local_model.add_parameters({hidden_dim, i == 0 ? input_dim : hidden_dim}));
      layer.push_back(local_model.add_parameters({hidden_dim, hidden_dim}));
      layer.push_back(local_model.add_parameters({hidden_dim}, ParameterInitConst(0.f)));
    }
    params.push_back(layer);
  }
}

void GRUBuilder::set_dropout(float d) {
  check_rate(d);
  dropout_rate = d;
}

Expression GRUBuilder::add_input_impl(int prev, const Expression &x) {
  const std::vector<Expression> before = get_h(prev); // empty: the state is zero
  std::vector<Expression> ht(layers);
  Expression in = x;
  for (unsigned i = 0; i < layers; ++i) {
    const std::vector<Expression> &p = param_vars[i];
    if (dropout_rate > 0)
      in = dropout(in, dropout_rate);
    // A gate before its function; state is not read without a state before.
    auto gate = [&](int g, const Expression &state) {
      return before.empty() ? affine_transform({p[g + B], p[g + WX], in})
                            : affine_transform({p[g + B], p[g + WX], in, p[g + WH], state});
    };
    const Expression h_prev = before.empty() ? Expression() : before[i];
    const Expression z = logistic(gate(Z, h_prev));
    const Expression keep = 1.f - z;
    const Expression r = logistic(gate(R, h_prev));
    if (before.empty()) {
      ht[i] = cmult(z, tanh(gate(C, h_prev)));
    } else {
      const Expression c = tanh(gate(C, cmult(r, h_prev)));
      const Expression added = cmult(z, c), kept = cmult(keep, h_prev);
      ht[i] = kept + added;
    }
    in = ht[i];
  }
  h.push_back(ht);
  return dropout_rate > 0 ? dropout(ht.back(), dropout_rate) : ht.back();
}

void GRUBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<GRUBuilder>(other).params);
}

} // namespace dynet
