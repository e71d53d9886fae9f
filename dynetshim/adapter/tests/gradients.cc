// What programs do to gradients in DyNet, under a vpps::trainer: each step in turn by DyNet and
// through libvpps, with DyNet's memory shared (CPU), copied (beside a handle, or a GPU) and left
// on the device (defer_copies).
#include "tagger.h"

#include <dynet/grad-check.h>
#include <dynet/param-init.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

using namespace dynet;

namespace {

enum way { by_dynet, alone, beside_a_handle };

// Losses and norms of steps, in each of which something is done to the gradients.
floats train(Trainer *(*make)(ParameterCollection &), way how, bool whole_tables,
             std::function<void(tagger &, unsigned)> something) {
  tagger t;
  const std::unique_ptr<Trainer> own(make(t.m));
  std::unique_ptr<vpps::trainer> wrapped(how == by_dynet ? nullptr : new vpps::trainer(*own));
  std::unique_ptr<vpps::handle> handle(how == beside_a_handle ? new vpps::handle(t.m) : nullptr);
  own->sparse_updates_enabled = !whole_tables;
  Trainer &trainer = wrapped ? *wrapped : *own;
  floats seen;
  for (unsigned k = 0; k < 12; k++) {
    {
      ComputationGraph cg;
      if (wrapped)
        vpps::accelerate(cg);
      Expression loss = t.loss(cg, k);
      seen.push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
    }
    something(t, k);
    seen.push_back(t.m.gradient_l2_norm());
    seen.push_back(as_vector(t.W.p->g)[3]);
    seen.push_back(as_vector(t.E.p->all_grads)[6 * 5 + 1]);
    seen.push_back(float(t.E.p->non_zero_grads.size()));
    trainer.update();
    seen.push_back(t.m.gradient_l2_norm()); // 0
    seen.push_back(t.W.p->nonzero_grad || t.E.p->has_grad());
  }
  for (float x : saved(t))
    seen.push_back(x);
  return seen;
}

const std::function<void(tagger &, unsigned)> deeds[] = {
    [](tagger &, unsigned) {},
    [](tagger &t, unsigned k) { // batches that the program skips
      if (k % 3 == 1)
        t.m.reset_gradient();
    },
    [](tagger &t, unsigned) {
      t.W.scale_gradient(0.5f);
      t.E.scale_gradient(2);
      t.rnn.params[0][0].scale_gradient(0);
    },
    [](tagger &t, unsigned k) { // one parameter, or one table
      if (k % 2)
        t.W.p->clear();
      else
        t.E.p->clear();
    },
    [](tagger &t, unsigned k) { // gradients of the program's own
      t.b.p->g.v[k % 4] += 0.25f;
      TensorTools::set_element(t.W.p->g, 7, -0.5f);
      const float row[] = {1, 2, 3, 4, 5, 6};
      float copy[6];
      std::copy(row, row + 6, copy);
      t.E.p->accumulate_grad(k, Tensor(Dim({6}), copy, default_device, DeviceMempool::NONE));
    },
};

} // namespace

TEST(what_is_done_to_gradients_counts) {
  for (auto make : {sgd, adam, momentum})
    for (const auto &something : deeds)
      for (bool whole : {false, true}) {
        const floats want = train(make, by_dynet, whole, something);
        for (way how : {alone, beside_a_handle})
          close(train(make, how, whole, something), want, 1e-4f);
      }
}

// Gradients of several backwards add up, with what the program does in between.
TEST(gradients_add_up) {
  floats traces[3];
  for (way how : {by_dynet, alone, beside_a_handle}) {
    tagger t;
    const std::unique_ptr<Trainer> own(adam(t.m));
    std::unique_ptr<vpps::trainer> wrapped(how == by_dynet ? nullptr : new vpps::trainer(*own));
    std::unique_ptr<vpps::handle> handle(how == beside_a_handle ? new vpps::handle(t.m) : nullptr);
    Trainer &trainer = wrapped ? *wrapped : *own;
    for (unsigned k = 0; k < 12; k++) {
      {
        ComputationGraph cg;
        if (wrapped && k % 4 != 2) // the third is DyNet's own
          vpps::accelerate(cg);
        Expression loss = t.loss(cg, k);
        traces[how].push_back(as_scalar(cg.forward(loss)));
        cg.backward(loss);
      }
      if (k % 4 == 0)
        t.E.scale_gradient(0.25f);
      traces[how].push_back(t.m.gradient_l2_norm());
      if (k % 4 == 3)
        trainer.update();
    }
  }
  close(traces[alone], traces[by_dynet], 1e-4f);
  close(traces[beside_a_handle], traces[by_dynet], 1e-4f);
}

TEST(gradients_from_before_the_wrapping_and_after_it_are_the_trainers) {
  floats traces[2];
  for (int through : {0, 1}) {
    ParameterCollection m;
    Parameter p = m.add_parameters({2}, ParameterInitConst(1));
    LookupParameter E = m.add_lookup_parameters(3, {2}, ParameterInitConst(1));
    SimpleSGDTrainer own(m, 0.5f);
    const auto backward = [&](float x) {
      ComputationGraph cg;
      if (through)
        vpps::accelerate(cg);
      Expression loss = sum_elems(cmult(parameter(cg, p), lookup(cg, E, 1u))) * x;
      cg.forward(loss);
      cg.backward(loss);
    };
    backward(1);
    std::unique_ptr<vpps::trainer> wrapped(through ? new vpps::trainer(own) : nullptr);
    backward(2);
    (through ? *wrapped : static_cast<Trainer &>(own)).update();
    traces[through].push_back(as_vector(*p.values())[0]);
    backward(1);
    wrapped.reset();
    traces[through].push_back(m.gradient_l2_norm());
    backward(3);
    own.update();
    for (float x : as_vector(*p.values()))
      traces[through].push_back(x);
    for (float x : as_vector(E.p->all_values))
      traces[through].push_back(x);
  }
  close(traces[1], traces[0], 1e-5f);
}

