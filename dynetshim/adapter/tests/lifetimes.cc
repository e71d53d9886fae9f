// What lives how long, and what is set when: models that go before their trainers, DyNet's choice
// of an engine, averages and seeds set late, values that DyNet's memory does not have yet.
#include "tagger.h"

#include <dynet/exec.h>
#include <dynet/globals.h>
#include <dynet/init.h>
#include <dynet/param-init.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <memory>
#include <typeinfo>

using namespace dynet;

namespace {
// One step of loss = 2 * sum(p).
void step(vpps::trainer &trainer, Parameter &p) {
  ComputationGraph cg;
  vpps::accelerate(cg);
  Expression loss = sum_elems(parameter(cg, p)) * 2.f;
  cg.forward(loss);
  cg.backward(loss);
  trainer.update();
}

// Another model lies where the old one was.
void overwrite_memory() {
  for (int k = 0; k < 50; k++) {
    std::unique_ptr<char[]> block(new char[64 + 8 * k]);
    std::fill(block.get(), block.get() + 64 + 8 * k, '\x5a');
  }
}
} // namespace

TEST(a_model_may_go_before_its_trainer) {
  for (bool held : {false, true}) {
    std::unique_ptr<ParameterCollection> m(new ParameterCollection);
    Parameter p = m->add_parameters({2}, ParameterInitConst(1));
    MomentumSGDTrainer own(*m, 0.5f);
    std::unique_ptr<vpps::trainer> trainer(new vpps::trainer(own));
    step(*trainer, p);
    if (!held)
      p = Parameter();
    m.reset();
    overwrite_memory();
    THROWS(std::logic_error, "the model was destroyed before its trainer", trainer->update());
    THROWS(std::logic_error, "declare the model first", trainer->restart());
    trainer.reset();
  }
}

TEST(a_model_may_go_before_its_handle) {
  for (bool held : {false, true}) {
    std::unique_ptr<ParameterCollection> m(new ParameterCollection);
    ParameterCollection other;
    Parameter p = m->add_parameters({2}, ParameterInitConst(1)),
              q = other.add_parameters({2}, ParameterInitConst(1));
    std::unique_ptr<vpps::handle> handle(new vpps::handle(*m));
    {
      ComputationGraph cg;
      handle->fb(*m, cg, sum_elems(parameter(cg, p)));
    }
    if (!held)
      p = Parameter();
    m.reset();
    overwrite_memory();
    ComputationGraph cg;
    THROWS(std::logic_error, "the model was destroyed before its handle",
           handle->fb(other, cg, sum_elems(parameter(cg, q))));
    handle->sync_get_latest_loss();
    handle.reset();
  }
}

TEST(models_with_decay_come_and_go_while_parameters_are_held) {
  std::vector<Parameter> held;
  for (int k = 0; k < 4; k++) {
    std::unique_ptr<ParameterCollection> m(new ParameterCollection);
    m->set_weight_decay_lambda(0.25f);
    held.push_back(m->add_parameters({2}, ParameterInitConst(1)));
    SimpleSGDTrainer own(*m, 0);
    vpps::trainer trainer(own);
    step(trainer, held.back());
    EQUAL(held.back().current_weight_decay(), 0.75f);
    m.reset();
    overwrite_memory();
  }
}

namespace {
// DyNet 2.1 has no averages.
template <class T>
auto average(T &t, int) -> decltype(t.exponential_moving_average(0.5f, 1), true) {
  t.exponential_moving_average(0.5f, 1);
  return true;
}
template <class T> bool average(T &, long) { return false; }
template <class T> auto swap(T &t, int) -> decltype(t.swap_params_to_moving_average(true, false)) {
  t.swap_params_to_moving_average(true, false);
}
template <class T> void swap(T &, long) {}
} // namespace

TEST(an_average_set_after_the_wrapping_is_kept) {
  floats traces[2];
  for (int through : {0, 1}) {
    tagger t;
    const std::unique_ptr<Trainer> own(adam(t.m));
    std::unique_ptr<vpps::trainer> wrapped(through ? new vpps::trainer(*own) : nullptr);
    Trainer &trainer = wrapped ? *wrapped : *own;
    if (!average(*own, 0)) // DyNet takes it before the first update only
      return;
    for (unsigned k = 0; k < 10; k++) {
      ComputationGraph cg;
      if (through)
        vpps::accelerate(cg);
      Expression loss = t.loss(cg, k);
      traces[through].push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      trainer.update();
    }
    swap(*own, 0);
    for (float x : saved(t))
      traces[through].push_back(x);
  }
  close(traces[1], traces[0], 1e-4f);
}

