/// \file
/// GRUBuilder: gated recurrent units.
#ifndef DYNET_GRU_H
#define DYNET_GRU_H

#include <vector>

#include "dynet/rnn.h"

namespace dynet {

/// z, r = logistic(Wx*x + Wh*h + b), c = tanh(Wx*x + Wh*(r.h) + b), h' = z.c + (1-z).h, "." element
/// by element. Parameters of a layer, for each of z, r and c: Wx {H,I}, Wh {H,H}, b {H}.
struct GRUBuilder : public RNNBuilder {
  /// A builder without layers, to be assigned to.
  GRUBuilder() : hidden_dim(0), layers(0) {}
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of an output.
  explicit GRUBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                      ParameterCollection &model);
  Expression back() const override;
  std::vector<Expression> final_h() const override { return h.empty() ? h0 : h.back(); }
  std::vector<Expression> final_s() const override { return final_h(); }
  std::vector<Expression> get_h(RNNPointer i) const override;
  std::vector<Expression> get_s(RNNPointer i) const override { return get_h(i); }
  /// One for each layer.
  unsigned num_h0_components() const override { return layers; }
  /// Drops elements of every layer's input, and of what add_input() returns, anew at each step.
  void set_dropout(float d) override;
  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

  std::vector<std::vector<Parameter>> params;      ///< by layer: Wx, Wh, b of z, r and c
  std::vector<std::vector<Expression>> param_vars; ///< by layer: params in the present graph

protected:
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override {
    return set_h_impl(prev, s_new);
  }

  ParameterCollection local_model;        ///< the parameters of all layers
  std::vector<std::vector<Expression>> h; ///< by step and layer: outputs {H}xB
  std::vector<Expression> h0;             ///< by layer: the initial outputs; empty: zero
  unsigned hidden_dim;                    ///< H, the rows of an output
  unsigned layers;                        ///< the number of layers
};

} // namespace dynet
#endif
