// cg.nodes and print_graphviz: what a program sees of the nodes it made. The texts are DyNet's.
#include <dynet/dynet.h>
#include <dynet/nodes.h>

#include <cstdio>
#include <fstream>

#include "check.h"

using namespace dynet;

namespace {

std::string text(const Expression &e) { return e.pg->nodes[e.i]->as_dummy_string(); }

} // namespace

TEST(nodes_are_listed_in_order) {
  ParameterCollection m;
  Parameter w = m.add_parameters({2, 3});
  ComputationGraph cg;
  CHECK(cg.nodes.empty() && cg.nodes.begin() == cg.nodes.end());
  Expression x = input(cg, {3}, {1, 2, 3}), y = parameter(cg, w) * x, z = tanh(y);
  std::string names;
  size_t arguments = 0;
  for (Node *node : cg.nodes) {
    names += node->name + " ";
    arguments += node->arity();
    CHECK(node->device == default_device);
  }
  EQUAL(names, "InputNode ParameterNode MatrixMultiply Tanh ");
  EQUAL(arguments, 3u);
  EQUAL(cg.nodes.size(), 4u);
  EQUAL(cg.nodes[y.i]->dim, "{2}");
  CHECK(cg.nodes[y.i]->args == (std::vector<VariableIndex>{1, 0}));
  CHECK(cg.nodes.back() == cg.nodes[z.i]);
  for (const auto &node : cg.nodes)
    CHECK(node->dim.nd > 0);
  THROWS(std::invalid_argument, "no node 4", cg.nodes[4]);
  THROWS(std::invalid_argument, "1 names for 2", cg.nodes[y.i]->as_string({"a"}));
  EQUAL(cg.nodes[y.i]->as_string({"W", "x"}), "W * x");
}

TEST(nodes_follow_the_graph) {
  ComputationGraph cg;
  Expression x = input(cg, 1.f);
  Node *first = cg.nodes[0];
  exp(x);
  CHECK(cg.nodes[0] == first); // a look does not move what was there
  cg.checkpoint();
  log(x);
  EQUAL(cg.nodes.back()->name, "Log");
  cg.revert();
  sqrt(x);
  EQUAL(cg.nodes.size(), 3u);
  EQUAL(cg.nodes.back()->name, "Sqrt");
  cg.clear();
  EQUAL(cg.nodes.size(), 0u);
  input(cg, {2}, {1, 2});
  EQUAL(cg.nodes.back()->dim, "{2}");
}

TEST(nodes_as_text) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2, 2});
  LookupParameter l = m.add_lookup_parameters(9, {2});
  ComputationGraph cg;
  Expression w = parameter(cg, p), x = input(cg, {2}, {1, 2}), s = sum_elems(x);
  EQUAL(text(x), "constant({2})");
  EQUAL(text(w), "parameters({2,2}) @ " + std::to_string(p.p.unexposed()->id));
  EQUAL(text(lookup(cg, l, 7u)),
        "lookup_parameters(x=7 --> {2}) @ " + std::to_string(l.p.unexposed()->id));
  EQUAL(text(ones(cg, {2})), "constant({2},1)");
  EQUAL(text(input(cg, -.5f)), "scalar_constant(-0.5)");
  EQUAL(text(random_uniform(cg, {2}, -1, .5f)), "random_uniform({2}, -1, 0.5)");
  EQUAL(text(affine_transform({x, w, x})), "x0 + x1 * x2");
  EQUAL(text(x + x), "x0 + x1");
  EQUAL(text(sum({x, x, x})), "x0 + x1 + x2");
  EQUAL(text(average({x, x, x})), "average(x0, x1, x2)");
  EQUAL(text(cmult(x, x)), "x0 \\cdot x1");
  EQUAL(text(x / x), "x0 / x1");
  EQUAL(text(-x), "-x0");
  EQUAL(text(3.f - x), "3 - x0");
  EQUAL(text(x * 2.5f), "x0 * 2.5");
  EQUAL(text(logistic(x)), "\\sigma(x0)");
  EQUAL(text(rectify(x)), "ReLU(x0)");
  EQUAL(text(dropout(x, .25f)), "dropout(x0,p=0.25)");
  EQUAL(text(s), "sum_elems( x0 )");
  EQUAL(text(sum_dim(w, {0, 1})), "sum_dim(expression=x0,{0,1})");
  EQUAL(text(sum_dim(w, {}, true)), "sum_dim(expression=x0,})"); // so does DyNet
  EQUAL(text(mean_dim(w, {1})), "moment_dim(expression=x0,{1}), order=1");
  EQUAL(text(transpose(w)), "transpose(x0, {1,0})");
  EQUAL(text(reshape(w, {4})), "reshape(x0 --> {4})");
  EQUAL(text(concatenate({x, x})), "concat({x0,x1}, 0)");
  EQUAL(text(concatenate_to_batch({x, x})), "concat_batch_elems(x0,x1)");
  EQUAL(text(pick(x, 1u)), "pick(x0,1, 0)");
  EQUAL(text(pick(concatenate_to_batch({x, x}), std::vector<unsigned>{1, 0})), "pick(x0,[1,0], 0)");
  EQUAL(text(pick_range(x, 0, 1)), "slice(x0,0:1, dim=0)");
  EQUAL(text(pickneglogsoftmax(x, 1u)), "pickneglogsoftmax(x0)_{1}");
  EQUAL(text(hinge(x, 1u, 2)), "hinge(x0, pe=1, m=2)");
  EQUAL(text(squared_distance(x, x)), "|| x0 - x1 ||^2");
  EQUAL(text(dot_product(x, x)), "x0^T . x1");
}

