// Trainers that are copied and moved, and their moving averages, beside what is recorded of DyNet.
#include <dynet/dynet.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <utility>

#include "check.h"

using namespace dynet;

namespace {

typedef std::vector<float> Floats;

// A parameter and a table whose gradients are the same at each step.
struct Small {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({1, 2}));
  LookupParameter l = m.add_lookup_parameters(2, {1}, ParameterInitFromVector({3, 4}));

  void step(Trainer &t) {
    ComputationGraph cg;
    cg.backward(sum_elems(parameter(cg, p)) + lookup(cg, l, 1u));
    t.update();
  }
  Floats values() const {
    Floats v = p.p.unexposed()->read(VPPS_VALUES), w = l.p.unexposed()->read(VPPS_VALUES);
    v.insert(v.end(), w.begin(), w.end());
    return v;
  }
};

// What k steps of momentum lead to, from the first on.
Floats after(unsigned k) {
  Small s;
  MomentumSGDTrainer t(s.m);
  for (unsigned i = 0; i < k; ++i)
    s.step(t);
  return s.values();
}

std::string saved(Trainer &t) {
  std::ostringstream os;
  t.save(os);
  return os.str();
}

} // namespace

TEST(a_copy_goes_on_and_remembers_for_itself) {
  Small s;
  MomentumSGDTrainer t(s.m);
  s.step(t);
  s.step(t);
  MomentumSGDTrainer copy(t);
  EQUAL(copy.updates, 2);
  EQUAL(saved(copy), saved(t)); // before its first update
  s.step(copy);
  CHECK(s.values() == after(3));
  // The original has not noticed: its velocity is that of two steps.
  EQUAL(t.updates, 2);
  CHECK(saved(t) != saved(copy));
  MomentumSGDTrainer other(s.m, 0.5f, 0.1f);
  other = copy;
  EQUAL(other.learning_rate, 0.01f);
  EQUAL(other.momentum, 0.9f);
  s.step(other);
  CHECK(s.values() == after(4));
}

TEST(a_copy_of_a_copy_has_the_state) {
  Small s;
  MomentumSGDTrainer t(s.m);
  s.step(t);
  MomentumSGDTrainer second = MomentumSGDTrainer(MomentumSGDTrainer(t));
  second.restart();
  MomentumSGDTrainer third(t);
  s.step(third);
  CHECK(s.values() == after(2));
}

// What a rule remembers, in members with DyNet's names, which ask the engine.
TEST(a_rule_shows_what_it_remembers) {
  Small s;
  AmsgradTrainer t(s.m);
  EQUAL(t.vhat.size(), 0u);
  s.step(t);
  EQUAL(t.m.size(), 1u);
  EQUAL(t.lvhat.size(), 1u);
  CHECK(t.m[0].h.d == Dim({2}));
  const Floats m = as_vector(t.m[0].h), vhat = as_vector(t.vhat[0].h);
  CHECK(std::fabs(m[1] - .1f) < 1e-6f && std::fabs(vhat[1] - .001f) < 1e-7f);
  CHECK(std::fabs(as_vector(t.lm[0].all_h)[1] - .1f) < 1e-6f); // the row that was read
  EQUAL(as_vector(t.lm[0].all_h)[0], 0.f);
  s.step(t);
  CHECK(std::fabs(as_vector(t.m[0].h)[1] - .19f) < 1e-6f); // it is the present one
  s.m.add_parameters({3});
  s.step(t);
  EQUAL(t.v.size(), 2u);

  const AmsgradTrainer copy(t);
  THROWS(std::runtime_error, "the tensor has no values", as_vector(copy.m[0].h));
  const Floats before = as_vector(t.vhat[0].h);
  const AmsgradTrainer moved(std::move(t));
  CHECK(as_vector(moved.vhat[0].h) == before);
}

TEST(a_copy_shows_its_own_from_its_first_update_on) {
  Small s;
  MomentumSGDTrainer t(s.m, 1, .5f);
  s.step(t);
  MomentumSGDTrainer copy(t);
  s.step(copy);
  EQUAL(as_vector(t.vp[0].h)[0], -1.f);
  EQUAL(as_vector(copy.vp[0].h)[0], -1.5f);
  copy.restart();
  EQUAL(as_vector(copy.vp[0].h)[0], 0.f);
}

TEST(a_moved_trainer_goes_on) {
  Small s;
  MomentumSGDTrainer t(s.m);
  s.step(t);
  MomentumSGDTrainer moved(std::move(t));
  s.step(moved);
  CHECK(s.values() == after(2));
  std::vector<MomentumSGDTrainer> all;
  all.push_back(std::move(moved));
  all.push_back(MomentumSGDTrainer(s.m));
  s.step(all[0]);
  CHECK(s.values() == after(3));
  MomentumSGDTrainer assigned(s.m);
  s.step(assigned);
  Floats fresh = s.values();
  assigned = std::move(all[0]);
  EQUAL(assigned.updates, 3);
  s.step(assigned);
  for (size_t i : {0u, 1u, 3u})
    CHECK(std::abs((s.values()[i] - fresh[i]) - (after(4)[i] - after(3)[i])) < 1e-6);
}

