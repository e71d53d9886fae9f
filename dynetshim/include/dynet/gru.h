/// \file
/// GRUBuilder: gated recurrent units.
#ifndef DYNET_GRU_H_
#define DYNET_GRU_H_

#include <vector>

#include "dynet/rnn.h"

namespace dynet {

/// z, r = logistic(Wx*x + Wh*h + b), c = tanh(Wx*x + Wh*(r.h) + b), h' = z.c + (1-z).h, "." element
/// by element. Parameters of a layer, for each of z, r and c: Wx {H,I}, Wh {H,H}, b {H}.
struct GRUBuilder : public HiddenStates {
  /// A builder without layers, to be assigned to.
  GRUBuilder() : hidden_dim(0) {}
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of an output.
  explicit GRUBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                      ParameterCollection &model);
  /// Drops elements of every layer's input, and of what add_input() returns, anew at each step.
  void set_dropout(float d) override;
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;

protected:
  Expression add_input_impl(int prev, const Expression &x) override;

  unsigned hidden_dim; ///< H, the rows of an output
};

} // namespace dynet
#endif
