// What DyNet's calls mean, against the real engine: what is read anew and what is not,
// which gradients add up, what fb uses and leaves, and that wrong input is an exception
// after which everything goes on.
#include "check.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include <stdlib.h>
#include <unistd.h>

#include "dynet/dynet.h"
#include "dynet/exec.h"
#include "dynet/expr.h"
#include "dynet/io.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

typedef std::vector<float> Floats;

static std::ostream &operator<<(std::ostream &os, const Floats &v) {
  for (float x : v)
    os << x << ' ';
  return os;
}
static Floats values(const Expression &e) { return as_vector(e.value()); }
static Floats values(Parameter p) { return p.p.unexposed()->read(VPPS_VALUES); }
static Floats gradient(Parameter p) { return p.p.unexposed()->read(VPPS_GRADIENT); }
static Parameter make(ParameterCollection &m, const Dim &d, const Floats &v) {
  return m.add_parameters(d, ParameterInitFromVector(v));
}

// ---- what is read anew ---------------------------------------------------------------

// A graph with every kind of pointer.
struct Pointees {
  ParameterCollection model;
  LookupParameter table = model.add_lookup_parameters(3, {2});
  float scalar = 2;
  Floats vector = {1, 2, 3};
  unsigned element = 0, label = 0, row = 0;
  std::vector<unsigned> rows = {0, 1};
  ComputationGraph cg;
  Expression all;

  Pointees() {
    for (unsigned i = 0; i < 3; ++i)
      table.initialize(i, {10.f * i, 10.f * i + 1});
    Expression v = input(cg, {3}, &vector);
    all = concatenate({input(cg, &scalar), v, pick(v, &element), pickneglogsoftmax(v, &label),
                       lookup(cg, table, &row), sum_batches(lookup(cg, table, &rows))});
  }
  void change() {
    scalar = 5;
    vector = {6, 8, 6};
    element = 1;
    label = 2;
    row = 2;
    rows = {2, 2};
  }
  static Floats loss(const Floats &v, unsigned label) {
    float z = 0;
    for (float x : v)
      z += std::exp(x);
    return {std::log(z) - v[label]};
  }
  void is_old(const Floats &have) const {
    EQUAL(have, (Floats{2, 1, 2, 3, 1, loss({1, 2, 3}, 0)[0], 0, 1, 10, 12}));
  }
  void is_new(const Floats &have) const {
    EQUAL(have, (Floats{5, 6, 8, 6, 8, loss({6, 8, 6}, 2)[0], 20, 21, 40, 42}));
  }
};

TEST(forward_reads_pointees_anew) {
  Pointees p;
  p.is_old(as_vector(p.cg.forward(p.all)));
  p.change();
  p.is_new(as_vector(p.cg.forward(p.all)));
}
TEST(incremental_forward_does_not_read_pointees_of_evaluated_nodes) {
  Pointees p;
  p.is_old(as_vector(p.cg.incremental_forward(p.all)));
  p.change();
  p.is_old(as_vector(p.cg.incremental_forward(p.all)));
  p.cg.invalidate();
  p.is_new(as_vector(p.cg.incremental_forward(p.all)));
}
TEST(value_does_not_read_pointees_of_evaluated_nodes) {
  Pointees p;
  p.is_old(values(p.all));
  p.change();
  p.is_old(values(p.all));
  EQUAL(values(input(p.cg, &p.scalar)), Floats{5}); // a new node does
  p.is_old(values(p.all));
}

// A matrix and a vector, in the uses that read them differently.
struct Parameters {
  ParameterCollection model;
  Parameter W = make(model, {2, 2}, {1, 0, 0, 1}), b = make(model, {2}, {1, 2});
  ComputationGraph cg;
  Expression w = parameter(cg, W), c = parameter(cg, b), x = input(cg, {2}, {3, 4});
  Expression y = w * x + c;

  void change() {
    W.set_value({2, 0, 0, 2});
    b.set_value({10, 20});
  }
};

