/// \file
/// LSTMStates: what LSTM builders have in common, the cells of all steps. It has no counterpart in
/// DyNet, whose builders repeat it.
#ifndef DYNET_LSTM_STATE_H
#define DYNET_LSTM_STATE_H

#include <vector>

#include "dynet/rnn.h"

namespace dynet {

/// The base of LSTM builders. The state of a layer is a cell c and a hidden vector h. A state is
/// listed as all cells, then all hidden vectors, lowest layer first. As in DyNet, what set_h() and
/// set_s() are not given comes from the step made last; at the first step it is zero.
struct LSTMStates : public HiddenStates {
  std::vector<Expression> final_s() const override;
  std::vector<Expression> get_s(RNNPointer i) const override;
  /// Two for each layer.
  unsigned num_h0_components() const override { return 2 * layers; }

  std::vector<std::vector<Expression>> c; ///< by step and layer: cells {H}xB
  bool has_initial_state;                 ///< whether the sequence began with a state
  std::vector<Expression> c0;             ///< by layer: the initial cells
  unsigned hid;                           ///< H, the rows of a cell

protected:
  /// A builder without layers.
  LSTMStates();
  /// A builder whose parameters go to the subcollection name of model. The derived class makes
  /// them.
  LSTMStates(unsigned layers, unsigned hidden_dim, ParameterCollection &model, const char *name);
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override;
  /// Whether there is a state before a step after step prev; if so, it goes to h_prev and c_prev.
  bool before(int prev, unsigned layer, Expression &h_prev, Expression &c_prev) const;
  /// Notes the states of a new step, by layer, and returns the top layer's hidden vector.
  Expression made(const std::vector<Expression> &cells, const std::vector<Expression> &hidden);

private:
  std::vector<Expression> missing(const std::vector<std::vector<Expression>> &steps) const;
};

} // namespace dynet
#endif
