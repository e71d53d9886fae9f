// RNNBuilder: what recurrent networks have in common. A builder is used in this order:
// new_graph, start_new_sequence, add_input as often as needed; another order is
// std::invalid_argument.
#ifndef DYNET_RNN_H
#define DYNET_RNN_H

#include <vector>

#include "dynet/dynet.h"
#include "dynet/expr.h"

namespace dynet {

typedef int RNNPointer; // a step of the sequence; -1: before the first

class RNNBuilder {
public:
  RNNBuilder() : cur(-1), dropout_rate(0), state_(Created) {}
  virtual ~RNNBuilder() {}

  RNNPointer state() const { return cur; }
  // Brings the parameters into the graph; update = false: without gradients.
  void new_graph(ComputationGraph &cg, bool update = true);
  // h_0: the initial state, in the order of final_s.
  void start_new_sequence(const std::vector<Expression> &h_0 = std::vector<Expression>());
  // Goes on from the present step or any earlier one; returns the top layer's output.
  Expression add_input(const Expression &x);
  Expression add_input(const RNNPointer &prev, const Expression &x);
  // A step whose hidden state, or whole state, is given.
  Expression set_h(const RNNPointer &prev,
                   const std::vector<Expression> &h_new = std::vector<Expression>());
  Expression set_s(const RNNPointer &prev,
                   const std::vector<Expression> &s_new = std::vector<Expression>());
  void rewind_one_step();
  RNNPointer get_head(const RNNPointer &p) const;

  virtual void set_dropout(float d) { dropout_rate = d; }
  virtual void disable_dropout() { dropout_rate = 0; }
  virtual Expression back() const = 0;
  virtual std::vector<Expression> final_h() const = 0;
  virtual std::vector<Expression> get_h(RNNPointer i) const = 0;
  virtual std::vector<Expression> final_s() const = 0;
  virtual std::vector<Expression> get_s(RNNPointer i) const = 0;
  virtual unsigned num_h0_components() const = 0;
  virtual void copy(const RNNBuilder &other) = 0; // shares the other's parameters
  virtual ParameterCollection &get_parameter_collection() = 0;

protected:
  virtual void new_graph_impl(ComputationGraph &cg, bool update) = 0;
  virtual void start_new_sequence_impl(const std::vector<Expression> &h_0) = 0;
  virtual Expression add_input_impl(int prev, const Expression &x) = 0;
  virtual Expression set_h_impl(int prev, const std::vector<Expression> &h_new) = 0;
  virtual Expression set_s_impl(int prev, const std::vector<Expression> &s_new) = 0;

  RNNPointer cur;
  float dropout_rate;

private:
  enum State { Created, GraphReady, ReadingInput };
  void expect(State at_least, const char *operation) const;
  void check_step(RNNPointer p) const;
  State state_;
  std::vector<RNNPointer> head; // the step before each
};

} // namespace dynet
#endif