TEST(copies_of_all_trainers_have_their_rates) {
  Small s;
  CyclicalSGDTrainer cyclical(s.m, 0.01f, 0.1f, 2);
  EGTrainer eg(s.m);
  eg.enableCyclicalLR(0.01f, 0.1f, 2, 1);
  AdamTrainer adam(s.m);
  for (Trainer *t : {static_cast<Trainer *>(&cyclical), static_cast<Trainer *>(&eg),
                     static_cast<Trainer *>(&adam)})
    s.step(*t);
  CyclicalSGDTrainer cyclical_copy = cyclical;
  EGTrainer eg_copy = eg;
  AdamTrainer adam_copy = adam;
  EQUAL(saved(cyclical_copy), saved(cyclical));
  EQUAL(saved(eg_copy), saved(eg));
  EQUAL(saved(adam_copy), saved(adam));
  s.step(cyclical);
  s.step(cyclical_copy);
  EQUAL(cyclical_copy.learning_rate, cyclical.learning_rate);
}

TEST(averages_are_swapped_in_and_out) {
  Small s;
  SimpleSGDTrainer t(s.m, 1);
  THROWS(std::runtime_error, "no moving average", t.swap_params_to_moving_average());
  THROWS(std::runtime_error, "frequency above 0", t.cumulative_moving_average(0));
  t.swap_params_to_weights(); // nothing was swapped
  t.cumulative_moving_average();
  CHECK(t.moving_average() == MovingAverage::Cumulative);
  THROWS(std::runtime_error, "no update yet", t.swap_params_to_moving_average());
  s.step(t);
  s.step(t);
  THROWS(std::runtime_error, "before the first update", t.exponential_moving_average(0.5f));
  const Floats values = {-1, 0, 3, 2}, average = {-.5f, .5f, 3, 2.5f};
  CHECK(s.values() == values);
  t.swap_params_to_moving_average();
  t.swap_params_to_moving_average();
  CHECK(s.values() == average);
  {
    ComputationGraph cg; // graphs see the averages, too
    EQUAL(as_vector(parameter(cg, s.p).value())[0], -.5f);
  }
  t.swap_params_to_weights();
  CHECK(s.values() == values);
  // An update while they are swapped in brings the values back, without that update: as in DyNet.
  t.swap_params_to_moving_average();
  s.step(t);
  CHECK(s.values() == values);
  t.swap_params_to_moving_average(false);
  THROWS(std::runtime_error, "were not saved", t.swap_params_to_weights());
}

TEST(fb_keeps_the_average) {
  Small a, b;
  SimpleSGDTrainer by_calls(a.m), by_fb(b.m);
  by_calls.exponential_moving_average(0.8f, 2);
  by_fb.exponential_moving_average(0.8f, 2);
  vpps::handle hndl(b.m, by_fb);
  for (int k = 0; k < 5; ++k) {
    a.step(by_calls);
    ComputationGraph cg;
    hndl.fb(b.m, cg, sum_elems(parameter(cg, b.p)) + lookup(cg, b.l, 1u));
  }
  CHECK(a.values() == b.values());
  by_calls.swap_params_to_moving_average(true, true);
  by_fb.swap_params_to_moving_average(true, true);
  CHECK(a.values() == b.values());
}

TEST(averages_are_saved_and_read) {
  Small s, fresh;
  AdamTrainer t(s.m), other(fresh.m);
  t.exponential_moving_average(0.5f, 3);
  for (int k = 0; k < 4; ++k)
    s.step(t);
  const std::string text = saved(t);
  const std::string line = " +5.00000000e-01 Exponential +0 +0 3 2\n[MA:TRUE]\n#MA# 1 1\n";
  CHECK(text.find(line) != std::string::npos);
  std::istringstream is(text);
  other.populate(is);
  CHECK(other.moving_average() == MovingAverage::Exponential);
  EQUAL(saved(other), text);
  AdamTrainer copy(other);
  EQUAL(saved(copy), text);
  t.swap_params_to_moving_average();
  copy.swap_params_to_moving_average();
  CHECK(s.values() == fresh.values());
  CHECK(saved(t).find("Exponential +1 +1 3 2\n[MA:FALSE]\n") != std::string::npos);
  // A text that ends early changes nothing.
  SimpleSGDTrainer plain(s.m);
  for (size_t length : {text.find("#MA#"), text.find("#MA#") + 30, text.size() - 1}) {
    std::istringstream part(text.substr(0, length));
    AdamTrainer untouched(s.m);
    THROWS(std::runtime_error, "populate of a trainer", untouched.populate(part));
    CHECK(untouched.moving_average() == MovingAverage::None);
  }
  std::ostringstream fields;
  THROWS(std::runtime_error, "checkpoint has no moving averages", t.save_fields(fields));
}

TEST(names_of_averages) {
  std::istringstream is("Cumulative None Exponential Other");
  MovingAverage a;
  std::ostringstream os;
  for (int k = 0; k < 3; ++k) {
    is >> a;
    os << a << ' ';
  }
  EQUAL(os.str(), "Cumulative None Exponential ");
  THROWS(std::runtime_error, "'Other' is no moving average", is >> a);
}

TEST(shadows_have_memory_of_their_own) {
  Small s;
  std::vector<ShadowParameters> p;
  std::vector<ShadowLookupParameters> l;
  allocate_shadow_parameters(s.m, 0, p);
  allocate_shadow_lookup_parameters(s.m, 0, l);
  CHECK(p.size() == 1 && l.size() == 1 && l[0].h.size() == 2);
  TensorTools::constant(l[0].h[1], 5);
  EQUAL(as_vector(l[0].all_h)[1], 5);
  ShadowLookupParameters copy = l[0];
  ShadowParameters other = p[0];
  TensorTools::constant(copy.all_h, 1);
  TensorTools::constant(other.h, 1);
  EQUAL(as_vector(copy.h[1])[0], 1);
  EQUAL(as_vector(l[0].h[1])[0], 5);
  EQUAL(as_vector(p[0].h)[0], 0);
  allocate_shadow_parameters(s.m, 1, p);
  CHECK(p.size() == 1);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
