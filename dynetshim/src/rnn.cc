// The order in which a builder is used, and its steps' predecessors.
#include "dynet/rnn.h"

#include <stdexcept>
#include <string>

namespace dynet {

void RNNStateMachine::transition(RNNOp op) {
  switch (op) {
  case RNNOp::new_graph:
    q_ = GRAPH_READY;
    return;
  case RNNOp::start_new_sequence:
    if (q_ == CREATED)
      failure(op);
    q_ = READING_INPUT;
    return;
  case RNNOp::add_input:
    if (q_ != READING_INPUT)
      failure(op);
  }
}

void RNNStateMachine::failure(RNNOp op) {
  static const char *const states[] = {"CREATED", "GRAPH_READY", "READING_INPUT"};
  static const char *const ops[] = {"new_graph", "start_new_sequence", "add_input"};
  throw std::invalid_argument(std::string("State transition error: currently in state ") +
                              states[q_] + " but received operation " + ops[op] + ": call " +
                              (q_ == CREATED ? "new_graph" : "start_new_sequence") + " first");
}

void RNNBuilder::check_step(RNNPointer p) const {
  if (p < -1 || p >= static_cast<int>(head.size()))
    throw std::invalid_argument("the sequence has no step " + std::to_string(p));
}

void RNNBuilder::new_graph(ComputationGraph &cg, bool update) {
  RNNStateMachine next = sm;
  next.transition(RNNOp::new_graph);
  new_graph_impl(cg, update);
  sm = next;
}

void RNNBuilder::start_new_sequence(const std::vector<Expression> &h_0) {
  RNNStateMachine next = sm;
  next.transition(RNNOp::start_new_sequence);
  cur = -1;
  head.clear();
  start_new_sequence_impl(h_0);
  sm = next;
}

Expression RNNBuilder::add_input(const Expression &x) { return add_input(RNNPointer(cur), x); }

Expression RNNBuilder::add_input(const RNNPointer &prev, const Expression &x) {
  sm.transition(RNNOp::add_input);
  check_step(prev);
  RNNPointer before = prev;
  Expression e = add_input_impl(before, x);
  head.push_back(before);
  cur = static_cast<int>(head.size()) - 1;
  return e;
}

Expression RNNBuilder::set_h(const RNNPointer &prev, const std::vector<Expression> &h_new) {
  sm.transition(RNNOp::add_input);
  check_step(prev);
  RNNPointer before = prev;
  Expression e = set_h_impl(before, h_new);
  head.push_back(before);
  cur = static_cast<int>(head.size()) - 1;
  return e;
}

Expression RNNBuilder::set_s(const RNNPointer &prev, const std::vector<Expression> &s_new) {
  sm.transition(RNNOp::add_input);
  check_step(prev);
  RNNPointer before = prev;
  Expression e = set_s_impl(before, s_new);
  head.push_back(before);
  cur = static_cast<int>(head.size()) - 1;
  return e;
}

void RNNBuilder::rewind_one_step() { cur = get_head(cur); }

RNNPointer RNNBuilder::get_head(const RNNPointer &p) const {
  check_step(p);
  if (p < 0)
    throw std::invalid_argument("there is no step before the beginning of the sequence");
  return head[static_cast<size_t>(p)];
}

} // namespace dynet