TEST(forward_reads_parameters_anew) {
  Parameters p;
  EQUAL(as_vector(p.cg.forward(p.y)), (Floats{4, 6}));
  p.change();
  EQUAL(as_vector(p.cg.forward(p.y)), (Floats{16, 28}));
}
TEST(incremental_forward_keeps_evaluated_parameters) {
  Parameters p;
  p.cg.incremental_forward(p.y);
  p.change();
  EQUAL(as_vector(p.cg.incremental_forward(p.y)), (Floats{4, 6}));
}
TEST(value_keeps_evaluated_parameters) {
  Parameters p;
  values(p.y);
  p.change();
  EQUAL(values(p.y), (Floats{4, 6}));
}
TEST(later_nodes_use_an_evaluated_parameter_node_as_it_was) {
  Parameters p;
  values(p.c); // evaluates w and c
  p.change();
  EQUAL(values(p.w * p.x), (Floats{3, 4}));
  EQUAL(values(p.c + p.x), (Floats{4, 6}));
  EQUAL(values(p.w), (Floats{1, 0, 0, 1}));
  EQUAL(values(parameter(p.cg, p.W) * p.x), (Floats{6, 8})); // a node of its own
}
TEST(the_gradient_passes_through_the_old_value_too) {
  Parameters p;
  Expression loss = sum_elems(p.w * parameter(p.cg, p.b));
  values(loss);
  p.W.set_value({5, 5, 5, 5});
  p.cg.backward(loss);
  EQUAL(gradient(p.b), (Floats{1, 1}));
}

TEST(nodes_may_be_added_after_a_value) {
  Parameters p;
  Expression h = p.y;
  for (int i = 0; i < 20; ++i) {
    values(h);
    h = tanh(p.w * h + p.c);
  }
  Floats step_by_step = values(h);
  Floats at_once = as_vector(p.cg.forward(h));
  EQUAL(step_by_step, at_once);
  EQUAL(values(p.y), (Floats{4, 6}));
}

TEST(forward_draws_masks_anew_and_what_follows_sees_the_same) {
  ParameterCollection m;
  Parameter p = make(m, {200}, Floats(200, 1));
  ComputationGraph cg;
  Expression d = dropout(parameter(cg, p), 0.5f), loss = sum_elems(d);
  Floats first = as_vector(cg.forward(d));
  Floats second = as_vector(cg.forward(d));
  CHECK(first != second);
  EQUAL(values(d), second);
  cg.backward(loss);
  EQUAL(gradient(p), second); // d sum(mask * p) / dp
  SimpleSGDTrainer trainer(m, 1);
  trainer.clipping_enabled = false;
  vpps::handle hndl(m, trainer);
  m.reset_gradient();
  hndl.fb(m, cg, loss);
  Floats left;
  for (float x : second)
    left.push_back(1 - x);
  EQUAL(values(p), left);
}

// ---- gradients and updates -----------------------------------------------------------

TEST(backward_twice_adds_and_update_clears) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model, 0.5f);
  Expression loss = sum_elems(p.c);
  p.cg.backward(loss);
  p.cg.backward(loss);
  EQUAL(gradient(p.b), (Floats{2, 2}));
  trainer.update();
  EQUAL(values(p.b), (Floats{0, 1}));
  EQUAL(gradient(p.b), (Floats{0, 0}));
  trainer.update(); // nothing is left to apply
  EQUAL(values(p.b), (Floats{0, 1}));
}

TEST(frozen_parameters_stay_and_collect) {
  Parameters p;
  p.b.set_updated(false);
  SimpleSGDTrainer trainer(p.model, 0.5f);
  trainer.clipping_enabled = false;
  vpps::handle hndl(p.model, trainer);
  Expression loss = sum_elems(p.y);
  p.cg.backward(loss);
  trainer.update();
  EQUAL(values(p.b), (Floats{1, 2}));
  EQUAL(gradient(p.b), (Floats{1, 1}));
  EQUAL(values(p.W), (Floats{-0.5f, -1.5f, -2, -1}));
  hndl.fb(p.model, p.cg, loss);
  EQUAL(values(p.b), (Floats{1, 2}));
  EQUAL(gradient(p.b), (Floats{2, 2}));
  p.b.set_updated(true);
  p.cg.backward(sum_elems(p.c));
  trainer.update();
  EQUAL(values(p.b), (Floats{1 - 1.5f, 2 - 1.5f}));
}

