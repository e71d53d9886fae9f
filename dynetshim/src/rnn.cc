// The order in which a builder is used, and its steps' predecessors.
#include "dynet/rnn.h"

#include <stdexcept>
#include <string>

namespace dynet {

void RNNBuilder::expect(State at_least, const char *operation) const {
  static const char *const names[] = {"CREATED", "GRAPH_READY", "READING_INPUT"};
  static const char *const cures[] = {"", "call new_graph first", "call start_new_sequence first"};
  if (state_ < at_least)
    throw std::invalid_argument(std::string("State transition error: currently in state ") +
                                names[state_] + " but received operation " + operation + ": " +
                                cures[state_ + 1]);
}

void RNNBuilder::check_step(RNNPointer p) const {
  if (p < -1 || p >= static_cast<int>(head.size()))
    throw std::invalid_argument("the sequence has no step " + std::to_string(p));
}

void RNNBuilder::new_graph(ComputationGraph &cg, bool update) {
  new_graph_impl(cg, update);
  state_ = GraphReady;
}

void RNNBuilder::start_new_sequence(const std::vector<Expression> &h_0) {
  expect(GraphReady, "start_new_sequence");
  cur = -1;
  head.clear();
  start_new_sequence_impl(h_0);
  state_ = ReadingInput;
}

Expression RNNBuilder::add_input(const Expression &x) { return add_input(RNNPointer(cur), x); }

Expression RNNBuilder::add_input(const RNNPointer &prev, const Expression &x) {
  expect(ReadingInput, "add_input");
  check_step(prev);
  RNNPointer before = prev;
  Expression e = add_input_impl(before, x);
  head.push_back(before);
  cur = static_cast<int>(head.size()) - 1;
  return e;
}

Expression RNNBuilder::set_h(const RNNPointer &prev, const std::vector<Expression> &h_new) {
  expect(ReadingInput, "add_input");
  check_step(prev);
  RNNPointer before = prev;
  Expression e = set_h_impl(before, h_new);
  head.push_back(before);
  cur = static_cast<int>(head.size()) - 1;
  return e;
}

Expression RNNBuilder::set_s(const RNNPointer &prev, const std::vector<Expression> &s_new) {
  expect(ReadingInput, "add_input");
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
