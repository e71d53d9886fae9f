/// \file
/// FastLSTMBuilder: an LSTM whose forget gate is 1 minus its input gate.
#ifndef DYNET_FAST_LSTM_H_
#define DYNET_FAST_LSTM_H_

#include "dynet/lstm-state.h"

namespace dynet {

/// i, o = logistic(Wx*x + Wh*h + b), g = tanh(Wx*x + Wh*h + b), c = (1-i).c + i.g, h = o.tanh(c),
/// "." element by element. Parameters of a layer: Wx {H,I}, Wh {H,H}, Wc {H,1}, b {H} of i and of
/// o, then Wx, Wh, b of g. As in DyNet, Wc is never read, and dropout has no effect.
struct FastLSTMBuilder : public LSTMStates {
  /// A builder without layers, to be assigned to.
  FastLSTMBuilder() {}
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of cells and outputs.
  explicit FastLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                           ParameterCollection &model);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;

protected:
  Expression add_input_impl(int prev, const Expression &x) override;
};

} // namespace dynet
#endif