TEST(an_average_of_the_wrapper_is_refused) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer own(m);
  vpps::trainer trainer(own);
  if (average(static_cast<Trainer &>(trainer), 0))
    THROWS(std::invalid_argument, "set it on the trainer that it wraps", step(trainer, p));
}

TEST(random_numbers_follow_reset_rng) {
  ParameterCollection m;
  Parameter p = m.add_parameters({20}, ParameterInitConst(1));
  SimpleSGDTrainer own(m, 0.1f);
  floats runs[4];
  for (int k : {0, 1, 2, 3}) {
    p.set_value(std::vector<float>(20, 1));
    if (k != 2)
      reset_rng(5);
    if (k == 3)
      rand01();
    vpps::trainer trainer(own);
    for (int step = 0; step < 3; step++) {
      ComputationGraph cg;
      vpps::accelerate(cg);
      Expression x = dropout(parameter(cg, p), 0.5f);
      if (step == 1)
        runs[k].push_back(as_vector(x.value())[0]);
      Expression loss = sum_elems(x + random_uniform(cg, {20}, 0, 1));
      runs[k].push_back(as_scalar(cg.forward(loss)));
      runs[k].push_back(as_scalar(loss.value()));
      if (step == 2)
        runs[k].push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      for (float g : as_vector(x.gradient()))
        runs[k].push_back(g);
      for (float g : as_vector(p.p->g)) // the mask is the value's
        runs[k].push_back(g);
      trainer.update();
    }
    vpps::handle handle(m, own);
    ComputationGraph cg;
    handle.fb(m, cg, sum_elems(dropout(parameter(cg, p), 0.5f)));
    runs[k].push_back(handle.sync_get_latest_loss());
  }
  close(runs[1], runs[0], 0);
  CHECK(runs[2] != runs[0]);
  CHECK(runs[3] != runs[0]);
  // A program without random nodes has its own numbers for itself.
  reset_rng(5);
  const float first = rand01();
  reset_rng(5);
  {
    ComputationGraph cg;
    vpps::accelerate(cg);
    sum_elems(parameter(cg, p)).value();
  }
  EQUAL(rand01(), first);
}

TEST(a_forgotten_pull_is_noticed) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1)),
            still = m.add_parameters({2}, ParameterInitConst(3));
  LookupParameter E = m.add_lookup_parameters(2, {2}, ParameterInitConst(1));
  still.set_updated(false);
  SimpleSGDTrainer own(m, 0.5f);
  vpps::handle handle(m, own);
  const auto loss_of = [&](ComputationGraph &cg) {
    return sum_elems(parameter(cg, p) + lookup(cg, E, 1u) + parameter(cg, still));
  };
  const auto train = [&] {
    ComputationGraph cg;
    handle.fb(m, cg, loss_of(cg));
  };
  char name[] = "/tmp/vpps-adapter-XXXXXX";
  ::close(mkstemp(name));
  train();
  { // evaluated by DyNet
    ComputationGraph cg;
    CHECK(std::isnan(as_scalar(loss_of(cg).value())));
  }
  THROWS(std::runtime_error, "device", TextFileSaver(name).save(m));
  THROWS(std::runtime_error, "device", as_vector(*p.values()));
  THROWS(std::runtime_error, "device", as_vector(E.p->values[1]));
  EQUAL(as_vector(*still.values())[0], 3);
  THROWS(std::runtime_error, "device", p.scale(2));
  THROWS(std::runtime_error, "device", E.initialize(1, {1, 1}));
  p.p->values.v[0] = 7; // part of it, by hand
  THROWS(std::invalid_argument, "call pull", handle.push(m));
  handle.pull(m);
  EQUAL(as_vector(*p.values())[0], 0.5f);
  EQUAL(as_vector(E.p->values[1])[0], 0.5f);
  EQUAL(as_vector(E.p->values[0])[0], 1);
  { TextFileSaver(name).save(m); }
  p.scale(2);
  train(); // notices it
  handle.pull(m);
  EQUAL(as_vector(*p.values())[0], 0.5f);
  train();
  std::fill_n(p.p->values.v, 2, 4.f); // all of it
  handle.push(m);
  EQUAL(as_vector(*p.values())[1], 4);
  handle.pull(m);
  EQUAL(as_vector(*p.values())[1], 4);
  EQUAL(as_vector(E.p->values[1])[0], -0.5f);
  std::remove(name);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
