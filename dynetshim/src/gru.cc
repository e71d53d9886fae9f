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
    : local_model(model.add_subcollection("gru-builder")), hidden_dim(hidden_dim), layers(layers) {
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

void GRUBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  param_vars = leaves(cg, params, update);
}

void GRUBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  check_count("start_new_sequence", h_0.size(), 0, layers);
  h.clear();
  h0 = h_0;
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

Expression GRUBuilder::set_h_impl(int, const std::vector<Expression> &h_new) {
  check_count("set_h", h_new.size(), layers, layers);
  h.push_back(h_new);
  return h.back().back();
}

Expression GRUBuilder::back() const {
  const std::vector<Expression> last = get_h(cur);
  if (last.empty())
    throw std::invalid_argument("back: the sequence is empty");
  return last.back();
}

std::vector<Expression> GRUBuilder::get_h(RNNPointer i) const {
  return i < 0 ? h0 : h.at(static_cast<size_t>(i));
}

void GRUBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<GRUBuilder>(other).params);
}

} // namespace dynet
