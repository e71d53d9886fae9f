// Weight decay that a program moves by hand. Expected numbers follow from DyNet's formula: graphs
// read stored values times a factor, and each update makes the factor (1-lambda) times as large.
#include "check.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <unistd.h>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/io.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

typedef std::vector<float> Floats;

namespace {

bool near(const Floats &have, const Floats &want) {
  if (have.size() != want.size())
    return false;
  for (size_t i = 0; i < have.size(); ++i)
    if (!(std::abs(have[i] - want[i]) <= 1e-6f * std::max(1.f, std::abs(want[i]))))
      return false;
  return true;
}

// A parameter of {1, 2} and a table of {3, 4}, each with a gradient of ones.
struct Decaying {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({1, 2}), "p");
  LookupParameter l = m.add_lookup_parameters(2, {1}, ParameterInitFromVector({3, 4}), "l");
  L2WeightDecay &decay;
  SimpleSGDTrainer trainer;

  explicit Decaying(float lambda) : decay(m.get_weight_decay()), trainer(m, 0.1f) {
    m.set_weight_decay_lambda(lambda);
    trainer.clipping_enabled = false;
  }
  Expression loss(ComputationGraph &cg) {
    return sum_elems(parameter(cg, p)) + lookup(cg, l, 0u) + lookup(cg, l, 1u);
  }
  void step() {
    ComputationGraph cg;
    cg.backward(loss(cg));
    trainer.update();
  }
  Floats stored() const {
    Floats v = p.p.unexposed()->read(VPPS_VALUES), w = l.p.unexposed()->read(VPPS_VALUES);
    v.insert(v.end(), w.begin(), w.end());
    return v;
  }
  // As a graph reads them.
  Floats real() {
    ComputationGraph cg;
    return as_vector(concatenate({parameter(cg, p), lookup(cg, l, 0u), lookup(cg, l, 1u)}).value());
  }
};

// A file of the test's own.
struct file {
  std::string name;
  file() : name("/tmp/weight_decay_" + std::to_string(getpid())) {}
  ~file() { std::remove(name.c_str()); }
};

} // namespace

// ---- the object alone ------------------------------------------------------------------------

TEST(a_factor_falls_by_one_minus_lambda_with_each_update) {
  L2WeightDecay d(0.1f);
  CHECK(d.current_weight_decay() == 1);
  d.update_weight_decay();
  CHECK(near({d.current_weight_decay()}, {0.9f}));
  d.update_weight_decay(0);
  CHECK(near({d.current_weight_decay()}, {0.9f}));
  d.update_weight_decay(3);
  CHECK(near({d.current_weight_decay()}, {0.6561f})); // 0.9^4
  d.update_weight_decay(9);
  CHECK(near({d.current_weight_decay()}, {0.2541866f})); // 0.9^13
  CHECK(!d.parameters_need_rescaled());
  d.update_weight_decay();
  CHECK(near({d.current_weight_decay()}, {0.2287679f})); // 0.9^14
  CHECK(d.parameters_need_rescaled());
  EQUAL(tests::printed(std::cerr, [&] { d.reset_weight_decay(); }), "");
  CHECK(d.current_weight_decay() == 1 && !d.parameters_need_rescaled());
}

TEST(one_update_and_many_are_rounded_as_in_dynet) {
  const float lambda = 1e-6f;
  float one = 1;
  L2WeightDecay d(lambda), many(lambda);
  for (int k = 0; k < 1000; ++k) {
    d.update_weight_decay();
    one -= one * lambda;
  }
  many.update_weight_decay(1000);
  CHECK(d.current_weight_decay() == one);
  CHECK(many.current_weight_decay() == float(std::pow(double(1 - lambda), 1000)));
  CHECK(one != many.current_weight_decay());
}

TEST(a_copy_of_the_decay_is_for_itself) {
  Decaying s(0.5f);
  s.decay.update_weight_decay();
  L2WeightDecay copy = s.decay;
  copy.update_weight_decay();
  copy.set_lambda(0.25f);
  CHECK(copy.current_weight_decay() == 0.25f && s.decay.current_weight_decay() == 0.5f);
  CHECK(s.decay.get_lambda() == 0.5f);
  CHECK(near(s.real(), {0.5f, 1, 1.5f, 2}));

  s.decay = copy; // which the model follows
  CHECK(near(s.real(), {0.25f, 0.5f, 0.75f, 1}));
  s.m.add_parameters({1});
  s.step(); // to 0.25 - 0.1, 0.5 - 0.1, ..., times 1 - 0.25; the factor of 0.1875 is multiplied in
  CHECK(near(s.real(), {0.1125f, 0.3f, 0.4875f, 0.675f}));
  CHECK(s.decay.current_weight_decay() == 1 && copy.current_weight_decay() == 0.25f);
}

