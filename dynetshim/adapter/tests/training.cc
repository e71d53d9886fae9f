// An installed DyNet trains the same model with its own execution, accelerated with its own
// trainer, accelerated with vpps::trainer, and through vpps::handle: losses, saved files and
// errors must be what DyNet's user expects.
#include "check.h"

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/io.h>
#include <dynet/lstm.h>
#include <dynet/nodes.h>
#include <dynet/param-init.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

using namespace dynet;
typedef std::vector<float> floats;

namespace {

// A tagger small enough for DyNet and us to agree over many steps.
struct tagger {
  ParameterCollection m;
  LookupParameter E;
  Parameter W, b;
  VanillaLSTMBuilder rnn;
  tagger()
      : E(m.add_lookup_parameters(20, {6})), W(m.add_parameters({4, 5})), b(m.add_parameters({4})),
        rnn(1, 6, 5, m) {
    reset_rng(7);
    set(W.p->values);
    set(b.p->values);
    set(E.p->all_values);
    for (Parameter &p : rnn.params[0])
      set(p.p->values);
  }
  static void set(Tensor &t) { TensorTools::randomize_uniform(t, -0.4f, 0.4f); }
  Expression loss(ComputationGraph &cg, unsigned step) {
    rnn.new_graph(cg);
    rnn.start_new_sequence();
    Expression w = parameter(cg, W), bias = parameter(cg, b);
    std::vector<Expression> losses;
    for (unsigned i = 0; i < 6; i++)
      losses.push_back(pickneglogsoftmax(
          affine_transform({bias, w, rnn.add_input(lookup(cg, E, (step * 5 + i * i) % 20))}),
          (step + i) % 4));
    return sum(losses);
  }
};

void close(const floats &a, const floats &b, float tolerance) {
  EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++)
    if (!(std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(b[i]))))
      tests::fail(__FILE__, __LINE__,
                  "value " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " +
                      std::to_string(b[i]));
}

floats saved(tagger &t) {
  floats all;
  char name[] = "/tmp/vpps-adapter-XXXXXX";
  ::close(mkstemp(name));
  { TextFileSaver(name).save(t.m); }
  std::ifstream in(name);
  std::string word;
  while (in >> word)
    if (word[0] == '+' || word[0] == '-')
      all.push_back(std::stof(word));
  std::remove(name);
  return all;
}

// The losses of some steps by DyNet's calls, the model saved at the end.
floats train(std::function<Trainer *(ParameterCollection &)> make, bool accelerated, bool wrapped,
             unsigned steps, floats &model) {
  tagger t;
  std::unique_ptr<Trainer> own(make(t.m));
  std::unique_ptr<vpps::trainer> wrap(wrapped ? new vpps::trainer(*own) : nullptr);
  Trainer &trainer = wrap ? *wrap : *own;
  floats losses;
  for (unsigned k = 0; k < steps; k++) {
    ComputationGraph cg;
    if (accelerated)
      vpps::accelerate(cg);
    Expression loss = t.loss(cg, k);
    losses.push_back(as_scalar(cg.forward(loss)));
    cg.backward(loss);
    trainer.update();
    if (k == steps / 2)
      own->learning_rate /= 2;
  }
  model = saved(t);
  return losses;
}

Trainer *sgd(ParameterCollection &m) { return new SimpleSGDTrainer(m, 0.2f); }
Trainer *adam(ParameterCollection &m) { return new AdamTrainer(m); }
Trainer *momentum(ParameterCollection &m) { return new MomentumSGDTrainer(m); }
Trainer *adagrad(ParameterCollection &m) { return new AdagradTrainer(m); }
Trainer *adadelta(ParameterCollection &m) { return new AdadeltaTrainer(m); }
Trainer *rmsprop(ParameterCollection &m) { return new RMSPropTrainer(m, 0.01f, 1e-8f); }
Trainer *amsgrad(ParameterCollection &m) { return new AmsgradTrainer(m); }

} // namespace

TEST(accelerated_graphs_train_as_dynet_does) {
  for (auto make : {sgd, adam, momentum})
    for (bool wrapped : {false, true}) {
      floats want_model, got_model;
      const floats want = train(make, false, false, 30, want_model);
      const floats got = train(make, true, wrapped, 30, got_model);
      close(got, want, 1e-4f);
      close(got_model, want_model, 1e-4f);
    }
}

