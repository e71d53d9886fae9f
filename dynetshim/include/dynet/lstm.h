/// \file
/// LSTM builders. The state of a layer is a cell c and a hidden vector h. A state is listed as all
/// cells, then all hidden vectors, lowest layer first.
#ifndef DYNET_LSTM_H
#define DYNET_LSTM_H

#include <vector>

#include "dynet/rnn.h"

namespace dynet {

/// i, f, o = logistic, g = tanh of Wx*x + Wh*h + b (forget_bias added to f's part), c = f*c + i*g,
/// h = o*tanh(c). Parameters of a layer: Wx {4H,I}, Wh {4H,H}, b {4H}, the rows in the order i, f,
/// o, g. A step has 15 nodes, 13 where there is no state before.
struct VanillaLSTMBuilder : public RNNBuilder {
  /// A builder without layers, to be assigned to.
  VanillaLSTMBuilder();
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of cells and outputs. ln_lstm (layer normalisation) is not
  /// available: std::invalid_argument.
  VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                     ParameterCollection &model, bool ln_lstm = false, float forget_bias = 1.f);

  Expression back() const override;
  std::vector<Expression> final_h() const override;
  std::vector<Expression> get_h(RNNPointer i) const override;
  std::vector<Expression> final_s() const override;
  std::vector<Expression> get_s(RNNPointer i) const override;
  /// Two for each layer.
  unsigned num_h0_components() const override { return 2 * layers; }
  void copy(const RNNBuilder &other) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

  /// Drops inputs and the state before with probability d.
  void set_dropout(float d) override { set_dropout(d, d); }
  /// Drops inputs with probability d and the state before with probability d_r, by one mask for
  /// each layer and sequence. Outside [0,1]: std::invalid_argument.
  void set_dropout(float d, float d_r);
  void disable_dropout() override { set_dropout(0, 0); }
  /// Draws the masks of a sequence. Without this call the first add_input() does it, with the batch
  /// size of its input.
  void set_dropout_masks(unsigned batch_size = 1);

  ParameterCollection local_model;                    ///< the parameters of all layers
  std::vector<std::vector<Parameter>> params;         ///< [layer]: Wx, Wh, b
  std::vector<std::vector<Parameter>> ln_params;      ///< empty: there is no layer normalisation
  std::vector<std::vector<Expression>> param_vars;    ///< [layer]: params in the present graph
  std::vector<std::vector<Expression>> ln_param_vars; ///< empty: there is no layer normalisation
  std::vector<std::vector<Expression>> masks;         ///< [layer]: the masks of x and of h
  std::vector<std::vector<Expression>> h;             ///< [step][layer]: hidden vectors {H}xB
  std::vector<std::vector<Expression>> c;             ///< [step][layer]: cells {H}xB
  bool has_initial_state;                             ///< whether the sequence began with a state
  std::vector<Expression> h0;                         ///< [layer]: the initial hidden vectors
  std::vector<Expression> c0;                         ///< [layer]: the initial cells
  unsigned layers;                                    ///< the number of layers
  unsigned input_dim;                                 ///< I, the rows of an input
  unsigned hid;                                       ///< H, the rows of a cell
  float dropout_rate_h;     ///< the probability to drop from the state before
  bool ln_lstm;             ///< false: there is no layer normalisation
  float forget_bias;        ///< added to the forget gate
  bool dropout_masks_valid; ///< whether the sequence's masks are drawn

protected:
  /// The parameters under the subcollection name.
  VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                     ParameterCollection &model, const char *name, float forget_bias);
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override;
  /// What set_h() and set_s() were not given: from the step made last, before the first step from
  /// the initial state, else zeros in the shapes of given.
  std::vector<Expression> missing(const std::vector<std::vector<Expression>> &steps,
                                  const std::vector<Expression> &initial,
                                  const std::vector<Expression> &given) const;
  /// Whether anything is dropped.
  bool dropping() const { return dropout_rate > 0 || dropout_rate_h > 0; }
  ComputationGraph *_cg; ///< the present graph, null before new_graph()
};

/// The same network with three nodes a step: gates, cell, output. Its forget bias is 1.
struct CompactVanillaLSTMBuilder : public VanillaLSTMBuilder {
  /// A builder without layers, to be assigned to.
  CompactVanillaLSTMBuilder() {}
  /// As VanillaLSTMBuilder.
  CompactVanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                            ParameterCollection &model);
  /// Weight noise is not available: std must be 0, else std::invalid_argument.
  void set_weightnoise(float std);

protected:
  Expression add_input_impl(int prev, const Expression &x) override;
};

/// DyNet's usual name.
typedef VanillaLSTMBuilder LSTMBuilder;

} // namespace dynet
#endif