TEST(two_models_in_one_graph) {
  ParameterCollection one, two;
  Parameter a = make(one, {2, 2}, {1, 0, 0, 1}), b = make(two, {2, 2}, {2, 0, 0, 2});
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 1});
  Expression loss = sum_elems(parameter(cg, a) * (parameter(cg, b) * x));
  SimpleSGDTrainer of_one(one, 1), of_two(two, 1);
  of_one.clipping_enabled = of_two.clipping_enabled = false;
  cg.backward(loss);
  EQUAL(gradient(a), (Floats{2, 2, 2, 2}));
  EQUAL(gradient(b), (Floats{1, 1, 1, 1}));
  of_one.update();
  EQUAL(values(a), (Floats{-1, -2, -2, -1}));
  EQUAL(values(b), (Floats{2, 0, 0, 2}));
  of_two.update();
  EQUAL(values(b), (Floats{1, -1, -1, 1}));

  // A handle updates its model; the other's gradients wait for their trainer.
  vpps::handle hndl(two, of_two);
  a.set_value({1, 0, 0, 1});
  b.set_value({2, 0, 0, 2});
  hndl.fb(two, cg, loss);
  EQUAL(values(b), (Floats{1, -1, -1, 1}));
  EQUAL(gradient(b), (Floats{0, 0, 0, 0}));
  EQUAL(values(a), (Floats{1, 0, 0, 1}));
  EQUAL(gradient(a), (Floats{2, 2, 2, 2}));
  of_one.update();
  EQUAL(values(a), (Floats{-1, -2, -2, -1}));
}

TEST(writing_through_values) {
  ParameterCollection m;
  Parameter p = make(m, {2}, {1, 2});
  LookupParameter t = m.add_lookup_parameters(3, {2}, ParameterInitConst(1));
  SimpleSGDTrainer trainer(m, 0.5f);
  p.values()->v[1] = 7;
  t.get_storage().values[2].v[0] = 9;
  ComputationGraph cg;
  Expression x = parameter(cg, p), r = lookup(cg, t, 2u);
  EQUAL(values(x), (Floats{1, 7}));
  EQUAL(values(r), (Floats{9, 1}));
  cg.backward(sum_elems(x) + sum_elems(r));
  EQUAL(as_vector(*p.gradients()), (Floats{1, 1}));
  EQUAL(as_vector(t.get_storage().grads[2]), (Floats{1, 1}));
  p.gradients()->v[0] = 3; // counts in the update
  trainer.update();
  EQUAL(as_vector(*p.values()), (Floats{-0.5f, 6.5f}));
  EQUAL(as_vector(t.get_storage().values[2]), (Floats{8.5f, 0.5f}));
  EQUAL(as_vector(t.get_storage().values[1]), (Floats{1, 1}));
  EQUAL(as_vector(*p.gradients()), (Floats{0, 0}));
  vpps::handle hndl(m, trainer);
  p.values()->v[0] = 4;
  hndl.fb(m, cg, sum_elems(x));
  EQUAL(as_vector(*p.values()), (Floats{3.5f, 6}));
}

// ---- fb --------------------------------------------------------------------------------

