// The recorder: turns calls of expression functions into the flat words of the wire
// format. There is one, since DyNet allows one graph at a time, and its buffers serve
// one graph after another. Dims are interned; what a node's dim is depends only on the
// operation, its attributes and the dims of its arguments, so answers of the shape rules
// are remembered.
#ifndef DYNETSHIM_RECORDER_H
#define DYNETSHIM_RECORDER_H

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "../adapter/vpps/installed/own_nodes.hpp"
#include "../adapter/vpps/installed/patches.hpp"
#include "buffer.h"
#include "dynet/dynet.h"
#include "ops.h"

namespace dynet {

typedef vpps::installed::patch Patch;

// A trainable leaf: whose has_grad() a backward pass sets.
struct Use {
  ParameterStorageBase *storage; // null: it is gone
  uint32_t node;
  enum Kind { Dense, Row, Rows } kind;
};

// A node of the program's own class. The engine is told of an input, whose values the class
// computes.
struct OwnNode : vpps::installed::own_node {
  std::unique_ptr<Node> owner; // of the node
};

// Where the program has put a node that would be elsewhere: a leaf by its device argument or its
// parameter's device, a copy between devices.
struct Place {
  uint32_t node;
  Device *device; // null: where its first argument is
  bool copy;
};

// How much of a graph there is; a graph goes back to one at revert() and when a
// function that adds two nodes fails at the second.
struct Mark {
  size_t words, nodes, inputs, patches, uses, trainable, own, places;
};

class Recorder {
public:
  // Begins the graph with this id, with empty buffers.
  void open(ComputationGraph *graph, unsigned id);
  void close();

  uint32_t count() const { return static_cast<uint32_t>(node_dims.size()); }
  Mark mark() const;
  void rewind(const Mark &m);

  const Dim &dim(uint32_t node) const { return shown[node_dims[node]]; }
  unsigned batch(const Expression &x) {
    own(x);
    return wire_dims[node_dims[x.i]].bd;
  }
  // Throws unless x is a node of the present graph.
  void own(const Expression &x) const {
    if (x.graph_id != id || x.i >= count())
      foreign(x);
  }
  void own(const ComputationGraph &g) const {
    if (g.get_id() != id)
      foreign_graph();
  }

  // One argument, and its dim.
  Expression unary(uint32_t op, const Expression &x) {
    own(x);
    uint32_t *w = words.room(2), *d = node_dims.room(1);
    uint32_t id = node_dims[x.i];
    w[0] = op | id << 8;
    w[1] = x.i;
    *d = id;
    words.took(2);
    return took();
  }
  Expression unary(uint32_t op, const Expression &x, float attribute) {
    own(x);
    uint32_t *w = words.room(3), *d = node_dims.room(1);
    uint32_t id = node_dims[x.i];
    w[0] = op | id << 8;
    w[1] = x.i;
    std::memcpy(w + 2, &attribute, sizeof attribute);
    *d = id;
    words.took(3);
    return took();
  }
  // Two arguments; when their dims are equal, so is the result's.
  Expression elementwise(uint32_t op, const Expression &x, const Expression &y) {
    own(x);
    own(y);
    if (node_dims[x.i] != node_dims[y.i]) {
      uint32_t xy[2] = {x.i, y.i};
      return node(op, xy, 2, nullptr, 0);
    }
    uint32_t *w = words.room(3), *d = node_dims.room(1);
    uint32_t id = node_dims[x.i];
    w[0] = op | id << 8;
    w[1] = x.i;
    w[2] = y.i;
    *d = id;
    words.took(3);
    return took();
  }
  // Any node with arguments.
  Expression node(uint32_t op, const uint32_t *args, uint32_t nargs, const uint32_t *attrs,
                  uint32_t nattrs, const Dim *wanted = nullptr);
  Expression node(uint32_t op, const Expression *xs, size_t n, const uint32_t *attrs = nullptr,
                  uint32_t nattrs = 0);
  // A leaf. dim_id from intern().
  Expression leaf(uint32_t op, uint32_t dim_id, const uint32_t *attrs, uint32_t nattrs) {
    uint32_t *w = words.room(1 + nattrs), *d = node_dims.room(1);
    w[0] = op | dim_id << 8;
    for (uint32_t i = 0; i < nattrs; ++i)
      w[1 + i] = attrs[i];
    *d = dim_id;
    words.took(1 + nattrs);
    return took();
  }
  uint32_t intern(const Dim &d); // checks sizes too
  uint32_t intern_row(LookupParameterStorage &p);
  uint32_t intern_all(ParameterStorageBase &p);

  // A parameter is going away. Nodes of DyNet's keep theirs: so a graph that has nodes keeps all.
  void release(const std::shared_ptr<Engine> &engine, const ParameterStorageBase &p);
  void destroy_released();
  // Reads what the pointers of nodes first..last point to.
  void patch(uint32_t first, uint32_t last) {
    vpps::installed::read_patches(patches, inputs, first, last);
  }
  // The words of a node, read back. Words of its arguments come first, then its attributes.
  struct Read {
    uint32_t op, nargs;
    const uint32_t *args, *attributes;
    size_t next; // where the next node's words begin
  };
  Read read(size_t at) const;
  size_t words_of(uint32_t nodes) const; // how many words the first nodes have
  // The program's own node of that number; null: it is none.
  OwnNode *own_node(VariableIndex i);
  uint64_t rewinds; // how often nodes were taken back

