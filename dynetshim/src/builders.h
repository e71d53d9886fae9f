// Functions that several builders share.
#ifndef DYNETSHIM_BUILDERS_H
#define DYNETSHIM_BUILDERS_H

#include <stdexcept>
#include <string>
#include <vector>

#include "dynet/expr.h"
#include "dynet/rnn.h"

namespace dynet {

typedef std::vector<std::vector<Parameter>> LayerParameters;   // [layer][parameter]
typedef std::vector<std::vector<Expression>> LayerExpressions; // [layer][parameter]

// A parameter's node, with or without a gradient.
inline Expression leaf(ComputationGraph &cg, const Parameter &p, bool update) {
  return update ? parameter(cg, p) : const_parameter(cg, p);
}

// Nodes of all parameters, in order.
LayerExpressions leaves(ComputationGraph &cg, const LayerParameters &params, bool update);

// Makes to share the parameters of from. Layers differ: std::invalid_argument.
void share(LayerParameters &to, const LayerParameters &from);

// The other builder, for copy(). One of another kind: std::invalid_argument.
template <class Builder> const Builder &same_kind(const RNNBuilder &other) {
  const Builder *o = dynamic_cast<const Builder *>(&other);
  if (o == nullptr)
    throw std::invalid_argument("copy: the other builder is of another kind");
  return *o;
}

// Throws std::invalid_argument unless there are a or b expressions.
void check_count(const char *what, size_t got, size_t a, size_t b);

// Throws std::invalid_argument unless p is a probability to drop.
inline void check_rate(float p) {
  if (!(p >= 0 && p <= 1))
    throw std::invalid_argument("set_dropout: probabilities are from 0 to 1");
}

// Masks of each layer, which drop with the rates and scale what they keep: of its input first, then
// of vectors {hidden}. The first layer's input has input_dim rows. No rate above 0: there are none.
LayerExpressions dropout_masks(ComputationGraph &cg, unsigned layers, unsigned input_dim,
                               unsigned hidden, unsigned batch, const std::vector<float> &rates);

} // namespace dynet
#endif