// Trains over some graphs; the losses of all batches.
enum { GRAPHS = VPPS_FB_LAG + 4 };
static Floats train(bool clear, bool each) {
  ParameterCollection m;
  Parameter W = make(m, {2, 2}, {1, .5f, -.5f, 1}), b = make(m, {2}, {.1f, .2f});
  LookupParameter t = m.add_lookup_parameters(4, {2}, ParameterInitConst(.25f));
  vpps::handle hndl(m);
  ComputationGraph cg;
  Floats losses;
  for (unsigned i = 0; i < GRAPHS; ++i) {
    Expression x = lookup(cg, t, i % 4);
    for (unsigned k = 0; k <= i; ++k)
      x = tanh(parameter(cg, W) * x + parameter(cg, b));
    float stale = hndl.fb(m, cg, pickneglogsoftmax(x, i % 2));
    if (each)
      losses.push_back(hndl.sync_get_latest_loss());
    else if (i >= VPPS_FB_LAG)
      losses.push_back(stale);
    else
      EQUAL(stale, 0);
    if (clear)
      cg.clear();
  }
  if (!each) {
    losses.insert(losses.end(), VPPS_FB_LAG - 1, 0.f); // of these nobody is told
    losses.push_back(hndl.sync_get_latest_loss());
  }
  return losses;
}

TEST(graphs_may_be_cleared_while_batches_are_in_flight) {
  Floats waiting = train(false, true), cleared = train(true, false);
  for (size_t k = GRAPHS - VPPS_FB_LAG; k < GRAPHS - 1; ++k)
    cleared[k] = waiting[k];
  EQUAL(cleared, waiting);
}

TEST(graphs_may_be_destroyed_while_batches_are_in_flight) {
  ParameterCollection m;
  Parameter b = make(m, {2}, {1, 2});
  SimpleSGDTrainer trainer(m, 0.5f);
  trainer.clipping_enabled = false;
  vpps::handle hndl(m, trainer);
  for (int i = 0; i < 4; ++i) {
    ComputationGraph cg;
    hndl.fb(m, cg, sum_elems(parameter(cg, b)));
  }
  EQUAL(hndl.sync_get_latest_loss(), 3 - 3 * 1.f);
  EQUAL(values(b), (Floats{-1, 0}));
}

TEST(execution_engines_are_the_graph) {
  Parameters p;
  THROWS(std::invalid_argument, "set the list", p.cg.nodes = std::vector<Node *>());
  const Expression loss = sum_elems(p.c);
  p.cg.ee.reset(new BatchedExecutionEngine(p.cg));
  ExecutionEngine &e = *p.cg.ee;
  EQUAL(as_scalar(e.incremental_forward()), 3);
  p.change();
  e.invalidate(loss.i);
  EQUAL(as_scalar(e.get_value(loss.i)), 3); // of the old value of c
  e.invalidate();
  EQUAL(as_scalar(e.get_value(loss.i)), 30);
  p.b.set_value({5, 6});
  const std::vector<const Tensor *> both = e.forward({loss.i, p.c.i});
  EQUAL(as_scalar(*both[0]), 11);
  EQUAL(as_vector(*both[1]), (Floats{5, 6}));
  e.backward();
  EQUAL(as_vector(e.get_gradient(p.c.i)), (Floats{1, 1}));
  THROWS(std::invalid_argument, "no node", e.invalidate(1000));
  p.cg.clear();
  THROWS(std::invalid_argument, "no nodes", e.forward());
}

TEST(nodes_keep_a_parameter_that_the_program_drops) {
  ComputationGraph cg;
  std::vector<Expression> all;
  for (float k = 1; k < 4; ++k) {
    ParameterCollection m;
    all.push_back(parameter(cg, make(m, {2}, {k, 2})));
    LookupParameter table = m.add_lookup_parameters(3, {2});
    table.initialize(1, {10 * k, 0});
    all.push_back(const_lookup(cg, table, 1u));
    if (k == 2)
      EQUAL(values(sum(all)), (Floats{33, 4}));
  }
  const Expression loss = sum_elems(sum(all));
  EQUAL(values(loss), (Floats{72}));
  cg.backward(loss);
  EQUAL(as_vector(all[0].gradient()), (Floats{1, 1}));
  cg.clear();
  ParameterCollection m;
  EQUAL(values(parameter(cg, make(m, {2}, {5, 6}))), (Floats{5, 6}));
}