void fb_trains_as_dynet(Trainer *(*make)(ParameterCollection &)) {
  floats want_model;
  const floats want = train(make, false, false, 30, want_model);
  tagger t;
  const std::unique_ptr<Trainer> own(make(t.m));
  Trainer &trainer = *own;
  floats got, before = saved(t);
  {
    vpps::handle hndl(t.m, trainer);
    for (unsigned k = 0; k < 30; k++) {
      ComputationGraph cg;
      hndl.fb(t.m, cg, t.loss(cg, k));
      got.push_back(hndl.sync_get_latest_loss());
      if (k == 15)
        hndl.learning_rate /= 2;
    }
    close(got, want, 1e-4f);
    close(saved(t), before, 0); // DyNet's copy is the old one ...
    hndl.pull(t.m);
    close(saved(t), want_model, 1e-4f); // ... until pull
    EQUAL(trainer.updates, 30);
    ComputationGraph cg;
    hndl.fb(t.m, cg, t.loss(cg, 30));
  }
  CHECK(saved(t) != want_model); // the handle's end pulls too
}

TEST(fb_trains_as_dynet_does) {
  for (auto make : {sgd, adam, momentum, adagrad, adadelta, rmsprop, amsgrad})
    fb_trains_as_dynet(make);
}

TEST(a_trainer_that_has_made_updates_is_refused) {
  ParameterCollection m;
  m.add_parameters({3});
  AdamTrainer used(m);
  used.update();
  THROWS(std::invalid_argument, "has made updates", vpps::handle(m, used));
}

TEST(what_the_program_writes_is_noticed) {
  ParameterCollection m;
  Parameter p = m.add_parameters({3});
  LookupParameter E = m.add_lookup_parameters(4, {3});
  vpps::handle hndl(m);
  auto sum_of = [&] {
    ComputationGraph cg;
    return as_scalar(hndl.forward(cg, sum_elems(parameter(cg, p) + lookup(cg, E, 2u))));
  };
  p.set_value({1, 2, 3});
  E.zero();
  EQUAL(sum_of(), 6);
  p.scale(2);
  EQUAL(sum_of(), 12);
  E.initialize(2, {1, 1, 1});
  hndl.push(m);
  EQUAL(sum_of(), 15);
}

TEST(parameters_made_later_are_trained) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer own(m, 0.5f);
  vpps::trainer trainer(own);
  vpps::handle hndl(m, own);
  Parameter q = m.add_parameters({2}, ParameterInitConst(1));
  {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression loss = sum_elems(parameter(cg, p) + parameter(cg, q));
    EQUAL(as_scalar(loss.value()), 4);
    cg.backward(loss);
    trainer.update();
  }
  EQUAL(as_vector(*q.values())[1], 0.5f);
  {
    ComputationGraph cg;
    hndl.fb(m, cg, sum_elems(parameter(cg, p) + parameter(cg, q)));
    EQUAL(hndl.sync_get_latest_loss(), 2);
  }
  hndl.pull(m);
  EQUAL(as_vector(*q.values())[1], 0);
}

TEST(values_come_in_the_middle_of_a_graph) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(3));
  ComputationGraph cg;
  vpps::accelerate(cg);
  float x = 2;
  Expression in = input(cg, &x), a = parameter(cg, p) * 2.f;
  EQUAL(as_vector(a.value())[1], 6);
  Expression b = sum_elems(a) + in;
  EQUAL(as_scalar(b.value()), 14);
  x = 5;
  EQUAL(as_scalar(b.value()), 14); // as in DyNet
  EQUAL(as_scalar(cg.forward(b)), 17);
  cg.backward(b);
  EQUAL(as_vector(a.gradient())[0], 1);
  EQUAL(as_vector(*p.gradients())[0], 2);
  cg.checkpoint();
  Expression c = b * 2.f;
  EQUAL(as_scalar(c.value()), 34);
  cg.revert();
  Expression d = b * 3.f;
  EQUAL(as_scalar(d.value()), 51);
  cg.clear();
  Expression e = parameter(cg, p) + 1.f;
  EQUAL(as_vector(e.value())[0], 4);
}

namespace {
// A node of the program's own.
struct twice : public Node {
  explicit twice(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  std::string as_string(const std::vector<std::string> &) const override { return "twice"; }
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const override {
    for (unsigned i = 0; i < fx.d.size(); i++)
      fx.v[i] = 2 * xs[0]->v[i];
  }
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &dEdf,
                     unsigned, Tensor &dEdxi) const override {
    for (unsigned i = 0; i < dEdf.d.size(); i++)
      dEdxi.v[i] += 2 * dEdf.v[i];
  }
};
} // namespace

