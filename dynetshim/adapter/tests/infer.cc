// vpps::handle::infer over an installed DyNet's graphs: answers by ticket, between batches.
#include "own_class.h"
#include "tagger.h"

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/param-init.h>
#include <vpps/vpps.hpp>

using namespace dynet;

namespace {
floats by_forward(vpps::handle &hndl, tagger &t, unsigned k) {
  ComputationGraph cg;
  return as_vector(hndl.forward(cg, t.loss(cg, k)));
}

// The losses that answers tell between batches, and those that forward tells.
void answers_between_batches(bool accelerated) {
  std::vector<floats> answers[2];
  for (bool by_infer : {false, true}) {
    tagger t;
    vpps::handle hndl(t.m);
    std::vector<vpps::ticket> tickets;
    for (unsigned k = 0; k < 12; k++) {
      {
        ComputationGraph cg;
        if (accelerated)
          vpps::accelerate(cg);
        hndl.fb(t.m, cg, t.loss(cg, k));
      }
      if (!by_infer) {
        answers[0].push_back(by_forward(hndl, t, k + 1));
        continue;
      }
      ComputationGraph cg;
      if (accelerated)
        vpps::accelerate(cg);
      tickets.push_back(hndl.infer(cg, t.loss(cg, k + 1)));
    }
    for (const vpps::ticket &ticket : tickets)
      answers[1].push_back(hndl.result(ticket));
  }
  CHECK(answers[0] == answers[1]);
}
} // namespace

TEST(answers_come_between_batches) { answers_between_batches(false); }
TEST(answers_of_accelerated_graphs_come_between_batches) { answers_between_batches(true); }

TEST(a_graph_goes_on_after_infer) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  ComputationGraph cg;
  vpps::accelerate(cg);
  Expression x = parameter(cg, p), y = x * 2.f;
  const vpps::ticket before = hndl.infer(cg, {y, x});
  CHECK((as_vector(y.value()) == floats{6, 6}));
  cg.clear();
  CHECK((hndl.results(before) == std::vector<floats>{{6, 6}, {3, 3}}));
  THROWS(std::invalid_argument, "before", hndl.result(before));
  THROWS(std::invalid_argument, "no expression", hndl.infer(cg, std::vector<Expression>()));
  Expression z = exp(parameter(cg, p) * 0.f);
  hndl.drop(hndl.infer(cg, z));
  CHECK((hndl.result(hndl.infer(cg, z)) == floats{1, 1}));
}

// What the program writes to DyNet's memory counts for answers that are asked for after it.
TEST(parameters_that_were_set_count) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  ComputationGraph cg;
  const vpps::ticket first = hndl.infer(cg, parameter(cg, p));
  cg.clear();
  hndl.pull(m);
  p.set_value({5, 6});
  const vpps::ticket second = hndl.infer(cg, parameter(cg, p));
  CHECK((hndl.result(first) == floats{3, 3}));
  CHECK((hndl.result(second) == floats{5, 6}));
}

TEST(a_graph_with_a_node_of_dynets_is_evaluated_at_once) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  vpps::handle hndl(m);
  vpps::ticket t;
  {
    ComputationGraph cg;
    vpps::accelerate(cg, vpps::or_dynet);
    Expression x = parameter(cg, p), y = doubled(x);
    t = hndl.infer(cg, {y, x});
  }
  CHECK((hndl.results(t) == std::vector<floats>{{6, 6}, {3, 3}}));
  ComputationGraph cg;
  vpps::accelerate(cg);
  THROWS(vpps::unknown_node, "twice", hndl.infer(cg, doubled(parameter(cg, p))));
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