TEST(fb_uses_what_was_evaluated_and_adds_pending_gradients) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model, 0.5f);
  vpps::handle hndl(p.model, trainer);
  Expression loss = sum_elems(p.c);
  values(p.c);
  p.b.set_value({100, 200}); // not read: c is evaluated
  p.cg.backward(loss);
  hndl.fb(p.model, p.cg, loss);
  EQUAL(hndl.sync_get_latest_loss(), 3);
  EQUAL(values(p.b), (Floats{99, 199}));
}

TEST(value_after_fb_is_that_of_before_or_an_error) {
  Parameters p;
  vpps::handle hndl(p.model);
  Expression loss = sum_elems(p.y);
  values(p.c);
  hndl.fb(p.model, p.cg, loss);
  EQUAL(values(p.c), (Floats{1, 2}));
  THROWS(std::runtime_error, "fb has consumed the graph", values(p.y));
  THROWS(std::runtime_error, "fb has consumed the graph", values(tanh(p.c)));
  EQUAL(values(p.c), (Floats{1, 2}));
  p.cg.forward(p.c);
  CHECK(values(p.c) != (Floats{1, 2}));
  Floats now = values(p.y);
  hndl.fb(p.model, p.cg, loss); // and all over again
  EQUAL(values(p.y), now);
}

TEST(a_second_fb_evaluates_again) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model, 1);
  trainer.clipping_enabled = false;
  vpps::handle hndl(p.model, trainer);
  Expression loss = sum_elems(p.c);
  hndl.fb(p.model, p.cg, loss);
  EQUAL(hndl.sync_get_latest_loss(), 3);
  hndl.fb(p.model, p.cg, loss);
  EQUAL(hndl.sync_get_latest_loss(), 1);
}

TEST(update_right_after_fb_is_refused) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model);
  vpps::handle hndl(p.model, trainer);
  Expression loss = sum_elems(p.y);
  hndl.fb(p.model, p.cg, loss);
  Floats after = values(p.b);
  THROWS(std::runtime_error, "update right after fb", trainer.update());
  EQUAL(values(p.b), after);
  p.cg.backward(loss);
  trainer.update();
  CHECK(values(p.b) != after);
}

// ---- checkpoint and revert ---------------------------------------------------------------

TEST(revert_drops_what_was_built_since) {
  Parameters p;
  EQUAL(values(p.y), (Floats{4, 6}));
  size_t nodes = p.cg.nodes.size();
  float x = 1;
  for (int round = 0; round < 5; ++round) {
    p.cg.checkpoint();
    Expression more = p.y * input(p.cg, &x);
    EQUAL(values(more), (Floats{4 * x, 6 * x}));
    p.cg.checkpoint();
    EQUAL(values(more + more), (Floats{8 * x, 12 * x}));
    p.cg.revert();
    EQUAL(values(more), (Floats{4 * x, 6 * x}));
    p.cg.revert();
    EQUAL(p.cg.nodes.size(), nodes);
    EQUAL(values(p.y), (Floats{4, 6}));
    x += 1;
  }
  p.cg.revert(); // no checkpoint is left: nothing happens
  p.cg.backward(sum_elems(p.y));
  EQUAL(gradient(p.b), (Floats{1, 1}));
}

// ---- wrong input -------------------------------------------------------------------------

// What follows a wrong call: parameters are as before, the graph goes on.
static void goes_on(Parameters &p) {
  EQUAL(values(p.W), (Floats{1, 0, 0, 1}));
  EQUAL(values(p.b), (Floats{1, 2}));
  EQUAL(values(p.y), (Floats{4, 6}));
}