TEST(more_nodes_as_text) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}), w = input(cg, {2, 2}, {1, 2, 3, 5});
  Expression t = input(cg, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), xs = concatenate_to_batch({x, x});
  const std::vector<unsigned> one = {1}, two = {1, 0};
  EQUAL(text(random_gumbel(cg, {2}, .5f, 2)), "random_gumbel({2}, 0.5, 2)");
  EQUAL(text(lgamma(x)), "lgamma(x0)");
  EQUAL(text(log_sigmoid(x)), "log_sigmoid(x0)");
  EQUAL(text(elu(x, .5f)), "ELU(x0, lambda=1, alpha=0.5)");
  EQUAL(text(silu(x, 2)), "x0*\\sigma(x0*beta), beta=2)"); // DyNet has the bracket
  EQUAL(text(flip_gradient(x)), "flip_gradient(x0)");
  EQUAL(text(atanh(x)), "atanh(x0)");
  EQUAL(text(dropout_dim(w, 1, .5f)), "dropout_dim(x0,p=0.5)");
  EQUAL(text(block_dropout(w, .5f)), "block_dropout(x0,dropout_probability=0.5)");
  EQUAL(text(std_dim(w, {1})), "std_dim(expression=x0,{1})");
  EQUAL(text(logsumexp({x, x, x})), "log(exp x0 + exp x1 + exp x2)");
  EQUAL(text(logsumexp_dim(w, 1)), "logsumexp_dim(x0, 1)");
  EQUAL(text(cumsum(w, 1)), "cumsum(expression=x0,1)");
  EQUAL(text(max_dim(w, 1)), "max_dim(x0, reduced_dim=1)");
  EQUAL(text(argmax(x, zero_gradient)), "argmax(x0)_{{2}}");
  EQUAL(text(argmax(x, straight_through_gradient)), "straight_through(x0)_{{2}}");
  EQUAL(text(kmax_pooling(w, 1, 1)), "kmaxpool(x0, k=1, d=1)");
  EQUAL(text(trace_of_product(w, w)), "Tr(x0 * x1^T)");
  EQUAL(text(contract3d_1d(t, x)), "dot(x0,x1)");
  EQUAL(text(contract3d_1d(t, x, w)), "dot(x0,x1) + x2");
  EQUAL(text(contract3d_1d_1d(t, x, x, x)), "dotdot(x0,x1,x2) + x3");
  Expression image = reshape(t, {2, 2, 2}), filter = reshape(t, {2, 2, 2, 1});
  EQUAL(text(conv2d(image, filter, {1, 1})), "conv2d(x0, f=x1)");
  EQUAL(text(conv2d(image, filter, input(cg, {1}, {1}), {1, 1})), "conv2d(x0, f=x1, b=x2)");
  EQUAL(text(l1_distance(x, x)), "|| x0 - x1 ||_1");
  EQUAL(text(huber_distance(x, x)), "|| x0 - x1 ||_H(1.345)");
  EQUAL(text(pairwise_rank_loss(transpose(x), transpose(x), .5f)), "max(0, 0.5 - x0 + x1)");
  EQUAL(text(select_rows(w, two)), "select_rows(x0, {rsize=2})");
  EQUAL(text(select_cols(w, one)), "select_cols(x0, {csize=1})");
  EQUAL(text(hinge_dim(w, two, 0, 2)), "hinge_dim(x0, pe=[1,0], d=0, m=2)");
  EQUAL(text(pickneglogsoftmax(xs, two)), "pickneglogsoftmax(x0)_{1,0}");
  EQUAL(text(sparsemax_loss(x, one)), "sparsemax(x0, q)");
}

