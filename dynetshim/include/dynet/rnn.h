/// \file
/// RNNBuilder: what recurrent networks have in common; and SimpleRNNBuilder.
#ifndef DYNET_RNN_H_
#define DYNET_RNN_H_

#include <vector>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/rnn-state-machine.h"

namespace dynet {

/// A step of the sequence, counted from 0; -1: before the first step.
typedef int RNNPointer;
/// Exchanges two steps' numbers.
inline void swap(RNNPointer &a, RNNPointer &b) {
  RNNPointer t = a;
  a = b;
  b = t;
}

/// The interface of all builders. A program calls new_graph(), start_new_sequence(), then
/// add_input() as often as needed. Another order is std::invalid_argument, as is a step that the
/// sequence lacks.
class RNNBuilder {
public:
  /// A builder without a graph.
  RNNBuilder() : cur(-1), dropout_rate(0) {}
  virtual ~RNNBuilder() {}

  /// The present step.
  RNNPointer state() const { return cur; }
  /// Brings the parameters into the graph cg, which must outlive their use; update = false: without
  /// gradients.
  void new_graph(ComputationGraph &cg, bool update = true);
  /// Begins a sequence. h_0: the initial state, num_h0_components() expressions in the order of
  /// final_s(); empty: none.
  void start_new_sequence(const std::vector<Expression> &h_0 = std::vector<Expression>());
  /// Adds a step after the present one and returns the output of the top layer.
  Expression add_input(const Expression &x);
  /// Adds a step after the step prev, and returns the output of the top layer: sequences may
  /// branch.
  Expression add_input(const RNNPointer &prev, const Expression &x);
  /// Adds a step after prev whose hidden state is h_new, one expression a layer. Returns the top
  /// layer's.
  Expression set_h(const RNNPointer &prev,
                   const std::vector<Expression> &h_new = std::vector<Expression>());
  /// Adds a step after prev whose state is s_new, in the order of final_s(). Returns the top
  /// layer's hidden vector.
  Expression set_s(const RNNPointer &prev,
                   const std::vector<Expression> &s_new = std::vector<Expression>());
  /// Makes the step before the present one the present one.
  void rewind_one_step();
  /// The step before p.
  RNNPointer get_head(const RNNPointer &p) const;

  /// Sets the probability to drop an element.
  virtual void set_dropout(float d) { dropout_rate = d; }
  /// Sets that probability to 0.
  virtual void disable_dropout() { dropout_rate = 0; }
  /// The top layer's output at the present step.
  virtual Expression back() const = 0;
  /// The hidden vectors after the step made last, by layer.
  virtual std::vector<Expression> final_h() const = 0;
  /// The hidden vectors after step i, by layer; -1: the initial ones.
  virtual std::vector<Expression> get_h(RNNPointer i) const = 0;
  /// The whole state after the step made last.
  virtual std::vector<Expression> final_s() const = 0;
  /// The whole state after step i; -1: the initial state.
  virtual std::vector<Expression> get_s(RNNPointer i) const = 0;
  /// How many expressions a state has.
  virtual unsigned num_h0_components() const = 0;
  /// Makes this builder share the parameters of other, a builder of the same kind and layers.
  virtual void copy(const RNNBuilder &other) = 0;
  /// The collection that the builder's parameters are in.
  virtual ParameterCollection &get_parameter_collection() = 0;

protected:
  /// What a kind of builder does in new_graph().
  virtual void new_graph_impl(ComputationGraph &cg, bool update) = 0;
  /// What it does in start_new_sequence().
  virtual void start_new_sequence_impl(const std::vector<Expression> &h_0) = 0;
  /// What it does in add_input(): adds the nodes of a step after step prev.
  virtual Expression add_input_impl(int prev, const Expression &x) = 0;
  /// What it does in set_h().
  virtual Expression set_h_impl(int prev, const std::vector<Expression> &h_new) = 0;
  /// What it does in set_s().
  virtual Expression set_s_impl(int prev, const std::vector<Expression> &s_new) = 0;