TEST(a_bad_index_is_told_by_the_call_that_evaluates_it) {
  Parameters p;
  LookupParameter t = p.model.add_lookup_parameters(3, {2});
  vpps::handle hndl(p.model);
  values(p.y);
  unsigned row = 3;
  p.cg.checkpoint();
  Expression r = lookup(p.cg, t, &row), loss = sum_elems(r);
  THROWS(std::invalid_argument, "row 3", values(r));
  THROWS(std::invalid_argument, "row 3", p.cg.forward(loss));
  THROWS(std::invalid_argument, "row 3", p.cg.backward(loss));
  THROWS(std::invalid_argument, "row 3", hndl.fb(p.model, p.cg, loss));
  row = 1; // mended: the same nodes are evaluated
  EQUAL(values(loss), Floats{values(r)[0] + values(r)[1]});
  goes_on(p);
}
TEST(a_bad_label_is_told_by_the_call_that_evaluates_it) {
  Parameters p;
  values(p.y);
  unsigned label = 2;
  Expression loss = pickneglogsoftmax(p.y, &label), element = pick(p.y, &label);
  THROWS(std::invalid_argument, "2", values(loss));
  label = 1;
  values(loss);
  label = 2;
  THROWS(std::invalid_argument, "2", values(element));
  goes_on(p);
}
TEST(a_shape_mismatch_is_told_by_the_function) {
  Parameters p;
  size_t nodes = p.cg.nodes.size();
  THROWS(std::invalid_argument, "", p.w * input(p.cg, {3}, {1, 2, 3}));
  EQUAL(p.cg.nodes.size(), nodes + 1); // the input
  goes_on(p);
}
TEST(an_expression_of_another_graph_is_refused) {
  Expression old;
  {
    ComputationGraph cg;
    old = input(cg, 1.f);
  }
  Parameters p;
  THROWS(std::invalid_argument, "another graph", p.c * old);
  THROWS(std::invalid_argument, "another graph", p.cg.forward(old));
  THROWS(std::runtime_error, "stale", old.value());
  goes_on(p);
}
TEST(a_loss_that_is_not_finite_names_the_batch) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model);
  vpps::handle hndl(p.model, trainer);
  float x = 0;
  Expression loss = sum_elems(p.y) * log(input(p.cg, &x));
  hndl.fb(p.model, p.cg, loss);
  THROWS(std::runtime_error, "batch 1", hndl.sync_get_latest_loss());
  EQUAL(values(p.W), (Floats{1, 0, 0, 1}));
  EQUAL(values(p.b), (Floats{1, 2}));
  x = 1; // log 1 = 0: no gradient
  hndl.fb(p.model, p.cg, loss);
  EQUAL(hndl.sync_get_latest_loss(), 0);
  x = std::numeric_limits<float>::quiet_NaN();
  hndl.fb(p.model, p.cg, loss);
  x = 2;
  hndl.fb(p.model, p.cg, loss); // behind it: not applied
  THROWS(std::runtime_error, "batch 3", values(p.W));
  EQUAL(values(p.W), (Floats{1, 0, 0, 1}));
  p.cg.forward(p.y);
  goes_on(p);
}
TEST(backward_from_a_loss_that_is_not_finite_names_the_first_such_value) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model);
  Expression zero = input(p.cg, 0.f), bad = log(zero);
  Expression loss = sum_elems(p.y) * bad;
  p.cg.forward(loss);
  EQUAL(as_scalar(loss.value()), -std::numeric_limits<float>::infinity()); // as DyNet says
  std::string node = "node " + std::to_string(bad.i) + " (Log) {1}, which is -Inf, of node " +
                     std::to_string(zero.i) + " (ScalarInputNode) {1}, which is 0";
  THROWS(std::runtime_error, node.c_str(), p.cg.backward(loss));
  THROWS(std::runtime_error, node.c_str(), p.cg.backward(loss));
  EQUAL(p.model.gradient_l2_norm(), 0);
  p.cg.backward(sum_elems(p.y));
  trainer.update();
}
TEST(gradients_that_are_not_finite_are_not_applied_by_update) {
  Parameters p;
  SimpleSGDTrainer trainer(p.model);
  // Of a root at 0 the value is finite, the gradient is not.
  p.cg.backward(sqrt(sum_elems(p.y) * input(p.cg, 0.f)));
  THROWS(std::runtime_error, "model.reset_gradient()", trainer.update());
  goes_on(p);
  p.model.reset_gradient();
  p.cg.backward(sum_elems(p.y));
  trainer.update();
}
// ---- trainers ------------------------------------------------------------------------