// sqrt has an infinite derivative at 0.
TEST(after_a_gradient_that_is_not_finite_a_reset_is_enough) {
  for (bool beside : {false, true}) {
    ParameterCollection m;
    Parameter p = m.add_parameters({2}, ParameterInitConst(0));
    SimpleSGDTrainer own(m, 0.5f);
    vpps::trainer trainer(own);
    std::unique_ptr<vpps::handle> handle(beside ? new vpps::handle(m) : nullptr);
    for (bool healthy : {false, true}) {
      ComputationGraph cg;
      vpps::accelerate(cg);
      Expression x = parameter(cg, p), loss = sum_elems(healthy ? x : sqrt(x));
      cg.forward(loss);
      cg.backward(loss);
      CHECK(std::isfinite(m.gradient_l2_norm()) == healthy);
      if (healthy) {
        trainer.update();
        EQUAL(as_vector(*p.values())[1], -0.5f);
        continue;
      }
      THROWS(std::runtime_error, "", trainer.update());
      m.reset_gradient();
    }
  }
}

TEST(gradients_that_stay_on_the_device_say_so) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  LookupParameter E = m.add_lookup_parameters(3, {2}, ParameterInitConst(1));
  SimpleSGDTrainer own(m, 0.5f);
  vpps::trainer trainer(own);
  trainer.clipping_enabled = false;
  vpps::handle handle(m); // so that a CPU copies, too
  trainer.defer_copies = true;
  const auto backward = [&] {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression loss = sum_elems(parameter(cg, p) + lookup(cg, E, 2u));
    cg.forward(loss);
    cg.backward(loss);
  };
  backward();
  CHECK(std::isnan(m.gradient_l2_norm()));
  CHECK(p.p->has_grad() && E.p->non_zero_grads.count(2));
  backward();
  trainer.update();
  EQUAL(m.gradient_l2_norm(), 0);
  CHECK(std::isnan(p.p->values.v[0])); // until pull
  THROWS(std::runtime_error, "device", as_vector(*p.values()));
  vpps::pull(m);
  EQUAL(as_vector(*p.values())[1], 0);
  EQUAL(as_vector(E.p->all_values)[5], 0);
  EQUAL(as_vector(E.p->all_values)[3], 1);

  backward();
  m.reset_gradient();
  trainer.update();
  vpps::pull(m);
  EQUAL(as_vector(*p.values())[1], 0);

  backward();
  p.scale_gradient(0.5f);
  THROWS(std::logic_error, "defer_copies", trainer.update());
  m.reset_gradient();
  backward();
  p.p->clear();
  trainer.update();
  vpps::pull(m);
  EQUAL(as_vector(*p.values())[1], 0);
  EQUAL(as_vector(E.p->all_values)[5], -0.5f);
}

TEST(dynets_own_check_of_gradients_passes) {
  ParameterCollection m;
  Parameter weights = m.add_parameters({3, 3}, ParameterInitUniform(0.5f)),
            bias = m.add_parameters({3}, ParameterInitUniform(0.5f));
  LookupParameter E = m.add_lookup_parameters(4, {3}, ParameterInitUniform(0.5f));
  SimpleSGDTrainer own(m);
  vpps::trainer trainer(own);
  typedef std::function<Expression(Expression, Expression, Expression)> graph;
  const graph graphs[] = {
      [](Expression W, Expression v, Expression e) { return squared_norm(W * v + e); },
      [](Expression W, Expression v, Expression e) { return dot_product(tanh(W * e), v); },
      [](Expression W, Expression v, Expression e) {
        return pickneglogsoftmax(affine_transform({v, W, e}), 1u);
      },
      [](Expression W, Expression v, Expression e) {
        return sum_elems(cmult(logistic(W), W)) + sum_elems(v - e);
      },
      [](Expression W, Expression v, Expression e) { return squared_distance(softmax(W * v), e); },
      [](Expression W, Expression v, Expression e) { return sum_elems(exp(v) + square(W * e)); },
      [](Expression W, Expression v, Expression e) { return l2_norm(W * (v + e) + 1.f); },
      [](Expression W, Expression v, Expression e) {
        return sum_elems(log_softmax(concatenate({W * v, e}))) * 0.1f;
      },
      [](Expression W, Expression v, Expression e) {
        return sum_elems(transpose(W) * W * cmult(v, e));
      },
      [](Expression W, Expression v, Expression e) {
        return sum_elems(cdiv(v, square(e) + 1.f)) + sum_elems(W);
      },
      [](Expression W, Expression v, Expression e) { return dot_product(W * W * v, cmult(e, e)); },
      [](Expression W, Expression v, Expression e) {
        return sum_elems(pick(W, 1u, 1)) * sum_elems(v - e);
      },
  };
  for (const graph &f : graphs) {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression loss = f(parameter(cg, weights), parameter(cg, bias), lookup(cg, E, 2u));
    CHECK(check_grad(m, loss, 0));
    CHECK(m.gradient_l2_norm() > 0);
  }
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
