/// \file
/// ComputationGraph: nodes in order of creation, recorded as the flat words of the wire format and
/// handed to the engine when a value or gradient is asked for.
///
/// It differs from DyNet in three ways, all of them safer:
///
/// - A function that throws while it adds nodes leaves the graph as it was.
/// - An expression of another graph, or of an earlier one, is refused.
/// - A lookup or label out of range is std::invalid_argument in the call that evaluates it.
#ifndef DYNET_DYNET_H_
#define DYNET_DYNET_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dynet/aligned-mem-pool.h"
#include "dynet/dim.h"
#include "dynet/init.h"
#include "dynet/model.h"
#include "dynet/tensor.h"

namespace dynet {

/// The number of a node in its graph, from 0 on.
typedef unsigned VariableIndex;

/// Exchanges two numbers.
inline void swap(VariableIndex &a, VariableIndex &b) { std::swap(a, b); }

class ComputationGraph;
struct Expression;
struct GraphState;
struct RecordedNode;

/// How many graphs exist: 0 or 1.
int get_number_of_active_graphs();
/// The id of the graph made last, 0 if there was none.
unsigned get_current_graph_id();

/// DyNet's memory of which operations can be batched, which is by name only here.
struct SigMap;

/// A node: one that the library executes, as cg.nodes shows it, or an object of a program's own
/// class, which ComputationGraph::add_function adds. A class of a program has a constructor that
/// hands its first argument, a list of nodes, to Node's, and it defines dim_forward, as_string,
/// forward_impl and backward_impl. These four run on the thread that calls the graph, and what they
/// throw reaches the caller. All tensors are on the host. Changes to a node of the library count
/// for nothing.
struct Node {
  virtual ~Node() {}

  /// The shape of the value, from the arguments' shapes. add_function calls it once. It throws
  /// std::invalid_argument if they do not fit. A node of the library returns its shape.
  virtual Dim dim_forward(const std::vector<Dim> &xs) const = 0;
  /// The node as text, such as "v0 + v1", with names for the arguments: as DyNet writes it, with a
  /// parameter's number in place of its address, and a number in place of a pointer's. A lookup has
  /// its rows. Values that a pointer leads to are those of the last evaluation. Fewer names than
  /// arguments: std::invalid_argument.
  virtual std::string as_string(const std::vector<std::string> &args) const = 0;
  /// as_string() with x0, x1, ... for the arguments.
  virtual std::string as_dummy_string() const;
  /// How many bytes aux_mem points to, from a call of forward_impl to backward_impl.
  virtual size_t aux_storage_size() const { return 0; }
  /// Computes the value fx, dim.size() floats that hold anything, from the arguments' values. It
  /// may also point fx.v to an argument's. A node of the library: std::runtime_error.
  virtual void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const = 0;
  /// Adds to dEdxi the gradient of argument i, where dEdf is that of the value fx. It is called
  /// only for arguments whose gradient is wanted. A node of the library: std::runtime_error.
  virtual void backward_impl(const std::vector<const Tensor *> &xs, const Tensor &fx,
                             const Tensor &dEdf, unsigned i, Tensor &dEdxi) const = 0;
  /// Whether forward_impl and backward_impl take a value with a batch. If not, such a value is
  /// std::runtime_error from the call that evaluates it.
  virtual bool supports_multibatch() const { return false; }
  /// Whether the arguments may be on other devices than the node.
  virtual bool supports_multidevice() const { return false; }
  /// Calls forward_impl, unless the value has a batch that the class does not support.
  virtual void forward(const std::vector<const Tensor *> &xs, Tensor &fx) const final;
  /// Calls backward_impl, unless the value has a batch that the class does not support.
  virtual void backward(const std::vector<const Tensor *> &xs, const Tensor &fx, const Tensor &dEdf,
                        unsigned i, Tensor &dEdxi) const final;
  ///@{
  /// How DyNet batches nodes of a class. Nothing calls these.
  virtual int autobatch_sig(const ComputationGraph &, SigMap &) const { return 0; }
  virtual std::vector<int> autobatch_concat(const ComputationGraph &) const {
    return std::vector<int>();
  }
  virtual Node *autobatch_pseudo_node(const ComputationGraph &,
                                      const std::vector<VariableIndex> &) const {
    return nullptr;
  }
  virtual void autobatch_reshape(const ComputationGraph &, const std::vector<VariableIndex> &,
                                 const std::vector<int> &, std::vector<const Tensor *> &,
                                 Tensor &) const {}
  void autobatch_reshape_concatonly(const ComputationGraph &, const std::vector<VariableIndex> &,
                                    const std::vector<int> &, std::vector<const Tensor *> &,
                                    Tensor &) const {}
  ///@}