  RNNPointer cur;     ///< the present step
  float dropout_rate; ///< the probability to drop an element

private:
  void check_step(RNNPointer p) const;
  RNNStateMachine sm;
  std::vector<RNNPointer> head; // the step before each
};

/// What builders have in common: parameters by layer, and hidden vectors of all steps. It has no
/// counterpart in DyNet, whose builders repeat it.
struct HiddenStates : public RNNBuilder {
  Expression back() const override;
  std::vector<Expression> final_h() const override { return h.empty() ? h0 : h.back(); }
  std::vector<Expression> final_s() const override { return final_h(); }
  std::vector<Expression> get_h(RNNPointer i) const override;
  std::vector<Expression> get_s(RNNPointer i) const override { return get_h(i); }
  /// One for each layer.
  unsigned num_h0_components() const override { return layers; }
  ParameterCollection &get_parameter_collection() override { return local_model; }

  ParameterCollection local_model;                 ///< the parameters of all layers
  std::vector<std::vector<Parameter>> params;      ///< by layer: parameters in the builder's order
  std::vector<std::vector<Expression>> param_vars; ///< by layer: params in the present graph
  std::vector<std::vector<Expression>> h;          ///< by step and layer: hidden vectors {H}xB
  std::vector<Expression> h0;                      ///< by layer: the initial ones; empty: zero
  unsigned layers;                                 ///< the number of layers

protected:
  /// A builder without layers.
  HiddenStates() : layers(0), _cg(nullptr) {}
  /// A builder whose parameters go to the subcollection name of model. The derived class makes
  /// them.
  HiddenStates(unsigned layers, ParameterCollection &model, const char *name);
  void new_graph_impl(ComputationGraph &cg, bool update) override;
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression set_h_impl(int prev, const std::vector<Expression> &h_new) override;
  Expression set_s_impl(int prev, const std::vector<Expression> &s_new) override {
    return set_h_impl(prev, s_new);
  }

  ComputationGraph *_cg; ///< the present graph, null before new_graph()
};

/// h = tanh(Wx*x + Wh*h + b). Parameters of a layer: Wx {H,I}, Wh {H,H}, b {H}; with lags also Wa
/// {H,H}, the last.
struct SimpleRNNBuilder : public HiddenStates {
  /// A builder without layers, to be assigned to.
  SimpleRNNBuilder();
  /// Makes the parameters of all layers in a subcollection of model. input_dim: I, the rows of an
  /// input; hidden_dim: H, the rows of an output. support_lags: add_auxiliary_input() may be
  /// called.
  explicit SimpleRNNBuilder(unsigned layers, unsigned input_dim, unsigned hidden_dim,
                            ParameterCollection &model, bool support_lags = false);

  /// Adds a step h = tanh(Wx*x + Wa*aux + Wh*h + b) after the step made last, and returns the top
  /// layer's h. aux: {H}xB, the same for all layers. As in DyNet state() and back() stay what they
  /// were. Without lags: std::invalid_argument.
  Expression add_auxiliary_input(const Expression &x, const Expression &aux);

  /// Shares the parameters of other, of as many layers.
  void copy(const RNNBuilder &other) override;
  /// Drops inputs and the state before with probability d.
  void set_dropout(float d) override { set_dropout(d, d); }
  /// Drops inputs with probability d and the state before with probability d_h, by one mask for
  /// each layer and sequence. Outside [0,1]: std::invalid_argument.
  void set_dropout(float d, float d_h);
  void disable_dropout() override { set_dropout(0, 0); }
  /// Draws the masks of a sequence. Without this call the first add_input() does it, with the batch
  /// size of its input.
  void set_dropout_masks(unsigned batch_size = 1);

protected:
  void start_new_sequence_impl(const std::vector<Expression> &h_0) override;
  Expression add_input_impl(int prev, const Expression &x) override;

private:
  std::vector<std::vector<Expression>> masks; // [layer]: of x and of h
  unsigned input_dim_, hidden_dim_;
  bool lagging;
  float dropout_rate_h;
  bool dropout_masks_valid;
};

} // namespace dynet
#endif
