// Trainers are saved as DyNet saves them, and read again.
#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/param-init.h"
#include "dynet/training.h"

using namespace dynet;

namespace {

typedef std::function<Trainer *(ParameterCollection &)> maker;

// A vector and a table of two rows, of which the second is looked up: gradients 1.5 and 1.
struct model {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(0.5f));
  LookupParameter E = m.add_lookup_parameters(2, {2}, ParameterInitConst(0.5f));
  std::unique_ptr<Trainer> trainer;

  explicit model(const maker &make) : trainer(make(m)) {}
  void step() {
    ComputationGraph cg;
    Expression loss = sum_elems(parameter(cg, p) * 1.5f + lookup(cg, E, 1u));
    cg.forward(loss);
    cg.backward(loss);
    trainer->update();
  }
  std::string saved() {
    std::ostringstream text;
    trainer->save(text);
    return text.str();
  }
  void read(const std::string &text) {
    std::istringstream in(text);
    trainer->populate(in);
  }
  std::vector<float> values() {
    std::vector<float> v = p.p.unexposed()->read(VPPS_VALUES),
                       t = E.p.unexposed()->read(VPPS_VALUES);
    v.insert(v.end(), t.begin(), t.end());
    return v;
  }
};

template <class T> Trainer *make(ParameterCollection &m) { return new T(m); }

// What DyNet has written after two updates, behind the three lines of every trainer.
const struct {
  maker of;
  const char *rate, *rest;
} examples[] = {
    {make<SimpleSGDTrainer>, "+1.00000001e-01", ""},
    {make<CyclicalSGDTrainer>, "+1.00449966e-02", ""},
    {make<MomentumSGDTrainer>, "+9.99999978e-03",
     "#MomentumSGDTrainer# 1 1\n#Parameter# 2 -2.84999982e-02 -2.84999982e-02 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 -1.89999994e-02 -1.89999994e-02 \n"
     "+8.99999976e-01\n"},
    {make<AdagradTrainer>, "+1.00000001e-01",
     "#AdagradTrainer# 1 1\n#Parameter# 2 +4.50000000e+00 +4.50000000e+00 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +2.00000000e+00 +2.00000000e+00 \n"
     "+9.99999968e-21\n"},
    {make<AdadeltaTrainer>, "+1.00000000e+00",
     "#AdadeltaTrainer# 1 1\n#Parameter# 2 +2.19375044e-01 +2.19375044e-01 \n"
     "#Parameter# 2 +1.97562349e-06 +1.97562349e-06 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +9.75000262e-02 +9.75000262e-02 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.97560166e-06 +1.97560166e-06 \n"
     "+9.99999997e-07 +9.49999988e-01\n"},
    {make<RMSPropTrainer>, "+1.00000001e-01",
     "#RMSPropTrainer# 1 1\n#Parameter# 2 +2.19375044e-01 +2.19375044e-01 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +9.75000262e-02 +9.75000262e-02 \n"
     "+9.99999968e-21 +9.49999988e-01\n"},
    {make<AdamTrainer>, "+1.00000005e-03",
     "#AdamTrainer# 1 1\n#Parameter# 2 +2.85000086e-01 +2.85000086e-01 \n"
     "#Parameter# 2 +4.49769199e-03 +4.49769199e-03 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.90000042e-01 +1.90000042e-01 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.99897424e-03 +1.99897424e-03 \n"
     "+8.99999976e-01 +9.99000013e-01 +9.99999994e-09\n"},
    {make<AmsgradTrainer>, "+1.00000005e-03",
     "#AmsgradTrainer# 1 1\n#Parameter# 2 +2.85000086e-01 +2.85000086e-01 \n"
     "#Parameter# 2 +4.49769199e-03 +4.49769199e-03 \n"
     "#Parameter# 2 +4.49769199e-03 +4.49769199e-03 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.90000042e-01 +1.90000042e-01 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.99897424e-03 +1.99897424e-03 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 +1.99897424e-03 +1.99897424e-03 \n"
     "+8.99999976e-01 +9.99000013e-01 +9.99999994e-09\n"},
    {make<EGTrainer>, "+1.00000001e-01",
     "#EGTrainer# 1 1\n#Parameter# 2 -2.84999996e-01 -2.84999996e-01 \n"
     "#LookupParameter# 4 +0.00000000e+00 +0.00000000e+00 -1.89999998e-01 -1.89999998e-01 \n"
     "+0.00000000e+00 +0.00000000e+00 +8.99999976e-01 +0.00000000e+00 +0.00000000e+00 "
     "+0.00000000e+00 +0.00000000e+00 0 +0\n"},
};
std::string text_of(const char *rate, const char *rest) {
  return std::string("#Trainer# 1 1\n") + rate +
         " +1 +5.00000000e+00 +2.00000000e+00 +0.00000000e+00 None +0 +0 1 0\n[MA:FALSE]\n" + rest;
}