  // Notes the device of a leaf that was just recorded; null: the default.
  const Expression &on(Device *device, const Expression &leaf) {
    if (device != default_device && device != nullptr)
      put(leaf.i, device, false);
    return leaf;
  }
  void put(VariableIndex i, Device *device, bool copy);
  Device *device(VariableIndex i);
  const Place *place(VariableIndex i) const; // null: none was noted
  // Throws if one of the nodes up to last has arguments of another device.
  void check_devices(VariableIndex last) {
    if (places.size() > 0)
      refuse_mixed_devices(last);
  }

  ComputationGraph *graph;
  unsigned id;        // of the graph, 0: none
  uint32_t epoch;     // changes with every graph: dates what was remembered of the last
  bool immediate;     // nodes have values once they are complete, as far as a program can tell
  bool postponed;     // some do not have them yet
  bool ahead;         // nodes were evaluated that the program has not asked for
  bool exposed;       // a program has a parameter's memory, and may write to it at any time
  bool awaits_inputs; // the node being recorded gets its input words next
  // Whether no program can tell when the nodes from the given one on are evaluated, as long as
  // settle() is called in time: no pointer is read, and no code of the program's own computes one.
  bool timeless(uint32_t from) const {
    return !exposed && (patches.size() == 0 || patches[patches.size() - 1].node < from) &&
           (own_nodes.empty() || own_nodes.back().i < from);
  }
  // Evaluates the nodes that immediate postponed.
  void evaluate_postponed() {
    if (postponed)
      evaluate_all();
  }
  // Before anything changes that nodes read: they have the values then that they had in DyNet.
  void settle() {
    evaluate_postponed();
    if (ahead)
      take_back();
  }
  void inputs_complete(const Expression &e) {
    awaits_inputs = false;
    if (immediate)
      evaluate(e.i);
  }

  Buffer<uint32_t> words, node_dims, inputs;
  Buffer<vpps_dim> wire_dims;
  std::deque<Dim> shown; // the same dims, at addresses that stay
  Buffer<Patch> patches;
  Buffer<Use> uses;
  std::deque<OwnNode> own_nodes; // ascending; at addresses that stay
  Buffer<Place> places;          // ascending
  std::vector<std::pair<std::shared_ptr<Engine>, uint32_t>> released; // parameters and their ids

private:
  struct Known { // an answer of the shape rules
    static const uint32_t most = 8;
    uint32_t epoch, op, result; // op and the number of arguments
    uint32_t key[most];         // the dims of the arguments, then attributes
  };
  struct Slot {
    uint32_t epoch, id;
  };

  Expression took() {
    node_dims.took(1);
    VariableIndex i = count() - 1;
    if (immediate && !awaits_inputs)
      evaluate(i);
    return Expression(graph, i, id);
  }
  void evaluate(VariableIndex i);
  void evaluate_all();
  void take_back();
  void locate(VariableIndex last);
  void unlocate(uint32_t nodes); // but the first
  void refuse_mixed_devices(VariableIndex last);
  uint32_t infer(uint32_t op, const uint32_t *args, uint32_t nargs, const uint32_t *attrs,
                 uint32_t nattrs, const Dim *wanted);
  uint32_t ask(uint32_t op, const uint32_t *args, uint32_t nargs, const uint32_t *attrs,
               const Dim *wanted);
  uint32_t intern(const vpps_dim &d);
  uint32_t *room_for_arguments(uint32_t op, size_t n); // and attributes
  // Makes a node of arguments that stand after the last node's words.
  Expression complete(uint32_t op, uint32_t nargs, const uint32_t *attrs, uint32_t nattrs,
                      const Dim *wanted);
  void grow_slots();
  [[noreturn]] void foreign(const Expression &x) const;
  [[noreturn]] void foreign_graph() const;

  static const uint32_t known_size = 1024;
  Known known_[known_size];
  std::vector<Slot> slots_;
  std::vector<const vpps_dim *> dims_of_args_;
  // The devices of the first nodes, if there are places, and how many words these nodes have.
  std::vector<Device *> located_;
  size_t located_words_ = 0;
  static const uint32_t none = ~0u;
  uint32_t mixed_ = none, mixed_argument_ = none; // the first node with arguments of another device
};

extern Recorder recorder;

// Takes back what was recorded since, unless done() was called.
class Undo {
public:
  Undo() : mark_(recorder.mark()), active_(true) {}
  ~Undo() {
    if (active_ && !recorder.immediate) // what was evaluated stays
      recorder.rewind(mark_);
  }
  Expression done(const Expression &e) {
    active_ = false;
    return e;
  }

private:
  Mark mark_;
  bool active_;
};

inline uint32_t float_bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}

} // namespace dynet
#endif
