// cg.nodes and print_graphviz: what a program sees of the nodes it made. The texts are DyNet's.
#include <dynet/dynet.h>
#include <dynet/nodes.h>

#include <cstdio>
#include <fstream>

#include "check.h"

using namespace dynet;

namespace {

// What a call prints to std::cerr.
template <class F> std::string printed(F f) {
  std::ostringstream to;
  std::streambuf *old = std::cerr.rdbuf(to.rdbuf());
  f();
  std::cerr.rdbuf(old);
  return to.str();
}

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
  EQUAL(text(mean_dim(w, {1})), "moment_dim(expression=x0,{1}), order=1");
  EQUAL(text(transpose(w)), "transpose(x0, {1,0})");
  EQUAL(text(reshape(w, {4})), "reshape(x0 --> {4})");
  EQUAL(text(concatenate({x, x})), "concat({x0,x1}, 0)");
  EQUAL(text(concatenate_to_batch({x, x})), "concat_batch_elems(x0,x1)");
  EQUAL(text(pick(x, 1u)), "pick(x0,1)");
  EQUAL(text(pick(concatenate_to_batch({x, x}), std::vector<unsigned>{1, 0})), "pick(x0,[1,0])");
  EQUAL(text(pick_range(x, 0, 1)), "slice(x0,0:1, dim=0)");
  EQUAL(text(pickneglogsoftmax(x, 1u)), "pickneglogsoftmax(x0)_{1}");
  EQUAL(text(hinge(x, 1u, 2)), "hinge(x0, pe=1, m=2)");
  EQUAL(text(squared_distance(x, x)), "|| x0 - x1 ||^2");
  EQUAL(text(dot_product(x, x)), "x0^T . x1");
}

TEST(a_graph_in_graphviz) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2});
  tanh(x) + x;
  EQUAL(printed([&] { cg.print_graphviz(); }), "digraph G {\n  rankdir=LR;\n  nodesep=.05;\n"
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
    std::ostringstream to;
    std::streambuf *old = std::cout.rdbuf(to.rdbuf());
    cg.dump("", values, gradients, check);
    std::cout.rdbuf(old);
    return to.str();
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
