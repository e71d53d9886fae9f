// Nodes that libvpps does not know: refused by name or, on request, computed by DyNet, between the
// launches of the rest of their graph.
#include "own_class.h"
#include "tagger.h"

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/nodes.h>
#include <dynet/param-init.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <limits>
#include <memory>

using namespace dynet;

TEST(unknown_nodes_are_refused_or_computed_by_dynet) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer own(m, 0.25f);
  vpps::trainer trainer(own);
  vpps::handle hndl(m, own);
  {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression y = doubled(parameter(cg, p));
    THROWS(vpps::unknown_node, "node 1 is of class", y.value());
    THROWS(vpps::unknown_node, "twice", hndl.fb(m, cg, sum_elems(y)));
  }
  for (int k = 0; k < 2; k++) {
    ComputationGraph cg;
    vpps::accelerate(cg, vpps::or_dynet);
    Expression y = doubled(parameter(cg, p));
    Expression loss = sum_elems(y);
    EQUAL(as_scalar(loss.value()), k ? 2 : 4);
    cg.backward(loss);
    trainer.update(); // on the device, with DyNet's gradients
  }
  ComputationGraph cg;
  vpps::accelerate(cg);
  EQUAL(as_scalar(sum_elems(parameter(cg, p)).value()), 0);
}

namespace {
// Every third graph has a node that only DyNet knows.
floats losses(Trainer *(*make)(ParameterCollection &), float lambda, bool through, floats &model) {
  tagger t;
  t.m.set_weight_decay_lambda(lambda);
  const std::unique_ptr<Trainer> trainer(make(t.m));
  std::unique_ptr<vpps::handle> hndl(through ? new vpps::handle(t.m, *trainer) : nullptr);
  floats all;
  for (unsigned k = 0; k < 20; k++) {
    ComputationGraph cg;
    Expression loss = t.loss(cg, k);
    if (k % 3 == 1)
      loss = doubled(loss) / 2.f;
    if (hndl) {
      vpps::accelerate(cg, vpps::or_dynet);
      const float stale = hndl->fb(t.m, cg, loss);
      EQUAL(stale, k < VPPS_FB_LAG ? 0 : all[k - VPPS_FB_LAG]);
      if (k % 4 == 1)
        hndl->pull(t.m);
      all.push_back(hndl->sync_get_latest_loss());
    } else {
      all.push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      trainer->update();
    }
  }
  hndl.reset();
  model = saved(t);
  EQUAL(trainer->updates, 20);
  return all;
}
} // namespace

TEST(fb_of_a_graph_with_such_a_node_updates_the_same_parameters) {
  for (auto make : {sgd, adam, momentum, cyclical})
    for (float lambda : {0.f, 0.2f}) {
      floats want_model, got_model;
      const floats want = losses(make, lambda, false, want_model);
      close(losses(make, lambda, true, got_model), want, 1e-4f);
      close(got_model, want_model, 1e-4f);
    }
}

TEST(fb_of_a_graph_with_such_a_node_uses_what_was_evaluated) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer trainer(m, 0.25f);
  vpps::handle hndl(m, trainer);
  ComputationGraph cg;
  vpps::accelerate(cg, vpps::or_dynet);
  float x = 0.5f;
  Expression y = doubled(parameter(cg, p)), loss = sum_elems(y) * input(cg, &x);
  EQUAL(as_scalar(hndl.forward(cg, loss)), 2);
  x = 7;
  hndl.keep(y);
  hndl.fb(m, cg, loss); // with 0.5
  EQUAL(hndl.sync_get_latest_loss(), 2);
  EQUAL(as_scalar(loss.value()), 2); // of before the update
  EQUAL(as_vector(y.value())[0], 2);
  Expression later = doubled(y) + 1.f;
  THROWS(std::runtime_error, "fb has consumed the graph", later.value());
  EQUAL(as_vector(cg.forward(later))[0], 4);
  hndl.fb(m, cg, loss); // with 7
  EQUAL(hndl.sync_get_latest_loss(), 21);
}