// The same words; numbers with a point may differ by rounding.
void same_text(const std::string &got, const std::string &want) {
  EQUAL(std::count(got.begin(), got.end(), '\n'), std::count(want.begin(), want.end(), '\n'));
  std::istringstream a(got), b(want);
  for (std::string x, y; a >> x, b >> y;) {
    if (x.find('.') == std::string::npos)
      EQUAL(x, y);
    else if (!(std::fabs(std::stod(x) - std::stod(y)) <= 2e-6 * std::fabs(std::stod(y))))
      EQUAL(x, y);
    EQUAL(x.size(), y.size());
  }
  CHECK(a.eof() && b.eof());
}

} // namespace

TEST(trainers_are_written_as_dynet_writes_them) {
  for (const auto &e : examples) {
    model x(e.of);
    const std::string fresh = x.saved();
    CHECK(fresh.find("#Trainer# 0 0\n") == 0);
    x.step();
    x.step();
    same_text(x.saved(), text_of(e.rate, e.rest));
  }
}

TEST(what_dynet_has_written_is_gone_on_from) {
  for (const auto &e : examples) {
    model x(e.of), y(e.of);
    x.step();
    x.step();
    y.read(text_of(e.rate, e.rest));
    same_text(y.saved(), text_of(e.rate, e.rest));
    EQUAL(y.trainer->updates, 2);
    const std::vector<float> values = x.values();
    y.p.set_value({values[0], values[1]});
    y.E.initialize(1, {values[4], values[5]});
    if (dynamic_cast<CyclicalSGDTrainer *>(y.trainer.get()))
      continue; // where in its cycle it is, is not in the file
    x.step();
    y.step();
    const std::vector<float> want = x.values(), got = y.values();
    for (size_t k = 0; k < want.size(); k++)
      CHECK(std::fabs(got[k] - want[k]) <= 1e-6f);
  }
}

TEST(a_rate_cycle_is_saved_too) {
  const maker cyclic = [](ParameterCollection &m) {
    EGTrainer *t = new EGTrainer(m, 0.2f);
    t->enableCyclicalLR(0.1f, 0.4f, 3, 0.9f);
    return t;
  };
  model x(cyclic), y(make<EGTrainer>);
  for (int k = 0; k < 4; k++)
    x.step();
  y.read(x.saved());
  EQUAL(y.saved(), x.saved());
  x.step();
  y.step();
  EQUAL(y.trainer->learning_rate, x.trainer->learning_rate);
}

TEST(a_new_learning_rate_may_be_given) {
  model x(make<AdamTrainer>), y(make<AdamTrainer>);
  x.step();
  std::istringstream in(x.saved());
  y.trainer->populate(in, 0.5f);
  EQUAL(y.trainer->learning_rate, 0.5f);
  EQUAL(y.trainer->updates, 1);
}

// What failed is not counted where Adam's correction counts on.
TEST(updates_that_failed_are_not_saved) {
  model x(make<AdamTrainer>);
  x.step();
  x.p.set_value({0, 0});
  {
    ComputationGraph cg;
    Expression loss = sqrt(squared_norm(parameter(cg, x.p))); // whose slope is infinite there
    cg.forward(loss);
    cg.backward(loss);
    THROWS(std::runtime_error, "not finite", x.trainer->update());
  }
  x.trainer->updates = 7;
  CHECK(x.saved().find(" +1.00000000e+00 +0.00000000e+00 None") != std::string::npos);
}

