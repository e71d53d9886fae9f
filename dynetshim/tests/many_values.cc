// A program that asks for one value after another has the rest evaluated in one script, and sees
// the same as if every value were evaluated when it is asked for.
#include "check.h"

#include <cmath>
#include <random>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

typedef std::vector<float> Floats;

static std::ostream &operator<<(std::ostream &os, const Floats &v) {
  for (float x : v)
    os << x << ' ';
  return os;
}

// A chain of ten nodes over one parameter: node k is 2^k times it.
struct Chain {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({1, -3}));
  ComputationGraph cg;
  std::vector<Expression> nodes = {parameter(cg, p)};
  Chain() {
    while (nodes.size() < 10)
      nodes.push_back(nodes.back() + nodes.back());
  }
  Floats at(unsigned k) { return as_vector(nodes[k].value()); }
  static Floats times(float x) { return {x, -3 * x}; }
  void expect(unsigned k, float x) { EQUAL(at(k), times(x)); }
};

static uint64_t launches() { return vpps::statistics().launches; }

TEST(many_values_are_two_scripts) {
  Chain c;
  const uint64_t before = launches();
  for (unsigned k = 1; k < 10; ++k)
    c.expect(k, float(1 << k));
  EQUAL(launches() - before, 2u);
}

TEST(a_node_that_was_not_asked_for_is_of_the_parameters_when_it_is) {
  Chain c;
  c.expect(1, 2);
  c.expect(2, 4);
  c.p.p.unexposed()->scale_parameters(10);
  c.expect(2, 4);
  c.expect(1, 2);
  EQUAL(c.at(4), Chain::times(16)); // DyNet's, too: of the nodes before
  c.nodes.push_back(parameter(c.cg, c.p));
  EQUAL(c.at(10), Chain::times(10));
}

TEST(a_parameter_node_that_was_not_asked_for_is_read_when_it_is) {
  Chain c;
  Parameter q = c.m.add_parameters({2}, ParameterInitFromVector({1, 1}));
  Expression late = 3 * parameter(c.cg, q), after = late + late;
  c.expect(1, 2);
  c.expect(2, 4);
  q.p.unexposed()->scale_parameters(10);
  c.expect(3, 8);
  EQUAL(as_vector(after.value()), (Floats{60, 60}));
  EQUAL(as_vector(late.value()), (Floats{30, 30}));
}

TEST(updates_count_for_nodes_that_were_not_asked_for) {
  Chain c;
  SimpleSGDTrainer t(c.m, 1);
  Expression loss = sum_elems(c.nodes[2]), late = parameter(c.cg, c.p), later = late + late;
  c.expect(1, 2);
  EQUAL(as_scalar(loss.value()), -8.f);
  c.cg.backward(loss);
  t.clipping_enabled = false;
  t.update();
  EQUAL(as_vector(c.nodes[1].gradient()), (Floats{2, 2}));
  c.expect(2, 4);
  EQUAL(as_vector(later.value()), (Floats{2 * (1 - 4), 2 * (-3 - 4)}));
}

TEST(backward_and_new_nodes_follow_values_that_were_not_asked_for) {
  Chain c;
  c.expect(1, 2);
  c.expect(2, 4);
  c.cg.backward(sum_elems(c.nodes[9]));
  EQUAL(as_vector(c.nodes[0].gradient()), (Floats{512, 512}));
  c.p.p.unexposed()->scale_parameters(10);
  c.expect(9, 512);
  Expression more = c.nodes[9] + parameter(c.cg, c.p);
  EQUAL(as_vector(more.value()), (Floats{522, -3 * 522}));
}

TEST(fb_uses_values_that_were_not_asked_for) {
  Chain c;
  SimpleSGDTrainer t(c.m, 1);
  t.clipping_enabled = false;
  vpps::handle h(c.m, t);
  Expression loss = sum_elems(c.nodes[1]);
  c.expect(1, 2);
  c.expect(2, 4);
  h.fb(c.m, c.cg, loss);
  EQUAL(h.sync_get_latest_loss(), -4.f);
  EQUAL(c.p.p.unexposed()->read(VPPS_VALUES), (Floats{1 - 2, -3 - 2}));
}

TEST(a_reverted_graph_has_no_values_of_what_it_lost) {
  Chain c;
  c.cg.checkpoint();
  Expression a = c.nodes[0] * 7, b = a + a;
  b + b;
  EQUAL(as_vector(a.value()), Chain::times(7));
  EQUAL(as_vector(b.value()), Chain::times(14));
  c.p.p.unexposed()->scale_parameters(10); // the last node is outdated
  c.cg.revert();
  Expression x = parameter(c.cg, c.p), y = x + x;
  EQUAL(as_vector(x.value()), Chain::times(10));
  EQUAL(as_vector(y.value()), Chain::times(20));
}