TEST(trainers_have_dynets_defaults) {
  ParameterCollection m;
  EQUAL(SimpleSGDTrainer(m).learning_rate, 0.1f);
  EQUAL(CyclicalSGDTrainer(m).learning_rate, 0.01f);
  EQUAL(MomentumSGDTrainer(m).learning_rate, 0.01f);
  EQUAL(MomentumSGDTrainer(m).momentum, 0.9f);
  EQUAL(AdagradTrainer(m).learning_rate, 0.1f);
  EQUAL(AdagradTrainer(m).epsilon, 1e-20f);
  EQUAL(AdadeltaTrainer(m).epsilon, 1e-6f);
  EQUAL(AdadeltaTrainer(m).rho, 0.95f);
  EQUAL(RMSPropTrainer(m).learning_rate, 0.1f);
  EQUAL(RMSPropTrainer(m).epsilon, 1e-20f);
  EQUAL(RMSPropTrainer(m).rho, 0.95f);
  EQUAL(AdamTrainer(m).learning_rate, 0.001f);
  EQUAL(AdamTrainer(m).beta_2, 0.999f);
  EQUAL(AmsgradTrainer(m).epsilon, 1e-8f);
  EQUAL(EGTrainer(m).momentum, 0.9f);
}

// Two steps of Adam by fb, each on its own graph; between them maybe the model is saved and loaded.
static Floats two_steps(bool saved) {
  ParameterCollection m;
  Parameter p = make(m, {2}, {1, 2});
  AdamTrainer trainer(m, 0.1f);
  vpps::handle hndl(m, trainer);
  for (unsigned k = 0; k < 2; ++k) {
    ComputationGraph cg;
    hndl.fb(m, cg, squared_norm(parameter(cg, p)));
    if (saved && k == 0) {
      const std::string file = "/tmp/vpps_trainer_" + std::to_string(getpid());
      const Floats before = values(p);
      TextFileSaver(file).save(m);
      p.zero();
      TextFileLoader(file).populate(m);
      EQUAL(values(p), before);
      unlink(file.c_str());
    }
  }
  hndl.sync_get_latest_loss();
  EQUAL(trainer.updates, 2);
  return values(p);
}

TEST(a_trainer_goes_on_after_its_model_was_saved_and_loaded) {
  EQUAL(two_steps(true), two_steps(false));
}

TEST(restart_forgets_what_the_rule_remembers) {
  ParameterCollection m;
  Parameter p = make(m, {1}, {1});
  MomentumSGDTrainer trainer(m, 0.5f, 0.5f);
  vpps::handle hndl(m, trainer);
  for (float want : {0.5f, -0.25f, -0.75f}) {
    ComputationGraph cg;
    hndl.fb(m, cg, sum_elems(parameter(cg, p)));
    EQUAL(values(p), Floats{want});
    if (want == -0.25f)
      trainer.restart();
  }
}

TEST(model_files_that_cannot_be_read) {
  Parameters p;
  THROWS(std::runtime_error, "no-such-file",
         TextFileLoader("/no-such-folder/no-such-file").populate(p.model));
  char name[] = "/tmp/vpps-model-XXXXXX";
  close(mkstemp(name));
  std::ofstream(name) << "#Parameter# /_0 {2,2} 40 ZERO_GRAD\n1 two 3 4\n";
  bool threw = false;
  try {
    TextFileLoader(name).populate(p.model);
  } catch (const std::exception &e) {
    threw = true;
  }
  std::remove(name);
  CHECK(threw);
  goes_on(p);
}

TEST(a_graph_from_before_initialize_is_used_after_it) {
  cleanup();
  ComputationGraph cg;
  cg.clear();
  initialize(DynetParams());
  ParameterCollection m;
  const Expression loss = sum_elems(2 * parameter(cg, make(m, {2}, {1, 2})));
  EQUAL(values(loss), (Floats{6}));
  cg.backward(loss);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
