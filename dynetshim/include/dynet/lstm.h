/// \file
/// LSTM builders. The state of a layer is a cell c and a hidden vector h. A state is listed as all
/// cells, then all hidden vectors, lowest layer first. Below, "." multiplies element by element.
#ifndef DYNET_LSTM_H_
#define DYNET_LSTM_H_

#include <vector>

#include "dynet/lstm-state.h"

namespace dynet {

/// An LSTM whose forget gate is 1 minus its input gate, and whose gates read the cell:
/// i = logistic(Wx*x + Wh*h + Wc*c + b), g = tanh(Wx*x + Wh*h + b), c' = (1-i).c + i.g,
/// o = logistic(Wx*x + Wh*h + Wc*c' + b), h' = o.tanh(c'). Parameters of a layer: Wx {H,I}, Wh
/// {H,H}, Wc {H,H}, b {H} of i and of o, then Wx, Wh, b of g.
struct CoupledLSTMBuilder : public LSTMStates {
  /// A builder without layers, to be assigned to.
  CoupledLSTMBuilder();
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of cells and outputs.
  explicit CoupledLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                              ParameterCollection &model);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;

  /// Drops inputs, hidden vectors and what the gates read of cells with probability d.
  void set_dropout(float d) override { set_dropout(d, d, d); }
  /// Drops inputs with probability d, the hidden vectors before with d_h, and what the gates read
  /// of cells with d_c, by one mask for each layer and sequence. Outside [0,1]:
  /// std::invalid_argument.
  void set_dropout(float d, float d_h, float d_c);
  void disable_dropout() override { set_dropout(0, 0, 0); }
  /// Draws the masks of a sequence. Without this call the first add_input() does it, with the batch
  /// size of its input.
  void set_dropout_masks(unsigned batch_size = 1);

  std::vector<std::vector<Expression>> masks; ///< by layer: the masks of x, of h and of c
  unsigned input_dim;                         ///< I, the rows of an input
  bool dropout_masks_valid;                   ///< whether the sequence's masks are drawn
  float dropout_rate_h;                       ///< the probability to drop from the h before
  float dropout_rate_c;                       ///< the probability to drop from what reads a cell

protected:
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  /// Whether anything is dropped.
  bool dropping() const { return dropout_rate > 0 || dropout_rate_h > 0 || dropout_rate_c > 0; }
};

/// i, f, o = logistic, g = tanh of Wx*x + Wh*h + b (forget_bias added to f's part), c' = f.c + i.g,
/// h' = o.tanh(c'). Parameters of a layer: Wx {4H,I}, Wh {4H,H}, b {4H}, the rows in the order i,
/// f, o, g. A step has 15 nodes, 13 where there is no state before.
///
/// With ln_lstm the sum is b + N(Wx*x) + N(Wh*h), and h' = o.tanh(N(c')). N is layer normalisation:
/// gain.(v - mean)/deviation + bias. Its parameters, for each layer gain and bias of Wh*h, of Wx*x
/// {4H} and of c' {H}, are in the collection that the builder was made with, as in DyNet.
struct VanillaLSTMBuilder : public LSTMStates {
  /// A builder without layers, to be assigned to.
  VanillaLSTMBuilder();
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of cells and outputs. ln_lstm: normalises layers.
  explicit VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                              ParameterCollection &model, bool ln_lstm = false,
                              float forget_bias = 1.f);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;

  /// Drops inputs and the state before with probability d.
  void set_dropout(float d) override { set_dropout(d, d); }
  /// Drops inputs with probability d and the state before with probability d_r, by one mask for
  /// each layer and sequence. Outside [0,1]: std::invalid_argument.
  void set_dropout(float d, float d_r);
  void disable_dropout() override { set_dropout(0, 0); }
  /// Draws the masks of a sequence. Without this call the first add_input() does it, with the batch
  /// size of its input.
  void set_dropout_masks(unsigned batch_size = 1);

  std::vector<std::vector<Parameter>> ln_params;      ///< by layer: gain and bias of Wh*h, Wx*x, c
  std::vector<std::vector<Expression>> ln_param_vars; ///< by layer: ln_params in the present graph
  std::vector<std::vector<Expression>> masks;         ///< by layer: the masks of x and of h
  unsigned input_dim;                                 ///< I, the rows of an input
  float dropout_rate_h;                               ///< the probability to drop from the h before
  bool ln_lstm;                                       ///< whether layers are normalised
  float forget_bias;                                  ///< added to the forget gate
  bool dropout_masks_valid;                           ///< whether the sequence's masks are drawn

protected:
  /// A builder whose parameters go to the subcollection name; the derived class makes them.
  VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                     ParameterCollection &model, const char *name, bool ln_lstm, float forget_bias);
  /// Makes Wx, Wh and b of a layer.
  std::vector<Parameter> make_layer(unsigned layer);
  /// Makes the normalisation's parameters of a layer in model.
  void make_normalisation(ParameterCollection &model);
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  /// Whether anything is dropped.
  bool dropping() const { return dropout_rate > 0 || dropout_rate_h > 0; }
};

/// DyNet's usual name.
typedef VanillaLSTMBuilder LSTMBuilder;

/// VanillaLSTMBuilder whose matrices are multiplied by masks of zeros and ones, which do not train.
/// Parameters of a layer: Wx, Wh, the masks of both, b. `params` lists them as Wx, Wh, b, masks.
struct SparseLSTMBuilder : public VanillaLSTMBuilder {
  /// A builder without layers, to be assigned to.
  SparseLSTMBuilder() {}
  /// As VanillaLSTMBuilder, in a subcollection of the same name. All masks are ones.
  explicit SparseLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                             ParameterCollection &model, bool ln_lstm = false,
                             float forget_bias = 1.f);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;
  /// Sets the masks so that the given fraction of all weights, those nearest to zero, is zero. In
  /// DyNet, too, it is a fraction in [0,1], not a percentage; else std::invalid_argument.
  void set_sparsity(float percent);

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override;
};

/// VanillaLSTMBuilder's network with three nodes a step: gates, cell, output. Its forget bias is 1.
struct CompactVanillaLSTMBuilder : public VanillaLSTMBuilder {
  /// A builder without layers, to be assigned to.
  CompactVanillaLSTMBuilder() : weightnoise_std(0) {}
  /// As VanillaLSTMBuilder.
  explicit CompactVanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                                     ParameterCollection &model);
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;
  /// Adds normal noise of deviation std to Wx, Wh and b, drawn anew at each step. DyNet forms no
  /// products in such steps, so that its outputs ignore the inputs. Negative:
  /// std::invalid_argument.
  void set_weightnoise(float std);

  float weightnoise_std; ///< the noise's deviation; 0: none

protected:
  Expression add_input_impl(int prev, const Expression &x) override;
};

} // namespace dynet
#endif