  /// The number of arguments.
  unsigned arity() const { return static_cast<unsigned>(args.size()); }
  /// Notes the graph, as add_function does.
  void set_cg(ComputationGraph *graph) { cg_ = graph; }
  /// The graph that the node is in.
  ComputationGraph *get_cg() const { return cg_; }

  std::vector<VariableIndex> args;  ///< the nodes it is computed from
  Dim dim;                          ///< the shape, which add_function fills in
  Device *device;                   ///< where it is: see to_device
  mutable void *aux_mem;            ///< aux_storage_size() bytes, null if that is 0
  bool has_cuda_implemented = true; ///< counts for nothing: programs' own nodes run on the host
  std::string name;                 ///< the name of the class. Not DyNet's

protected:
  ///@{
  /// A node with these arguments, which is in no graph yet.
  Node() : device(nullptr), aux_mem(nullptr), cg_(nullptr) {}
  explicit Node(const std::initializer_list<VariableIndex> &a)
      : args(a), device(nullptr), aux_mem(nullptr), cg_(nullptr) {}
  explicit Node(const std::initializer_list<VariableIndex> &a, Device *its_device)
      : args(a), device(its_device), aux_mem(nullptr), cg_(nullptr) {}
  template <typename T>
  explicit Node(const T &c)
      : args(c.begin(), c.end()), device(nullptr), aux_mem(nullptr), cg_(nullptr) {}
  ///@}

private:
  ComputationGraph *cg_;
};

class ExecutionEngine;

/// The nodes of the present graph, in order. Each is read from the recorded words when it is first
/// looked at, and stays until its graph is cleared, reverted or gone.
class NodeList {
public:
  typedef std::vector<Node *>::const_iterator const_iterator; ///< goes over Node *
  typedef const_iterator iterator;                            ///< the same

  /// An empty list: ComputationGraph makes it.
  NodeList();
  ~NodeList();
  /// How many nodes the graph has.
  size_t size() const;
  /// Whether it has none.
  bool empty() const { return size() == 0; }
  ///@{
  /// Node i, owned by the list, of a class of nodes.h. No such node: std::invalid_argument.
  Node *at(size_t i) const;
  Node *operator[](size_t i) const { return at(i); }
  ///@}
  /// The last node. An empty graph: std::invalid_argument.
  Node *back() const { return (*this)[size() - 1]; }
  ///@{
  /// All nodes there are now. Another node makes them invalid.
  const_iterator begin() const { return all().begin(); }
  const_iterator end() const { return all().end(); }
  ///@}
  /// Refused: functions add nodes. std::invalid_argument.
  NodeList &operator=(const std::vector<Node *> &) {
    throw std::invalid_argument("ComputationGraph::nodes: a program cannot set the list");
  }

private:
  struct Read;
  NodeList(const NodeList &);
  NodeList &operator=(const NodeList &);
  const std::vector<Node *> &all() const;
  std::unique_ptr<Read> read_; // what was looked at
};

/// A graph: expression functions add nodes to it, and its calls evaluate them. One exists at a
/// time. All tensors it returns belong to it: they last until the graph is gone, and the next call
/// for the same node overwrites them. A node that the graph lacks is std::invalid_argument.
class ComputationGraph {
public:
  ///@{
  /// An empty graph. A second one at a time is std::runtime_error. One that is made before
  /// initialize() can be used after it. batched counts for nothing.
  ComputationGraph();
  explicit ComputationGraph(bool batched);
  ///@}
  /// Batches of vpps::handle::fb that are in flight are not disturbed.
  ~ComputationGraph();

