// Shared by the builders: parameters of layers, and their hidden vectors.
#include "builders.h"

#include <algorithm>

namespace dynet {

LayerExpressions leaves(ComputationGraph &cg, const LayerParameters &params, bool update) {
  LayerExpressions nodes(params.size());
  for (size_t i = 0; i < params.size(); ++i)
    for (const Parameter &p : params[i])
      nodes[i].push_back(leaf(cg, p, update));
  return nodes;
}

void share(LayerParameters &to, const LayerParameters &from) {
  if (to.size() != from.size())
    throw std::invalid_argument("copy: the other builder has " + std::to_string(from.size()) +
                                " layers, this one " + std::to_string(to.size()));
  to = from;
}

LayerExpressions dropout_masks(ComputationGraph &cg, unsigned layers, unsigned input_dim,
                               unsigned hidden, unsigned batch, const std::vector<float> &rates) {
  LayerExpressions masks(layers);
  if (*std::max_element(rates.begin(), rates.end()) <= 0)
    return masks;
  for (unsigned i = 0; i < layers; ++i)
    for (size_t k = 0; k < rates.size(); ++k) {
      const unsigned rows = i == 0 && k == 0 ? input_dim : hidden;
      masks[i].push_back(
          random_bernoulli(cg, Dim({rows}, batch), 1 - rates[k], 1 / (1 - rates[k])));
    }
  return masks;
}

void check_count(const char *what, size_t got, size_t a, size_t b) {
  if (got != a && got != b)
    throw std::invalid_argument(std::string(what) + ": needs " + std::to_string(a) +
                                (a == b ? "" : " or " + std::to_string(b)) + " expressions, got " +
                                std::to_string(got));
}

// ---- HiddenStates ------------------------------------------------------------------

HiddenStates::HiddenStates(unsigned layers, ParameterCollection &model, const char *name)
    : local_model(model.add_subcollection(name)), layers(layers), _cg(nullptr) {}

void HiddenStates::new_graph_impl(ComputationGraph &cg, bool update) {
  _cg = &cg;
  param_vars = leaves(cg, params, update);
}

void HiddenStates::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  check_count("start_new_sequence", h_0.size(), 0, layers);
  h.clear();
  h0 = h_0;
}

Expression HiddenStates::set_h_impl(int, const std::vector<Expression> &h_new) {
  check_count("set_h", h_new.size(), layers, layers);
  h.push_back(h_new);
  return h.back().back();
}

Expression HiddenStates::back() const {
  const std::vector<Expression> last = get_h(cur);
  if (last.empty())
    throw std::invalid_argument("back: the sequence is empty");
  return last.back();
}

std::vector<Expression> HiddenStates::get_h(RNNPointer i) const {
  return i < 0 ? h0 : h.at(static_cast<size_t>(i));
}

} // namespace dynet