// Parameters that the file does not know begin anew.
TEST(parameters_made_since_have_no_memory) {
  model x(make<MomentumSGDTrainer>), y(make<MomentumSGDTrainer>);
  x.step();
  y.step();
  y.m.add_parameters({3});
  y.read(x.saved());
  const std::string text = y.saved();
  CHECK(text.find("#MomentumSGDTrainer# 2 1\n") != std::string::npos);
  CHECK(text.find("#Parameter# 3 +0.00000000e+00 +0.00000000e+00 +0.00000000e+00 \n") !=
        std::string::npos);
}

TEST(a_damaged_text_changes_nothing) {
  const maker other = [](ParameterCollection &m) {
    return new AdamTrainer(m, 0.1f, 0.5f, 0.5f, 0.5f);
  };
  model x(make<AdamTrainer>), y(other), momentum(make<MomentumSGDTrainer>);
  x.step();
  y.step();
  y.step();
  const std::string good = x.saved(), before = y.saved();
  const auto with = [&good](const std::string &what, const std::string &instead) {
    std::string text = good;
    const size_t at = text.find(what);
    CHECK(at != std::string::npos);
    return text.replace(at, what.size(), instead);
  };
  for (size_t length = 0; length < good.size(); length++)
    THROWS(std::runtime_error, "populate of a trainer", y.read(good.substr(0, length)));
  THROWS(std::runtime_error, "3 parameters, but the model has 1", y.read(with("# 1 1", "# 3 1")));
  THROWS(std::runtime_error, "#Parameter# of 5 numbers, not 2",
         y.read(with("#Parameter# 2", "#Parameter# 5")));
  THROWS(std::runtime_error, "where '#MA#' should be", y.read(with("[MA:FALSE]", "[MA:TRUE]")));
  THROWS(std::runtime_error, "where [MA:FALSE] or [MA:TRUE]", y.read(with("[MA:FALSE]", "[MA:]")));
  THROWS(std::runtime_error, "no moving average", y.read(with("None", "Nothing")));
  THROWS(std::runtime_error, "'#AdamTrainer#' where '#MomentumSGDTrainer#'", momentum.read(good));
  for (const char *updates : {"-1.00000000e+00", "+1.00000000e+30"})
    THROWS(
        std::runtime_error, "number of updates that cannot be",
        y.read(with("+1.00000000e+00 +0.00000000e+00 None", std::string(updates) + " +0.0 None")));
  THROWS(std::runtime_error, "beta_1 2", y.read(with("+8.99999976e-01", "+2.0")));
  THROWS(std::runtime_error, "learning rate", y.read(with("+1.00000005e-03 ", "-1.0 ")));
  EQUAL(y.saved(), before);
}

// What cannot be right is an error of the first call that the engine is told in.
TEST(hyper_parameters_that_make_no_sense_are_refused) {
  const std::vector<maker> bad = {
      [](ParameterCollection &m) { return new SimpleSGDTrainer(m, -0.1f); },
      [](ParameterCollection &m) { return new SimpleSGDTrainer(m, std::nanf("")); },
      [](ParameterCollection &m) { return new MomentumSGDTrainer(m, 0.1f, 1.0f); },
      [](ParameterCollection &m) { return new RMSPropTrainer(m, 0.1f, 1e-8f, -1.0f); },
      [](ParameterCollection &m) { return new AdagradTrainer(m, 0.1f, std::nanf("")); },
      [](ParameterCollection &m) { return new AdamTrainer(m, 0.1f, 0.9f, 1.5f); },
  };
  for (const maker &make : bad) {
    model x(make);
    const std::vector<float> before = x.values();
    THROWS(std::invalid_argument, "it must be", x.step());
    EQUAL(x.values() == before, true);
  }
  model x(make<SimpleSGDTrainer>);
  x.trainer->clip_threshold = 0;
  THROWS(std::invalid_argument, "clip threshold", x.step());
  x.trainer->clipping_enabled = false;
  x.step();
}

TEST(dropout_is_a_probability) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1.0f, 2.0f});
  for (float p : {-0.5f, 1.5f, std::nanf("")})
    THROWS(std::invalid_argument, "[0, 1]", dropout(x, p));
  EQUAL(as_vector(cg.forward(dropout(x, 0.0f)))[1], 2.0f);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
