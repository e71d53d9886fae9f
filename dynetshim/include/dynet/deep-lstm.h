/// \file
/// DeepLSTMBuilder: an LSTM whose layers all read the input, and whose output is that of all
/// layers.
#ifndef DYNET_DEEP_LSTM_H_
#define DYNET_DEEP_LSTM_H_

#include "dynet/lstm-state.h"

namespace dynet {

/// CoupledLSTMBuilder's layers, with two differences: a layer above the first reads the output
/// below and the step's input, and where there is no state before the output gate does not read the
/// cell. A step returns the outputs of all layers in one vector {layers*H}xB; back() is the top
/// layer's. Parameters of a layer as of CoupledLSTMBuilder, with I+H columns of Wx above the first
/// layer. DyNet declares this class but cannot make one: it lacks functions of RNNBuilder.
struct DeepLSTMBuilder : public LSTMStates {
  /// A builder without layers, to be assigned to.
  DeepLSTMBuilder() {}
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of a layer's cells and outputs.
  explicit DeepLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                           ParameterCollection &model);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;

  std::vector<Expression> o; ///< by step: what add_input() returned

protected:
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override;

private:
  Expression all_layers();
};

} // namespace dynet
#endif
