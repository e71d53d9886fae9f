// LSTMs over trees.
#include "dynet/treelstm.h"

#include "builders.h"

namespace dynet {

// ---- TreeLSTMBuilder: what trees lack ----------------------------------------------

namespace {

[[noreturn]] void for_sequences(const char *call) {
  throw std::runtime_error(std::string(call) + " is not for trees: nodes and their outputs are " +
                           "what add_input(id, children, x) takes and returns");
}

// The place of node id among nodes, made if it is new.
template <class Node> Node &place(std::vector<Node> &nodes, int id) {
  if (id < 0)
    throw std::invalid_argument("add_input: node " + std::to_string(id) + ": numbers begin with 0");
  if (static_cast<size_t>(id) >= nodes.size())
    nodes.resize(static_cast<size_t>(id) + 1);
  return nodes[static_cast<size_t>(id)];
}

[[noreturn]] void no_child(int child) {
  throw std::invalid_argument("add_input: child " + std::to_string(child) +
                              " was not added yet: add children first");
}

Expression of_child(const std::vector<Expression> &h, int child) {
  if (child < 0 || static_cast<size_t>(child) >= h.size() ||
      h[static_cast<size_t>(child)].pg == nullptr)
    no_child(child);
  return h[static_cast<size_t>(child)];
}

std::vector<Expression> of_children(const std::vector<Expression> &h,
                                    const std::vector<int> &children) {
  std::vector<Expression> outputs(children.size());
  for (size_t i = 0; i < children.size(); ++i)
    outputs[i] = of_child(h, children[i]);
  return outputs;
}

// Reads x, then the children's outputs.
Expression read(LSTMBuilder &lstm, const Expression &x, const std::vector<Expression> &children) {
  Expression last = lstm.add_input(RNNPointer(-1), x);
  for (const Expression &child : children)
    last = lstm.add_input(lstm.state(), child);
  return last;
}

size_t room(int length) {
  if (length < 0)
    throw std::invalid_argument("set_num_elements: needs a number of 0 or more");
  return static_cast<size_t>(length);
}

} // namespace

Expression TreeLSTMBuilder::back() const { for_sequences("back"); }
std::vector<Expression> TreeLSTMBuilder::final_h() const { for_sequences("final_h"); }
std::vector<Expression> TreeLSTMBuilder::final_s() const { for_sequences("final_s"); }
std::vector<Expression> TreeLSTMBuilder::get_h(RNNPointer) const { for_sequences("get_h"); }
std::vector<Expression> TreeLSTMBuilder::get_s(RNNPointer) const { for_sequences("get_s"); }
unsigned TreeLSTMBuilder::num_h0_components() const { for_sequences("num_h0_components"); }
void TreeLSTMBuilder::copy(const RNNBuilder &) {
  throw std::runtime_error("copy: this builder does not share parameters: assign it instead");
}
Expression TreeLSTMBuilder::add_input_impl(int, const Expression &) {
  for_sequences("add_input without children");
}
Expression TreeLSTMBuilder::set_h_impl(int, const std::vector<Expression> &) {
  for_sequences("set_h");
}
Expression TreeLSTMBuilder::set_s_impl(int, const std::vector<Expression> &) {
  for_sequences("set_s");
}

// ---- NaryTreeLSTMBuilder -----------------------------------------------------------

namespace {
enum { X2I, BI, X2F, BF, X2O, BO, X2C, BC };      // of a layer's params
enum { H2I, H2F, H2O, H2C, C2I, C2F, C2O, NONE }; // of its lparams
} // namespace

NaryTreeLSTMBuilder::NaryTreeLSTMBuilder()
    : has_initial_state(false), layers(0), N(0), cg(nullptr) {}

NaryTreeLSTMBuilder::NaryTreeLSTMBuilder(unsigned N, unsigned layers, unsigned input_dim,
                                         unsigned hidden_dim, ParameterCollection &model)
    : local_model(model.add_subcollection("nary-tree-lstm-builder")), has_initial_state(false),
      layers(layers), N(N), cg(nullptr) {
  if (N == 0)
    throw std::invalid_argument("NaryTreeLSTMBuilder: N must be above 0");
  const Dim square({hidden_dim, hidden_dim});
  for (unsigned i = 0; i < layers; ++i) {
    std::vector<Parameter> p;
    std::vector<LookupParameter> of_h(4), of_c;
    for (int gate : {H2I, H2F, H2O, H2C}) { // names are numbered in this order
      const unsigned rows = gate == H2F ? N * N : N;
      p.push_back(local_model.add_parameters({hidden_dim, i == 0 ? input_dim : hidden_dim}));
      of_h[static_cast<size_t>(gate)] = local_model.add_lookup_parameters(rows, square);
      if (gate != H2C)
        of_c.push_back(local_model.add_lookup_parameters(rows, square));
      p.push_back(local_model.add_parameters({hidden_dim}, ParameterInitConst(0.f)));
    }
    params.push_back(p);
    of_h.insert(of_h.end(), of_c.begin(), of_c.end());
    lparams.push_back(of_h);
  }
}

void NaryTreeLSTMBuilder::new_graph_impl(ComputationGraph &graph, bool update) {
  cg = &graph;
  param_vars = leaves(graph, params, update);
  lparam_vars.assign(layers, std::vector<std::vector<Expression>>());
  for (unsigned i = 0; i < layers; ++i)
    for (const LookupParameter &p : lparams[i]) {
      const Dim &all = p.p.unexposed()->all_dim;
      lparam_vars[i].push_back(std::vector<Expression>(all[all.nd - 1]));
    }
}

void NaryTreeLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  check_count("start_new_sequence", h_0.size(), 0, 2 * layers);
  h.clear();
  c.clear();
  has_initial_state = !h_0.empty();
  if (has_initial_state) {
    c0.assign(h_0.begin(), h_0.begin() + layers);
    h0.assign(h_0.begin() + layers, h_0.end());
  }
}