// A pointer is read when its node is evaluated, so nothing is evaluated ahead of it.
TEST(pointers_are_read_when_their_nodes_are_asked_for) {
  Chain c;
  float f = 1;
  Expression late = c.nodes[0] * input(c.cg, &f), first = late + late, second = first + first;
  second + second;
  c.expect(1, 2);
  c.expect(2, 4);
  f = 5;
  EQUAL(as_vector(late.value()), Chain::times(5));
  f = 7;
  const uint64_t before = launches();
  EQUAL(as_vector(first.value()), Chain::times(10));
  EQUAL(as_vector(second.value()), Chain::times(20));
  EQUAL(launches() - before, 1u);
}

// A node that cannot be evaluated fails when it is asked for, not before.
TEST(a_node_that_fails_does_not_disturb_the_ones_before) {
  Chain c;
  LookupParameter table = c.m.add_lookup_parameters(4, {2});
  Expression wrong = lookup(c.cg, table, 9u);
  c.expect(1, 2);
  c.expect(2, 4);
  c.expect(3, 8);
  c.expect(9, 512);
  THROWS(std::invalid_argument, "row 9", wrong.value());
  c.expect(9, 512);
}

// A program of random calls. What it reads depends on the seed only.
struct RandomCalls {
  std::mt19937 random;
  ParameterCollection m;
  std::vector<Parameter> parameters;
  LookupParameter table = m.add_lookup_parameters(4, {3}, ParameterInitConst(0.5f));
  SimpleSGDTrainer trainer{m, 0.1f};
  ComputationGraph cg;
  std::vector<Expression> nodes;
  std::vector<size_t> checkpoints;
  Floats read, pointee = {1, 2, 3};

  explicit RandomCalls(unsigned seed) : random(seed) {
    for (unsigned k = 0; k < 3; ++k)
      parameters.push_back(m.add_parameters({3}, ParameterInitConst(0.25f * float(k + 1))));
  }
  unsigned below(size_t n) { return random() % static_cast<unsigned>(n); }
  const Expression &any() { return nodes[below(nodes.size())]; }
  Parameter &some() { return parameters[below(parameters.size())]; }

  void add() {
    switch (nodes.empty() ? 0 : below(20)) {
    case 0:
      nodes.push_back(parameter(cg, some()));
      break;
    case 1:
      nodes.push_back(lookup(cg, table, below(4)));
      break;
    case 2:
      nodes.push_back(const_parameter(cg, some()));
      break;
    case 3:
      nodes.push_back(input(cg, {3}, &pointee));
      break;
    case 4:
    case 5:
    case 6:
    case 7:
      nodes.push_back(tanh(any()));
      break;
    case 8:
    case 9:
    case 10:
    case 11:
      nodes.push_back(any() + any());
      break;
    default:
      nodes.push_back(cmult(any(), any()));
    }
  }
  void note(const Tensor &t) {
    const Floats v = as_vector(t);
    read.insert(read.end(), v.begin(), v.end());
  }
  void revert() {
    if (checkpoints.empty())
      return;
    cg.revert();
    nodes.resize(checkpoints.back());
    checkpoints.pop_back();
  }
  void train() {
    const Expression loss = sum_elems(any());
    cg.backward(loss);
    if (below(2))
      trainer.update();
    if (below(2))
      note(nodes[0].gradient());
  }
  void call() {
    const unsigned what = nodes.empty() ? 0 : below(16);
    if (what < 5)
      add();
    else if (what < 11)
      note(any().value());
    else if (what == 11 && below(2))
      pointee[below(3)] = 0.25f * float(below(9));
    else if (what == 11)
      some().p.unexposed()->scale_parameters(below(2) ? 0.5f : 1.5f);
    else if (what == 12)
      train();
    else if (what == 13)
      note(cg.forward(any()));
    else if (what == 14 && below(2))
      revert();
    else if (what == 14)
      cg.checkpoint(), checkpoints.push_back(nodes.size());
    else
      cg.invalidate();
  }
};

static std::vector<Floats> random_calls() {
  std::vector<Floats> read;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    RandomCalls p(seed);
    for (unsigned k = 0; k < 120; ++k)
      p.call();
    read.push_back(p.read);
  }
  return read;
}

// With a parameter's memory in the program's hands, every value is evaluated when it is asked for.
TEST(random_calls_read_the_same_as_if_nothing_were_evaluated_ahead) {
  const std::vector<Floats> ahead = random_calls();
  ParameterCollection m;
  Parameter p = m.add_parameters({1});
  p.values();
  const std::vector<Floats> asked = random_calls();
  size_t count = 0;
  for (size_t k = 0; k < ahead.size(); ++k) {
    EQUAL(ahead[k].size(), asked[k].size());
    for (size_t i = 0; i < ahead[k].size(); ++i)
      CHECK(std::abs(ahead[k][i] - asked[k][i]) <= 1e-5f * (1 + std::abs(asked[k][i])));
    count += ahead[k].size();
  }
  CHECK(count > 10000);
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