// ---- of a model ------------------------------------------------------------------------------

TEST(graphs_read_stored_values_times_the_factor) {
  Decaying s(0.5f);
  {
    ComputationGraph cg;
    Expression e = s.loss(cg);
    CHECK(as_scalar(cg.forward(e)) == 10);
    s.decay.update_weight_decay(2);
    CHECK(as_scalar(e.value()) == 10); // until it is evaluated anew
    CHECK(as_scalar(cg.forward(e)) == 2.5f);
  }
  CHECK(s.p.current_weight_decay() == 0.25f && s.l.current_weight_decay() == 0.25f);
  CHECK(s.stored() == (Floats{1, 2, 3, 4}));
  CHECK(near(s.real(), {0.25f, 0.5f, 0.75f, 1}));
}

// Nodes that were computed at once have the factor from then, also where that was put off.
TEST(nodes_computed_at_once_keep_the_factor_from_then) {
  Decaying s(0.5f);
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  Expression e = s.loss(cg);
  s.decay.update_weight_decay();
  Expression later = s.loss(cg);
  CHECK(as_scalar(e.value()) == 10);
  CHECK(as_scalar(later.value()) == 5);
}

TEST(a_decay_before_the_first_parameter_counts) {
  ParameterCollection m;
  m.set_weight_decay_lambda(0.5f);
  m.get_weight_decay().update_weight_decay();
  Parameter p = m.add_parameters({1}, ParameterInitConst(6));
  ComputationGraph cg;
  CHECK(as_scalar(parameter(cg, p).value()) == 3);
  CHECK(m.get_weight_decay().current_weight_decay() == 0.5f);
}

// DyNet: theta -> (theta - rate * g) * (1 - lambda), where theta = factor * stored.
TEST(updates_go_on_from_a_factor_that_was_moved_by_hand) {
  for (int by_fb = 0; by_fb < 2; ++by_fb) {
    Decaying s(0.1f);
    vpps::handle hndl(s.m, s.trainer);
    s.decay.update_weight_decay();
    for (int k = 0; k < 2; ++k)
      if (by_fb) {
        ComputationGraph cg;
        hndl.fb(s.m, cg, s.loss(cg));
      } else {
        s.step();
      }
    // 0.9 -> (0.9 - 0.1) 0.9 = 0.72 -> (0.72 - 0.1) 0.9 = 0.558, and so on
    CHECK(near(s.real(), {0.558f, 1.287f, 2.016f, 2.745f}));
    CHECK(near({s.decay.current_weight_decay()}, {0.729f}));
    s.decay.update_weight_decay(); // after batches in flight
    CHECK(near(s.real(), {0.5022f, 1.1583f, 1.8144f, 2.4705f}));
  }
}

TEST(a_lambda_that_is_changed_counts_from_the_next_update_on) {
  Decaying s(0.1f);
  s.decay.update_weight_decay();
  s.decay.set_lambda(0.5f);
  CHECK(near({s.decay.current_weight_decay()}, {0.9f}));
  s.decay.update_weight_decay();
  CHECK(near({s.decay.current_weight_decay()}, {0.45f}));
  s.decay.set_lambda(0);
  s.decay.update_weight_decay(7);
  s.step();
  CHECK(near({s.decay.current_weight_decay()}, {0.45f}));
  CHECK(near(s.real(), {0.45f - 0.1f, 0.9f - 0.1f, 1.35f - 0.1f, 1.8f - 0.1f}));
}

TEST(a_factor_of_zero_is_refused) {
  Decaying s(0.5f);
  s.decay.update_weight_decay();
  THROWS(std::invalid_argument, "(0, 1]", s.decay.update_weight_decay(100000));
  CHECK(s.decay.current_weight_decay() == 0.5f);
}

// ---- rescaling -------------------------------------------------------------------------------