void NaryTreeLSTMBuilder::set_num_elements(int length) {
  h.resize(room(length));
  c.resize(room(length));
}

Expression NaryTreeLSTMBuilder::Lookup(unsigned layer, unsigned p_type, unsigned value) {
  Expression &row = lparam_vars[layer][p_type][value];
  if (row.pg == nullptr)
    row = lookup(*cg, lparams[layer][p_type], value);
  return row;
}

Expression NaryTreeLSTMBuilder::add_input(int id, std::vector<int> children, const Expression &x) {
  if (param_vars.size() != layers || cg == nullptr)
    throw std::invalid_argument("add_input: call new_graph and start_new_sequence first");
  for (int child : children)
    if (child < 0 || static_cast<size_t>(child) >= h.size() ||
        h[static_cast<size_t>(child)].size() != layers)
      no_child(child);
  const unsigned count = static_cast<unsigned>(children.size());
  std::vector<Expression> ht(layers), ct(layers);
  Expression in = x;
  for (unsigned l = 0; l < layers; ++l) {
    const std::vector<Expression> &p = param_vars[l];
    // Wx*x + b + the children's part. stride: rows of the tables from one child to the next.
    auto sum = [&](int wx, int b, unsigned of_h, unsigned of_c, unsigned stride, unsigned first) {
      std::vector<Expression> terms = {p[static_cast<size_t>(b)], p[static_cast<size_t>(wx)], in};
      for (unsigned j = 0; j < count; ++j) {
        const size_t child = static_cast<size_t>(children[j]);
        const unsigned row = (j < N ? j : N - 1) * stride + first;
        terms.push_back(Lookup(l, of_h, row));
        terms.push_back(h[child][l]);
        if (of_c != NONE) {
          terms.push_back(Lookup(l, of_c, row));
          terms.push_back(c[child][l]);
        }
      }
      return affine_transform(terms);
    };
    const Expression i = logistic(sum(X2I, BI, H2I, C2I, 1, 0));
    std::vector<Expression> kept;
    for (unsigned k = 0; k < count; ++k)
      kept.push_back(logistic(sum(X2F, BF, H2F, C2F, N, k < N ? k : N - 1) + 1.f));
    const Expression g = tanh(sum(X2C, BC, H2C, NONE, 1, 0));
    ct[l] = cmult(i, g);
    for (unsigned k = 0; k < count; ++k)
      kept[k] = cmult(kept[k], c[static_cast<size_t>(children[k])][l]);
    if (count > 0)
      ct[l] = dynet::sum(kept) + ct[l];
    const Expression o = logistic(sum(X2O, BO, H2O, C2O, 1, 0));
    in = ht[l] = cmult(o, tanh(ct[l]));
  }
  place(h, id) = ht;
  place(c, id) = ct;
  return ht.back();
}