  ///@{
  /// Adds a leaf, as dynet::input does, and returns its number.
  VariableIndex add_input(real s, Device *device = default_device);
  VariableIndex add_input(const real *ps, Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<float> &data,
                          Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<float> *pdata,
                          Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<unsigned> &ids,
                          const std::vector<float> &data, Device *device = default_device,
                          float defdata = 0.f);
  ///@}
  ///@{
  /// Adds a leaf, as dynet::parameter does, and returns its number.
  VariableIndex add_parameters(Parameter p);
  VariableIndex add_parameters(LookupParameter p);
  ///@}
  ///@{
  /// Adds a leaf, as dynet::const_parameter does, and returns its number.
  VariableIndex add_const_parameters(Parameter p);
  VariableIndex add_const_parameters(LookupParameter p);
  ///@}
  ///@{
  /// Adds a leaf, as dynet::lookup does, and returns its number.
  VariableIndex add_lookup(LookupParameter p, unsigned index);
  VariableIndex add_lookup(LookupParameter p, const unsigned *pindex);
  VariableIndex add_lookup(LookupParameter p, const std::vector<unsigned> &indices);
  VariableIndex add_lookup(LookupParameter p, const std::vector<unsigned> *pindices);
  ///@}
  ///@{
  /// Adds a leaf, as dynet::const_lookup does, and returns its number.
  VariableIndex add_const_lookup(LookupParameter p, unsigned index);
  VariableIndex add_const_lookup(LookupParameter p, const unsigned *pindex);
  VariableIndex add_const_lookup(LookupParameter p, const std::vector<unsigned> &indices);
  VariableIndex add_const_lookup(LookupParameter p, const std::vector<unsigned> *pindices);
  ///@}

  ///@{
  /// Adds a node and returns its number. Of a program's own class it is made as Function(arguments,
  /// side...), and the graph owns it. Of a class of nodes.h it is what the function of expr.h adds.
  /// arguments: numbers of nodes, in a list or a container. One that the graph lacks, and what the
  /// class's constructor or dim_forward throws, leave the graph as it was. device: where a node
  /// without arguments is, null for the default.
  template <class Function, typename... Side>
  VariableIndex add_function(const std::initializer_list<VariableIndex> &arguments,
                             Side &&...side) {
    return add<Function>(std::is_base_of<RecordedNode, Function>(), nullptr, arguments,
                         std::forward<Side>(side)...);
  }
  template <class Function, typename... Side>
  VariableIndex add_function(Device *device, const std::initializer_list<VariableIndex> &arguments,
                             Side &&...side) {
    return add<Function>(std::is_base_of<RecordedNode, Function>(), device, arguments,
                         std::forward<Side>(side)...);
  }
  template <class Function, typename T, typename... Side>
  typename std::enable_if<!std::is_pointer<T>::value, VariableIndex>::type
  add_function(const T &arguments, Side &&...side) {
    return add<Function>(std::is_base_of<RecordedNode, Function>(), nullptr, arguments,
                         std::forward<Side>(side)...);
  }
  template <class Function, typename T, typename... Side>
  VariableIndex add_function(Device *device, const T &arguments, Side &&...side) {
    return add<Function>(std::is_base_of<RecordedNode, Function>(), device, arguments,
                         std::forward<Side>(side)...);
  }
  ///@}

  /// Drops all nodes; the graph keeps its id. Batches in flight are not disturbed.
  void clear();
  /// Evaluates all nodes and remembers how many there are.
  void checkpoint();
  /// Drops the nodes made since the last checkpoint(), which is forgotten. Without one: nothing
  /// happens.
  void revert();

  /// The shape of node i, valid until the next node is added. It is for reading, though not const,
  /// as in DyNet.
  Dim &get_dimension(VariableIndex i) const;