// add_function of DyNet's classes is what the functions of expr.h are.
TEST(classes_of_nodes_are_added) {
  ParameterCollection m;
  Parameter p = m.add_parameters({3, 3}, ParameterInitFromVector({1, 2, 3, 4, 5, 6, 7, 8, 10}));
  ComputationGraph cg;
  Expression w = parameter(cg, p), x = pick(w, 1u, 1), y = pick(w, 2u, 1);
  std::vector<std::pair<VariableIndex, Expression>> pairs = {
      {cg.add_function<Softmax>({w.i}), softmax(w)},
      {cg.add_function<Softmax>({w.i}, 1), softmax(w, 1)},
      {cg.add_function<Softmax>(default_device, {w.i}, 1u), softmax(w, 1)},
      {cg.add_function<LogSoftmax>({x.i}), log_softmax(x)},
      {cg.add_function<Identity>({x.i}), x},
      {cg.add_function<Negate>({x.i}), -x},
      {cg.add_function<ConstantPlusX>({x.i}, 2.f), x + 2.f},
      {cg.add_function<ConstantMinusX>({x.i}, 2.f), 2.f - x},
      {cg.add_function<ConstScalarMultiply>({x.i}, 2.f), x * 2.f},
      {cg.add_function<ExponentialLinearUnit>({x.i}, 1.f, .5f), elu(x, .5f)},
      {cg.add_function<ExponentialLinearUnit>({x.i}, 2.f, .5f), elu(x, .5f) * 2.f},
      {cg.add_function<CwiseSum>({x.i, y.i}), x + y},
      {cg.add_function<MatrixMultiply>({w.i, x.i}), w * x},
      {cg.add_function<AffineTransform>(std::vector<VariableIndex>{y.i, w.i, x.i}),
       affine_transform({y, w, x})},
      {cg.add_function<Concatenate>({x.i, y.i}, 1u), concatenate({x, y}, 1)},
      {cg.add_function<PickElement>({x.i}, 2u), pick(x, 2u)},
      {cg.add_function<PickNegLogSoftmax>({x.i}, 2u), pickneglogsoftmax(x, 2u)},
      {cg.add_function<Hinge>({x.i}, 2u), hinge(x, 2u)},
      {cg.add_function<SumDimension>({w.i}, std::vector<unsigned>{1}), sum_dim(w, {1})},
      {cg.add_function<MomentElements>({w.i}, 2u), moment_elems(w, 2)},
      {cg.add_function<Transpose>({w.i}, std::vector<unsigned>{1, 0}), transpose(w)},
      {cg.add_function<Round>({x.i}, true), round(x, zero_gradient)},
      {cg.add_function<Argmax>({x.i}, 0u), argmax(x, zero_gradient)},
      {cg.add_function<PickBatchElements>({x.i}, std::vector<unsigned>{0}),
       pick_batch_elems(x, std::vector<unsigned>{0})},
      {cg.add_function<HuberDistance>({x.i, y.i}), huber_distance(x, y)},
      {cg.add_function<VanillaLSTMC>({x.i, concatenate({x, y, x, y}).i}),
       vanilla_lstm_c(x, concatenate({x, y, x, y}))},
  };
  for (const auto &a_b : pairs) {
    const Expression a(&cg, a_b.first), b = a_b.second;
    EQUAL(a.dim(), b.dim());
    CHECK(as_vector(a.value()) == as_vector(b.value()));
    const float before = m.gradient_l2_norm();
    cg.backward(sum_elems(a) - sum_elems(b)); // the gradients are each other's
    CHECK(m.gradient_l2_norm() == before);
  }
  const size_t nodes = cg.nodes.size();
  THROWS(std::invalid_argument, "Tanh takes 1 argument, not 2", cg.add_function<Tanh>({0, 1}));
  THROWS(std::invalid_argument, "Pow takes 2 arguments, not 1", cg.add_function<Pow>({0}));
  THROWS(std::invalid_argument, "Sum takes at least 1 argument, not 0", cg.add_function<Sum>({}));
  THROWS(std::invalid_argument, "9999", cg.add_function<Tanh>({9999}));
  THROWS(std::invalid_argument, "axis 0 only", cg.add_function<Argmax>({0}, 1u));
  EQUAL(cg.nodes.size(), nodes);
  const std::vector<Expression> none, two = {x, x};
  CHECK(as_vector(detail::f<Concatenate>(two, 1).value()) ==
        as_vector(concatenate(two, 1).value()));
  THROWS(std::invalid_argument, "at least one", detail::f<Sum>(none));
}

