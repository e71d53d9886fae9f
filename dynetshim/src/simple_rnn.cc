// SimpleRNNBuilder: parameters and steps.
#include "builders.h"

namespace dynet {

namespace {
enum { WX, WH, B, WA }; // of a layer
} // namespace

SimpleRNNBuilder::SimpleRNNBuilder()
    : layers(0), input_dim_(0), hidden_dim_(0), lagging(false), dropout_rate_h(0),
      dropout_masks_valid(false), _cg(nullptr) {}

SimpleRNNBuilder::SimpleRNNBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                   ParameterCollection &model, bool support_lags)
    : local_model(model.add_subcollection("simple-rnn-builder")), layers(layers),
      input_dim_(input_dim), hidden_dim_(hidden_dim), lagging(support_lags), dropout_rate_h(0),
      dropout_masks_valid(false), _cg(nullptr) {
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

void SimpleRNNBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  _cg = &cg;
  param_vars = leaves(cg, params, update);
}

void SimpleRNNBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  check_count("start_new_sequence", h_0.size(), 0, layers);
  h.clear();
  h0 = h_0;
  dropout_masks_valid = false;
}

void SimpleRNNBuilder::set_dropout(float d, float d_h) {
  check_rate(d);
  check_rate(d_h);
  dropout_rate = d;
  dropout_rate_h = d_h;
}

void SimpleRNNBuilder::set_dropout_masks(unsigned batch_size) {
  masks.assign(layers, std::vector<Expression>());
  if (dropout_rate > 0 || dropout_rate_h > 0)
    for (unsigned i = 0; i < layers; ++i) {
      masks[i].push_back(mask(*_cg, i == 0 ? input_dim_ : hidden_dim_, batch_size, dropout_rate));
      masks[i].push_back(mask(*_cg, hidden_dim_, batch_size, dropout_rate_h));
    }
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

Expression SimpleRNNBuilder::set_h_impl(int, const std::vector<Expression> &h_new) {
  check_count("set_h", h_new.size(), layers, layers);
  h.push_back(h_new);
  return h.back().back();
}

Expression SimpleRNNBuilder::back() const {
  const std::vector<Expression> last = get_h(cur);
  if (last.empty())
    throw std::invalid_argument("back: the sequence is empty");
  return last.back();
}

std::vector<Expression> SimpleRNNBuilder::get_h(RNNPointer i) const {
  return i < 0 ? h0 : h.at(static_cast<size_t>(i));
}

void SimpleRNNBuilder::copy(const RNNBuilder &other) {
  share(params, same_kind<SimpleRNNBuilder>(other).params);
}

} // namespace dynet
