// Values after fb, on the engine itself: hndl.keep(x), and inputs by pointer that are read
// anew although a kept value was looked at.
#include "check.h"
#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

TEST(kept_values_are_those_from_before_the_update) {
  ParameterCollection m;
  SimpleSGDTrainer trainer(m, 0.1f);
  Parameter w = m.add_parameters({1}, ParameterInitConst(2));
  vpps::handle hndl(m, trainer);
  ComputationGraph cg;
  float x = 3;
  Expression e = input(cg, &x), y = parameter(cg, w) * e, loss = square(y);
  hndl.keep(y);
  hndl.fb(m, cg, loss);
  CHECK(as_scalar(y.value()) == 6);
  THROWS(std::runtime_error, "no value", e.value());
  x = 5; // the second fb reads it, though a value up to y was fetched
  hndl.keep(e);
  hndl.fb(m, cg, loss);
  CHECK(as_scalar(e.value()) == 5);
  THROWS(std::runtime_error, "no value", y.value());
}

TEST(an_expression_of_a_graph_that_is_gone_cannot_be_kept) {
  ParameterCollection m;
  m.add_parameters({1});
  vpps::handle hndl(m);
  Expression e;
  THROWS(std::invalid_argument, "no present graph", hndl.keep(e));
  {
    ComputationGraph cg;
    e = input(cg, 1);
  }
  THROWS(std::invalid_argument, "no present graph", hndl.keep(e));
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
