// SimpleRNNBuilder: parameters and steps.
#include "builders.h"

namespace dynet {

namespace {
enum { WX, WH, B, WA }; // of a layer
} // namespace

SimpleRNNBuilder::SimpleRNNBuilder()
    : input_dim_(0), hidden_dim_(0), lagging(false), dropout_rate_h(0), dropout_masks_valid(false) {
}

SimpleRNNBuilder::SimpleRNNBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                   ParameterCollection &model, bool support_lags)
    : HiddenStates(layers, model, "simple-rnn-builder"), input_dim_(input_dim),
      hidden_dim_(hidden_dim), lagging(support_lags), dropout_rate_h(0),
      dropout_masks_valid(false) {
  for (unsigned i = 0; i < layers; ++i) {
    std::vector<Parameter> layer;
    layer.push_back(local_model.add_parameters({hidden_dim, i == 0 ? input_dim : hidden_dim}));
    layer.push_back(local_model.add_parameters({hidden_dim, hidden_dim}));
    layer.push_back(local_model.add_parameters({hidden_dim}, ParameterInitConst(0.f)));
    if (lagging)
      layer.push_back(local_model.add_parameters({hidden_dim, hidden_dim}));
    params.push_back(layer);
  }
}

void SimpleRNNBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  HiddenStates::start_new_sequence_impl(h_0);
  dropout_masks_valid = false;
}

void SimpleRNNBuilder::set_dropout(float d, float d_h) {
  check_rate(d);
  check_rate(d_h);
  dropout_rate = d;
  dropout_rate_h = d_h;
}

void SimpleRNNBuilder::set_dropout_masks(unsigned batch_size) {
  masks = dropout_masks(*_cg, layers, input_dim_, hidden_dim_, batch_size,
                        {dropout_rate, dropout_rate_h});
  dropout_masks_valid = true;
}

Expression SimpleRNNBuilder::add_input_impl(int prev, const Expression &x) {
  if ((dropout_rate > 0 || dropout_rate_h > 0) && !dropout_masks_valid)
    set_dropout_masks(x.dim().bd);
  const std::vector<Expression> before = get_h(prev); // empty: the state is zero
  std::vector<Expression> ht(layers);
  Expression in = x;
  for (unsigned i = 0; i < layers; ++i) {
    const std::vector<Expression> &p = param_vars[i];
    if (dropout_rate > 0)
      in = cmult(in, masks[i][0]);
    std::vector<Expression> terms = {p[B], p[WX], in};
    if (!before.empty()) {
      terms.push_back(p[WH]);
      terms.push_back(dropout_rate_h > 0 ? cmult(before[i], masks[i][1]) : before[i]);
    }
    in = ht[i] = tanh(affine_transform(terms));
  }
  h.push_back(ht);
  return h.back().back();
}

Expression SimpleRNNBuilder::add_auxiliary_input(const Expression &x, const Expression &aux) {
  if (!lagging)
    throw std::invalid_argument("add_auxiliary_input: make the builder with support_lags = true");
  if (param_vars.size() != layers)
    throw std::invalid_argument("add_auxiliary_input: call new_graph first");
  const std::vector<Expression> before = final_h();
  std::vector<Expression> ht(layers);
  Expression in = x;
  for (unsigned i = 0; i < layers; ++i) {
    const std::vector<Expression> &p = param_vars[i];
    std::vector<Expression> terms = {p[B], p[WX], in, p[WA], aux};
    if (!before.empty()) {
      terms.push_back(p[WH]);
      terms.push_back(before[i]);
    }
    in = ht[i] = tanh(affine_transform(terms));
  }
  h.push_back(ht);
  return h.back().back();
}

void SimpleRNNBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<SimpleRNNBuilder>(other).params);
}

} // namespace dynet
