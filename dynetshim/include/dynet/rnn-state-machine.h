/// \file
/// RNNStateMachine: the order in which a recurrent builder is used.
#ifndef DYNET_RNN_STATE_MACHINE_H_
#define DYNET_RNN_STATE_MACHINE_H_

namespace dynet {

/// How far a builder is.
enum RNNState {
  CREATED,      ///< it has no graph yet
  GRAPH_READY,  ///< new_graph() was called
  READING_INPUT ///< start_new_sequence() was called
};
/// What is done with a builder.
enum RNNOp {
  new_graph,          ///< allowed at any time
  start_new_sequence, ///< needs a graph
  add_input           ///< needs a sequence; set_h() and set_s() count as it
};

/// Checks that a builder's calls come in order: new_graph, start_new_sequence, add_input.
class RNNStateMachine {
public:
  /// A builder that has no graph yet.
  RNNStateMachine() : q_(CREATED) {}
  /// Takes a step. One that the state does not allow: std::invalid_argument, and the state stays.
  void transition(RNNOp op);
  /// Throws std::invalid_argument, which names the state, the step and the cure.
  [[noreturn]] void failure(RNNOp op);

private:
  RNNState q_;
};

} // namespace dynet
#endif
