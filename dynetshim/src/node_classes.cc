// What add_function adds for classes of nodes whose function takes other arguments than they do,
// and objects of all classes for cg.nodes.
#include "node_classes.h"

#include <stdexcept>

#include "shape.h"

namespace dynet {

void RecordedNode::expect(const char *name, const std::vector<Expression> &x, size_t least,
                          size_t most) {
  if (x.size() < least || x.size() > most)
    throw std::invalid_argument(
        std::string(name) + " takes " + (most > least ? "at least " : "") + std::to_string(least) +
        (least == 1 ? " argument" : " arguments") +
        (most > least && most < 9 ? " and at most " + std::to_string(most) : "") + ", not " +
        std::to_string(x.size()));
}

void RecordedNode::forward_impl(const std::vector<const Tensor *> &, Tensor &) const {
  throw std::runtime_error(name + ": libvpps executes this node; ask the graph for its value");
}

void RecordedNode::backward_impl(const std::vector<const Tensor *> &, const Tensor &,
                                 const Tensor &, unsigned, Tensor &) const {
  throw std::runtime_error(name + ": libvpps executes this node; ask the graph for its gradient");
}

VariableIndex Identity::add(const std::vector<Expression> &x) {
  expect("Identity", x, 1, 1);
  return reshape(x[0], x[0].dim()).i;
}

VariableIndex ConstantMinusX::add(const std::vector<Expression> &x, real c) {
  expect("ConstantMinusX", x, 1, 1);
  return (c - x[0]).i;
}

VariableIndex ExponentialLinearUnit::add(const std::vector<Expression> &x, float lambda,
                                         float alpha) {
  expect("ExponentialLinearUnit", x, 1, 1);
  const Expression y = elu(x[0], alpha);
  return (lambda == 1 ? y : y * lambda).i;
}

VariableIndex Round::add(const std::vector<Expression> &x, bool) {
  expect("Round", x, 1, 1);
  return round(x[0], zero_gradient).i;
}

VariableIndex Ceil::add(const std::vector<Expression> &x, bool) {
  expect("Ceil", x, 1, 1);
  return ceil(x[0], zero_gradient).i;
}

VariableIndex Floor::add(const std::vector<Expression> &x, bool) {
  expect("Floor", x, 1, 1);
  return floor(x[0], zero_gradient).i;
}

VariableIndex Argmax::add(const std::vector<Expression> &x, unsigned d, bool straight_through) {
  expect("Argmax", x, 1, 1);
  if (d != 0)
    throw std::invalid_argument("Argmax: takes axis 0 only, not " + std::to_string(d) +
                                "; transpose the expression");
  return argmax(x[0], straight_through ? straight_through_gradient : zero_gradient).i;
}

VariableIndex PickBatchElements::add(const std::vector<Expression> &x, unsigned v) {
  expect("PickBatchElements", x, 1, 1);
  return pick_batch_elem(x[0], v).i;
}
VariableIndex PickBatchElements::add(const std::vector<Expression> &x, const unsigned *pv) {
  expect("PickBatchElements", x, 1, 1);
  return pick_batch_elem(x[0], pv).i;
}
VariableIndex PickBatchElements::add(const std::vector<Expression> &x,
                                     const std::vector<unsigned> &v) {
  expect("PickBatchElements", x, 1, 1);
  return pick_batch_elems(x[0], v).i;
}
VariableIndex PickBatchElements::add(const std::vector<Expression> &x,
                                     const std::vector<unsigned> *pv) {
  expect("PickBatchElements", x, 1, 1);
  return pick_batch_elems(x[0], pv).i;
}

VariableIndex InnerProduct3D_1D::add(const std::vector<Expression> &x) {
  expect("InnerProduct3D_1D", x, 2, 3);
  return (x.size() == 2 ? contract3d_1d(x[0], x[1]) : contract3d_1d(x[0], x[1], x[2])).i;
}

VariableIndex InnerProduct3D_1D_1D::add(const std::vector<Expression> &x) {
  expect("InnerProduct3D_1D_1D", x, 3, 4);
  return (x.size() == 3 ? contract3d_1d_1d(x[0], x[1], x[2])
                        : contract3d_1d_1d(x[0], x[1], x[2], x[3]))
      .i;
}

VariableIndex Conv2D::add(const std::vector<Expression> &x, const std::vector<unsigned> &stride,
                          bool is_valid) {
  expect("Conv2D", x, 2, 3);
  return (x.size() == 2 ? conv2d(x[0], x[1], stride, is_valid)
                        : conv2d(x[0], x[1], x[2], stride, is_valid))
      .i;
}

VariableIndex VanillaLSTMGates::add(const std::vector<Expression> &x, bool dropout,
                                    real weightnoise_std) {
  const size_t rest = dropout ? 6 : 4; // h, Wx, Wh, b and masks
  expect("VanillaLSTMGates", x, rest + 1, size_t(-1));
  const auto r = x.end() - static_cast<std::ptrdiff_t>(rest);
  const std::vector<Expression> parts(x.begin(), r);
  return (dropout ? vanilla_lstm_gates_dropout_concat(parts, r[0], r[1], r[2], r[3], r[4], r[5],
                                                      weightnoise_std)
                  : vanilla_lstm_gates_concat(parts, r[0], r[1], r[2], r[3], weightnoise_std))
      .i;
}

namespace {

typedef std::unique_ptr<RecordedNode> (*Make)();
template <class N> std::unique_ptr<RecordedNode> make() {
  return std::unique_ptr<RecordedNode>(new N);
}

struct Class {
  const char *name;
  Make make;
};

#define DYNET_NAMED(N, function) {#N, make<N>},
#define DYNET_ALONE(N) {#N, make<N>},
const Class classes[] = {DYNET_UNARY_NODES(DYNET_NAMED) DYNET_BINARY_NODES(DYNET_NAMED)
                             DYNET_LIST_NODES(DYNET_NAMED) DYNET_OTHER_NODES(DYNET_ALONE)
                                 DYNET_LEAF_NODES(DYNET_ALONE){"ConstLookupNode", make<LookupNode>},
                         {"VanillaLSTMGatesDropout", make<VanillaLSTMGates>}};

struct ByCode {
  Make make[256];
  ByCode() {
    for (uint32_t op = 0; op < 256; ++op) {
      make[op] = dynet::make<RecordedNode>;
      for (const Class &c : classes)
        if (vpps_op_name(op) && std::string(c.name) == vpps_op_name(op))
          make[op] = c.make;
    }
  }
};

} // namespace

std::unique_ptr<RecordedNode> make_node(uint32_t op) {
  static const ByCode by_code;
  return by_code.make[op]();
}

} // namespace dynet