TEST(rescaling_keeps_what_graphs_read) {
  Decaying s(0.5f);
  Parameter frozen = s.m.add_parameters({1}, ParameterInitConst(8));
  frozen.set_updated(false);
  s.decay.update_weight_decay(3);
  CHECK(s.decay.parameters_need_rescaled());
  const Floats before = s.real();
  CHECK(near(before, {0.125f, 0.25f, 0.375f, 0.5f}));
  s.trainer.rescale_and_reset_weight_decay();
  CHECK(s.decay.current_weight_decay() == 1);
  CHECK(s.stored() == before && s.real() == before);
  ComputationGraph cg;
  CHECK(as_scalar(parameter(cg, frozen).value()) == 8); // DyNet leaves it out, too
}

TEST(rescaling_shows_where_a_program_looks) {
  Decaying s(0.5f);
  CHECK(as_vector(*s.p.values()) == (Floats{1, 2}));
  s.decay.update_weight_decay();
  CHECK(as_vector(*s.p.values()) == (Floats{1, 2}));
  s.trainer.rescale_and_reset_weight_decay();
  CHECK(as_vector(*s.p.values()) == (Floats{0.5f, 1}));
}

// An update rescales as soon as the factor is below 0.25, whoever has made it so.
TEST(an_update_rescales_a_factor_that_was_moved_by_hand) {
  Decaying s(0.5f);
  s.decay.update_weight_decay(2); // 0.25, which is not below it
  CHECK(!s.decay.parameters_need_rescaled());
  s.step(); // theta = (0.25 - 0.1) * 0.5, (0.5 - 0.1) * 0.5, ...
  CHECK(s.decay.current_weight_decay() == 1);
  CHECK(near(s.stored(), {0.075f, 0.2f, 0.325f, 0.45f}));

  s.decay.update_weight_decay(3);
  s.decay.set_lambda(0);
  s.step();
  CHECK(s.decay.current_weight_decay() == 1);
  CHECK(near(s.real(), {0.075f / 8 - 0.1f, 0.025f - 0.1f, 0.325f / 8 - 0.1f, 0.05625f - 0.1f}));
}

// Programs of DyNet 2.0 count the factor anew after they have read stored values.
TEST(a_factor_that_is_counted_anew) {
  Decaying s(0.3f);
  unsigned resets = 0;
  for (int k = 0; k < 6; ++k) {
    s.decay.update_weight_decay();
    if (s.decay.parameters_need_rescaled()) {
      s.decay.reset_weight_decay(); // at 0.7^4
      ++resets;
    }
  }
  EQUAL(resets, 1u);
  CHECK(near({s.decay.current_weight_decay()}, {0.49f}));
  CHECK(s.stored() == (Floats{1, 2, 3, 4}));
  CHECK(near(s.real(), {0.49f, 0.98f, 1.47f, 1.96f}));
}

// ---- files -----------------------------------------------------------------------------------

// A file has real values; what is read from it becomes the stored values.
TEST(files_have_real_values) {
  file f;
  Decaying s(0.5f), same(0), smaller(0.5f);
  s.decay.update_weight_decay();
  TextFileSaver(f.name).save(s.m);
  CHECK(s.stored() == (Floats{1, 2, 3, 4}));
  std::string line;
  std::ifstream in(f.name);
  std::getline(in, line);
  std::getline(in, line);
  EQUAL(line, "+5.00000000e-01 +1.00000000e+00 ");

  TextFileLoader(f.name).populate(same.m);
  CHECK(same.real() == s.real());

  smaller.decay.update_weight_decay();
  TextFileLoader(f.name).populate(smaller.m);
  CHECK(smaller.stored() == s.real());
  CHECK(near(smaller.real(), {0.25f, 0.5f, 0.75f, 1}));
  smaller.decay.reset_weight_decay();
  CHECK(smaller.real() == s.real());
}

// ---- cost ------------------------------------------------------------------------------------

// As many as the programs that count the factor anew make in one go.
TEST(a_factor_is_moved_quickly) {
  Decaying s(1e-6f);
  const auto start = std::chrono::steady_clock::now();
  float want = 1;
  for (int k = 0; k < 100000; ++k) {
    s.decay.update_weight_decay();
    CHECK(!s.decay.parameters_need_rescaled());
    want -= want * 1e-6f;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "100000 updates of a factor in " << took.count() << " s\n";
  CHECK(took.count() < 10);
  CHECK(s.decay.current_weight_decay() == want);
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