TEST(unknown_nodes_are_refused_or_left_to_dynet) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  SimpleSGDTrainer own(m, 0.25f);
  vpps::trainer trainer(own);
  vpps::handle hndl(m, own);
  {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression y(&cg, cg.add_function<twice>({parameter(cg, p).i}));
    THROWS(vpps::unknown_node, "node 1 is of class", y.value());
    THROWS(vpps::unknown_node, "twice", hndl.fb(m, cg, sum_elems(y)));
  }
  {
    ComputationGraph cg;
    THROWS(vpps::unknown_node, "dynet::Erf", hndl.fb(m, cg, sum_elems(erf(parameter(cg, p)))));
  }
  for (int k = 0; k < 2; k++) {
    ComputationGraph cg;
    vpps::accelerate(cg, vpps::or_dynet);
    Expression y(&cg, cg.add_function<twice>({parameter(cg, p).i}));
    Expression loss = sum_elems(y);
    EQUAL(as_scalar(loss.value()), k ? 2 : 4);
    cg.backward(loss);
    trainer.update(); // on the device, with DyNet's gradients
  }
  ComputationGraph cg;
  vpps::accelerate(cg);
  EQUAL(as_scalar(sum_elems(parameter(cg, p)).value()), 0);
}

TEST(weight_decay_keeps_in_step) {
  for (float lambda : {0.01f, 0.3f}) {
    floats traces[2];
    for (int accelerated : {0, 1}) {
      ParameterCollection m;
      m.set_weight_decay_lambda(lambda);
      Parameter p = m.add_parameters({2}, ParameterInitConst(1));
      SimpleSGDTrainer own(m, 0.1f);
      std::unique_ptr<vpps::trainer> wrap(accelerated ? new vpps::trainer(own) : nullptr);
      for (int k = 0; k < 12; k++) {
        ComputationGraph cg;
        if (accelerated)
          vpps::accelerate(cg);
        Expression loss = squared_norm(parameter(cg, p) + 0.5f);
        traces[accelerated].push_back(as_scalar(cg.forward(loss)));
        cg.backward(loss);
        if (accelerated)
          wrap->update();
        else
          own.update();
        traces[accelerated].push_back(as_vector(*p.values())[0] * p.current_weight_decay());
      }
    }
    close(traces[1], traces[0], 1e-5f);
  }
}

TEST(models_come_and_go) {
  for (int k = 0; k < 5; k++) {
    ParameterCollection m, other;
    Parameter p = m.add_parameters({2}, ParameterInitConst(float(k)));
    Parameter q = other.add_parameters({2}, ParameterInitConst(1));
    vpps::handle hndl(m);
    ComputationGraph cg;
    hndl.fb(m, cg, sum_elems(parameter(cg, p) + parameter(cg, q)));
    EQUAL(hndl.sync_get_latest_loss(), 2 * k + 2);
    hndl.pull(m);
    CHECK(std::fabs(as_vector(*p.values())[0] - (float(k) - 0.1f)) < 1e-6f);
    EQUAL(as_vector(*q.values())[0], 1); // no trainer of ours has it
  }
}

TEST(threads_take_turns) {
  std::mutex graphs; // DyNet allows one at a time
  float results[4] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      std::unique_lock<std::mutex> lock(graphs);
      ParameterCollection m;
      Parameter p = m.add_parameters({2}, ParameterInitConst(0));
      SimpleSGDTrainer trainer(m, 0.5f);
      vpps::handle hndl(m, trainer);
      lock.unlock();
      for (int k = 0; k < 20; k++) {
        lock.lock();
        {
          ComputationGraph cg;
          if (k % 2)
            vpps::accelerate(cg);
          hndl.fb(m, cg, sum_elems(parameter(cg, p)) * float(t));
        }
        lock.unlock();
        hndl.sync_get_latest_loss();
        hndl.pull(m);
      }
      results[t] = p.p->values.v[0];
      lock.lock(); // models go one at a time, too
    });
  for (std::thread &t : threads)
    t.join();
  for (int t = 0; t < 4; t++)
    EQUAL(results[t], -10 * t);
}

TEST(trainers_without_a_rule_are_named) {
  ParameterCollection m;
  m.add_parameters({2});
  EGTrainer trainer(m);
  THROWS(std::invalid_argument, "EG", vpps::handle(m, trainer));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
