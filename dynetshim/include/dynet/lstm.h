// LSTM builders. The state of a layer is a cell c and a hidden vector h; states are
// listed as all cells, then all hidden vectors, lowest layer first.
#ifndef DYNET_LSTM_H
#define DYNET_LSTM_H

#include <vector>

#include "dynet/rnn.h"

namespace dynet {

// i, f, o = logistic, g = tanh of Wx*x + Wh*h + b (forget_bias added to f's part),
// c = f*c + i*g, h = o*tanh(c). Parameters per layer: Wx {4H,I}, Wh {4H,H}, b {4H}, the
// rows in the order i, f, o, g. 15 nodes a step, 13 where there is no state before.
struct VanillaLSTMBuilder : public RNNBuilder {
  VanillaLSTMBuilder();
  // ln_lstm (layer normalisation) is not available: std::invalid_argument.
  VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                     ParameterCollection &model, bool ln_lstm = false, float forget_bias = 1.f);

  Expression back() const override;
  std::vector<Expression> final_h() const override;
  std::vector<Expression> get_h(RNNPointer i) const override;
  std::vector<Expression> final_s() const override;
  std::vector<Expression> get_s(RNNPointer i) const override;
  unsigned num_h0_components() const override { return 2 * layers; }
  void copy(const RNNBuilder &other) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

  // Drops inputs with probability d and the state before with d_r, with one mask per
  // layer and sequence. Outside [0,1]: std::invalid_argument.
  void set_dropout(float d) override { set_dropout(d, d); }
  void set_dropout(float d, float d_r);
  void disable_dropout() override { set_dropout(0, 0); }
  // Draws the masks of a sequence; the first add_input does it with x's batch size.
  void set_dropout_masks(unsigned batch_size = 1);

  ParameterCollection local_model;
  std::vector<std::vector<Parameter>> params; // by layer: Wx, Wh, b
  std::vector<std::vector<Parameter>> ln_params;
  std::vector<std::vector<Expression>> param_vars, ln_param_vars;
  std::vector<std::vector<Expression>> masks; // by layer: of x and of h
  std::vector<std::vector<Expression>> h, c;  // by step and layer
  bool has_initial_state;
  std::vector<Expression> h0, c0;
  unsigned layers, input_dim, hid;
  float dropout_rate_h;
  bool ln_lstm;
  float forget_bias;
  bool dropout_masks_valid;

protected:
  VanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                     ParameterCollection &model, const char *name, float forget_bias);
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override;
  std::vector<Expression> missing(const std::vector<std::vector<Expression>> &steps,
                                  const std::vector<Expression> &initial,
                                  const std::vector<Expression> &given) const;
  bool dropping() const { return dropout_rate > 0 || dropout_rate_h > 0; }
  ComputationGraph *_cg;
};

// The same network, three nodes a step: gates, cell, output. Its forget bias is 1.
struct CompactVanillaLSTMBuilder : public VanillaLSTMBuilder {
  CompactVanillaLSTMBuilder() {}
  CompactVanillaLSTMBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                            ParameterCollection &model);
  // Anything but 0: std::invalid_argument.
  void set_weightnoise(float std);

protected:
  Expression add_input_impl(int prev, const Expression &x) override;
};

typedef VanillaLSTMBuilder LSTMBuilder;

} // namespace dynet
#endif