TEST(a_failed_batch_with_such_a_node_is_told_and_forgotten) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  LookupParameter E = m.add_lookup_parameters(3, {2}, ParameterInitConst(1));
  SimpleSGDTrainer trainer(m, 0.25f);
  vpps::handle hndl(m, trainer);
  for (float factor : {1.f, std::numeric_limits<float>::quiet_NaN(), 1.f}) {
    ComputationGraph cg;
    vpps::accelerate(cg, vpps::or_dynet);
    Expression loss = sum_elems(doubled(parameter(cg, p) + lookup(cg, E, 1u))) * factor;
    hndl.fb(m, cg, loss);
    if (factor == 1)
      hndl.sync_get_latest_loss();
    else
      THROWS(std::runtime_error, "not finite", hndl.sync_get_latest_loss());
  }
  hndl.pull(m);
  EQUAL(as_vector(*p.values())[0], 0); // two updates of 0.25 * 2
  EQUAL(as_vector(E.p->values[1])[1], 0);
  EQUAL(as_vector(E.p->values[0])[1], 1);
}

TEST(what_was_drawn_stays) {
  ComputationGraph cg;
  vpps::accelerate(cg, vpps::or_dynet);
  Expression x = dropout(input(cg, {2}, {1, 2}), 0.5f);
  const floats drawn = as_vector(x.value());
  EQUAL(as_scalar(sum_elems(doubled(x)).value()), 2 * (drawn[0] + drawn[1]));
  const float sum = as_scalar(cg.forward(sum_elems(doubled(x)))) / 2;
  CHECK(sum == 0 || sum == 2 || sum == 4 || sum == 6);
}

namespace {
// x and y are two batch elements each; nodes of the program's own follow one another, and one is
// read twice.
struct several {
  ParameterCollection m;
  Parameter p = m.add_parameters({3}, ParameterInitConst(0.5f));
  LookupParameter E = m.add_lookup_parameters(4, {3}, ParameterInitConst(0.25f));
  Expression first, loss;
  void build(ComputationGraph &cg) {
    Expression x = lookup(cg, E, std::vector<unsigned>{1, 2}), w = parameter(cg, p);
    first = doubled(cmult(x, w) + 1.f);
    Expression second = product(tanh(first), first + w);
    Expression beside = doubled(logistic(x) - w);
    loss = sum_batches(sum_elems(square(second) + cmult(first, beside)));
  }
  static Expression product(const Expression &x, const Expression &y) {
    return Expression(x.pg, x.pg->add_function<times>({x.i, y.i}));
  }
};

floats gradients_of(several &s) {
  floats all = as_vector(s.p.get_storage().g);
  for (unsigned row = 0; row < 4; row++)
    for (float g : as_vector(s.E.p->grads[row]))
      all.push_back(g);
  return all;
}
} // namespace

TEST(gradients_pass_through_several_such_nodes) {
  several by_dynet, s;
  floats want, nodes;
  {
    ComputationGraph cg;
    by_dynet.build(cg);
    want.push_back(as_scalar(cg.forward(by_dynet.loss)));
    cg.backward(by_dynet.loss, true);
    nodes = as_vector(by_dynet.first.gradient());
    for (float g : gradients_of(by_dynet))
      want.push_back(g);
  }
  for (int k = 0; k < 2; k++) { // the second time the graph goes on
    ComputationGraph cg;
    vpps::accelerate(cg, vpps::or_dynet);
    s.m.reset_gradient();
    s.build(cg);
    floats got(1, as_scalar(s.loss.value()));
    cg.backward(s.loss, true);
    close(as_vector(s.first.gradient()), nodes, 1e-5f);
    for (float g : gradients_of(s))
      got.push_back(g);
    close(got, want, 1e-5f);
    EQUAL(as_scalar((s.loss * 2.f).value()), 2 * got[0]);
    if (k == 1)
      cg.backward(s.loss * 0.f); // adds nothing
    close(gradients_of(s), floats(want.begin() + 1, want.end()), 1e-5f);
  }
}

TEST(nodes_that_dynet_cannot_compute_alone_are_refused) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  ComputationGraph cg;
  vpps::accelerate(cg, vpps::or_dynet);
  const Expression x(&cg, cg.add_function<own_parameter>({parameter(cg, p).i}));
  THROWS(vpps::unknown_node, "a parameter's", x.value());
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