void NaryTreeLSTMBuilder::copy(const RNNBuilder &other) {
  const NaryTreeLSTMBuilder &o = same_kind<NaryTreeLSTMBuilder>(other);
  if (o.N != N)
    throw std::invalid_argument("copy: the other builder is for " + std::to_string(o.N) +
                                " children, this one for " + std::to_string(N));
  share(params, o.params);
  lparams = o.lparams;
}

// ---- trees by LSTMs over children --------------------------------------------------

UnidirectionalTreeLSTMBuilder::UnidirectionalTreeLSTMBuilder(unsigned layers, unsigned input_dim,
                                                             unsigned hidden_dim,
                                                             ParameterCollection &model)
    : local_model(model.add_subcollection("unidirectional-tree-lstm-builder")),
      node_builder(layers, input_dim, hidden_dim, local_model) {}

void UnidirectionalTreeLSTMBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  node_builder.new_graph(cg, update);
}

void UnidirectionalTreeLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  h.clear();
  node_builder.start_new_sequence(h_0);
}

void UnidirectionalTreeLSTMBuilder::set_num_elements(int length) { h.resize(room(length)); }

Expression UnidirectionalTreeLSTMBuilder::add_input(int id, std::vector<int> children,
                                                    const Expression &x) {
  const std::vector<Expression> outputs = of_children(h, children);
  return place(h, id) = read(node_builder, x, outputs);
}

BidirectionalTreeLSTMBuilder::BidirectionalTreeLSTMBuilder(unsigned layers, unsigned input_dim,
                                                           unsigned hidden_dim,
                                                           ParameterCollection &model) {
  if (hidden_dim % 2 != 0)
    throw std::invalid_argument("BidirectionalTreeLSTMBuilder: hidden_dim must be even, not " +
                                std::to_string(hidden_dim));
  local_model = model.add_subcollection("bidirectional-tree-lstm-builder");
  fwd_node_builder = LSTMBuilder(layers, input_dim, hidden_dim / 2, local_model);
  rev_node_builder = LSTMBuilder(layers, input_dim, hidden_dim / 2, local_model);
}

void BidirectionalTreeLSTMBuilder::new_graph_impl(ComputationGraph &cg, bool update) {
  fwd_node_builder.new_graph(cg, update);
  rev_node_builder.new_graph(cg, update);
}

void BidirectionalTreeLSTMBuilder::start_new_sequence_impl(const std::vector<Expression> &h_0) {
  h.clear();
  fwd_node_builder.start_new_sequence(h_0);
  rev_node_builder.start_new_sequence(h_0);
}

void BidirectionalTreeLSTMBuilder::set_num_elements(int length) { h.resize(room(length)); }

Expression BidirectionalTreeLSTMBuilder::add_input(int id, std::vector<int> children,
                                                   const Expression &x) {
  const std::vector<Expression> outputs = of_children(h, children);
  const Expression forward = read(fwd_node_builder, x, outputs);
  const Expression reverse =
      read(rev_node_builder, x, std::vector<Expression>(outputs.rbegin(), outputs.rend()));
  return place(h, id) = concatenate({forward, reverse});
}

} // namespace dynet