TEST(classes_of_nodes_are_told_apart) {
  ParameterCollection m;
  Parameter p = m.add_parameters({3});
  LookupParameter l = m.add_lookup_parameters(2, {3});
  ComputationGraph cg;
  Expression x = parameter(cg, p);
  std::vector<Expression> all = {rectify(x), log_softmax(x), x + x, sum({x, x}), lookup(cg, l, 1u)};
  CHECK(dynamic_cast<Rectify *>(cg.nodes.at(all[0].i)));
  CHECK(!dynamic_cast<Tanh *>(cg.nodes.at(all[0].i)));
  CHECK(dynamic_cast<LogSoftmax *>(cg.nodes.at(all[1].i)));
  CHECK(dynamic_cast<CwiseSum *>(cg.nodes.at(all[2].i)));
  CHECK(dynamic_cast<Sum *>(cg.nodes.at(all[3].i)));
  CHECK(dynamic_cast<LookupNode *>(cg.nodes.at(all[4].i)));
  CHECK(dynamic_cast<ParameterNode *>(cg.nodes.at(x.i)));
}

TEST(a_graph_in_graphviz) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2});
  tanh(x) + x;
  EQUAL(tests::printed(std::cerr, [&] { cg.print_graphviz(); }),
        "digraph G {\n  rankdir=LR;\n  nodesep=.05;\n"
        "  N0 [label=\"v0 = constant({2})\"];\n"
        "  N1 [label=\"v1 = tanh(v0)\"];\n"
        "  N0 -> N1;\n"
        "  N2 [label=\"v2 = v1 + v0\"];\n"
        "  N1 -> N2;\n"
        "  N0 -> N2;\n"
        "}\n");
}

TEST(a_graph_is_dumped) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({1, -2}));
  ComputationGraph cg;
  auto dumped = [&](bool values, bool gradients, bool check) {
    return tests::printed(std::cout, [&] { cg.dump("", values, gradients, check); });
  };
  EQUAL(dumped(true, true, false), "(Computation graph is empty)\n");
  Expression x = parameter(cg, p), y = log(x), z = sum_elems(x);
  EQUAL(dumped(true, true, true), "Node 0\nValue: valid\nGradient: (not computed)\n"
                                  "Node 1\nValue: invalid\nGradient: (not computed)\n");
  cg.backward(z);
  EQUAL(cg.get_gradient(y).d, "{2}");
  const std::string one = "Node 0\nValue: \n 1\n-2\nGradient: \n1\n1\nNode 1\n";
  EQUAL(dumped(true, true, false).substr(0, one.size()), one);
  cg.dump("nodes.tmp", false, false, false);
  std::ifstream in("nodes.tmp");
  std::ostringstream text;
  text << in.rdbuf();
  std::remove("nodes.tmp");
  EQUAL(text.str(), "Node 0\nNode 1\n");
  THROWS(std::runtime_error, "cannot write", cg.dump("/no/such/folder", true, false, false));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