  ///@{
  /// Evaluates every node up to the given one anew: reads pointers and parameters again, and draws
  /// random nodes again. Returns the node's value.
  const Tensor &forward(const Expression &last);
  const Tensor &forward(VariableIndex i);
  ///@}
  ///@{
  /// Evaluates the nodes up to the given one that are not evaluated yet, and returns its value.
  const Tensor &incremental_forward(const Expression &last);
  const Tensor &incremental_forward(VariableIndex i);
  ///@}
  ///@{
  /// The value of a node; evaluates what is missing. After vpps::handle::fb a node that was neither
  /// evaluated before nor kept has none: std::runtime_error.
  const Tensor &get_value(VariableIndex i);
  const Tensor &get_value(const Expression &e);
  ///@}
  ///@{
  /// d(loss)/d(node) of the last backward(), in the node's shape. No backward() yet, or a node
  /// after the loss: std::runtime_error.
  const Tensor &get_gradient(VariableIndex i);
  const Tensor &get_gradient(const Expression &e);
  ///@}
  /// Makes all nodes count as not evaluated.
  void invalidate();
  ///@{
  /// Adds the gradients of the given node, which has one element, to those of the parameters.
  /// Evaluates what is missing first. full: forms gradients also for nodes that no parameter feeds.
  /// Another shape: std::invalid_argument. A value that is NaN or infinite: std::runtime_error, and
  /// gradients are as before.
  void backward(const Expression &last, bool full = false);
  void backward(VariableIndex i, bool full = false);
  ///@}

  /// If on, every new node is evaluated at once.
  void set_immediate_compute(bool on);
  /// If on, a node that is evaluated at once and is NaN or infinite is std::runtime_error.
  void set_check_validity(bool on);

  /// Prints the graph in Graphviz's language to std::cerr: Node::as_string of each node.
  void print_graphviz() const;
  /// Prints all nodes but the last, as DyNet does, to the file, or to std::cout if filename is
  /// empty: values and gradients as asked for, or whether they are finite, if nan_check_only.
  /// Evaluates what is missing. A tensor with a batch or more than two axes, or a file that cannot
  /// be written: std::runtime_error.
  void dump(const std::string &filename, bool show_values, bool show_gradients,
            bool nan_check_only);
  /// The graph's id: graphs of a process count from 1.
  unsigned get_id() const { return id_; }

  /// What vpps::handle::fb calls: forward, backward and update in one launch. Returns the loss of
  /// the call eight calls before. Not DyNet's.
  float train(vpps_handle *handle, VariableIndex loss);
  /// What vpps::handle::infer calls: the number of the answer, 0 if a node of a class of the
  /// program's own has to be computed by the host. Not DyNet's.
  uint64_t infer(const std::vector<VariableIndex> &wanted);
  /// What vpps::handle::keep calls. Not DyNet's.
  void keep(vpps_handle *handle, VariableIndex i);

  NodeList nodes;                             ///< the nodes
  std::vector<VariableIndex> parameter_nodes; ///< the leaves with parameters that train, ascending
  /// The same calls once more (exec.h): a SimpleExecutionEngine. A program may set another one,
  /// which changes nothing.
  std::unique_ptr<ExecutionEngine> ee;

private:
  friend class Recorder;
  friend class ExecutionEngine;
  void invalidate_from(VariableIndex i);
  ComputationGraph(const ComputationGraph &);
  ComputationGraph &operator=(const ComputationGraph &);
  void open();
  void join();
  friend void initialize(DynetParams &params);
  template <class Function, typename T, typename... Side>
  VariableIndex add(std::false_type, Device *device, const T &arguments, Side &&...side) {
    return add_function_node(new Function(arguments, std::forward<Side>(side)...), device);
  }
  template <class Function, typename T, typename... Side>
  VariableIndex add(std::true_type, Device *, const T &arguments, Side &&...side) {
    const std::vector<VariableIndex> list(arguments.begin(), arguments.end());
    return Function::add(expressions(list), std::forward<Side>(side)...);
  }
  std::vector<Expression> expressions(const std::vector<VariableIndex> &list);
  VariableIndex add_function_node(Node *made, Device *device);
  void node_added(VariableIndex i);
  const Tensor &fetch(VariableIndex i);

  unsigned id_;
  std::unique_ptr<GraphState> state_;
};

} // namespace dynet

#include "dynet/expr.h"
#endif
