// An installed DyNet trains the same model with its own execution, accelerated with its own
// trainer, accelerated with vpps::trainer, and through vpps::handle: losses, saved files and
// errors must be what DyNet's user expects.
#include "tagger.h"

#include <dynet/devices.h>
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/param-init.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

using namespace dynet;

namespace {

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

} // namespace

TEST(accelerated_graphs_train_as_dynet_does) {
  for (auto make : {sgd, cyclical, adam, momentum, adagrad, adadelta, rmsprop, amsgrad})
    for (bool wrapped : {false, true}) {
      floats want_model, got_model;
      const floats want = train(make, false, false, 30, want_model);
      const floats got = train(make, true, wrapped, 30, got_model);
      close(got, want, 1e-4f);
      close(got_model, want_model, 1e-4f);
    }
}

namespace {
enum way { by_dynet, by_trainer, by_handle };

// The losses of 21 steps, of which the middle third goes the way given; at a step something is done
// to the trainer.
floats train_thirds(Trainer *(*make)(ParameterCollection &), way middle, unsigned at,
                    std::function<void(Trainer &)> something) {
  tagger t;
  const std::unique_ptr<Trainer> own(make(t.m));
  std::unique_ptr<vpps::trainer> wrapped;
  std::unique_ptr<vpps::handle> hndl;
  floats losses;
  for (unsigned k = 0; k < 21; k++) {
    if (k == 7 && middle == by_trainer)
      wrapped.reset(new vpps::trainer(*own));
    if (k == 7 && middle == by_handle)
      hndl.reset(new vpps::handle(t.m, *own));
    if (k == 14) {
      wrapped.reset();
      hndl.reset();
    }
    Trainer &trainer = wrapped ? *wrapped : *own;
    if (k == at)
      something(trainer);
    ComputationGraph cg;
    if (hndl) {
      hndl->fb(t.m, cg, t.loss(cg, k));
      losses.push_back(hndl->sync_get_latest_loss());
      continue;
    }
    if (wrapped)
      vpps::accelerate(cg);
    Expression loss = t.loss(cg, k);
    losses.push_back(as_scalar(cg.forward(loss)));
    cg.backward(loss);
    trainer.update();
  }
  EQUAL(own->updates, 21);
  return losses;
}
void nothing(Trainer &) {}
} // namespace

TEST(a_rule_goes_on_where_another_way_has_left_it) {
  for (auto make : {sgd, cyclical, adam, momentum, adagrad, adadelta, rmsprop, amsgrad}) {
    const floats want = train_thirds(make, by_dynet, 0, nothing);
    close(train_thirds(make, by_trainer, 0, nothing), want, 1e-4f);
    close(train_thirds(make, by_handle, 0, nothing), want, 1e-4f);
  }
}

TEST(a_wrapped_trainer_forgets_at_a_restart) {
  const auto restart = [](Trainer &t) { t.restart(); };
  for (auto make : {sgd, adam, momentum, adadelta})
    close(train_thirds(make, by_trainer, 10, restart), train_thirds(make, by_dynet, 10, restart),
          1e-4f);
}

void fb_trains_as_dynet(Trainer *(*make)(ParameterCollection &)) {
  floats want_model;
  const floats want = train(make, false, false, 30, want_model);
  tagger t;
  const std::unique_ptr<Trainer> own(make(t.m));
  Trainer &trainer = *own;
  floats got;
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
    THROWS(std::runtime_error, "device", saved(t)); // DyNet's memory does not have them ...
    hndl.pull(t.m);
    close(saved(t), want_model, 1e-4f); // ... until pull
    EQUAL(trainer.updates, 30);
    ComputationGraph cg;
    hndl.fb(t.m, cg, t.loss(cg, 30));
  }
  CHECK(saved(t) != want_model); // the handle's end pulls too
}

TEST(fb_trains_as_dynet_does) {
  for (auto make : {sgd, cyclical, adam, momentum, adagrad, adadelta, rmsprop, amsgrad})
    fb_trains_as_dynet(make);
}

namespace {
// DyNet 2.1's trainers are not saved.
template <class T> auto save(T &t, std::ostream &to, int) -> decltype(t.save(to), true) {
  t.save(to);
  return true;
}
template <class T> bool save(T &, std::ostream &, long) { return false; }
template <class T> auto read(T &t, std::istream &from, int) -> decltype(t.populate(from)) {
  t.populate(from);
}
template <class T> void read(T &, std::istream &, long) {}

floats numbers(const std::string &text) {
  floats all;
  std::stringstream words(text);
  for (std::string word; words >> word;)
    if (word[0] == '+' || word[0] == '-')
      all.push_back(std::stof(word));
  return all;
}
} // namespace

TEST(a_wrapped_trainer_is_saved_and_read) {
  for (auto make : {sgd, adam, momentum, amsgrad}) {
    std::string texts[2];
    const auto save_into = [&texts](int k) {
      return [&texts, k](Trainer &t) {
        std::stringstream text;
        save(t, text, 0);
        texts[k] = text.str();
      };
    };
    const floats want = train_thirds(make, by_dynet, 12, save_into(0));
    close(train_thirds(make, by_trainer, 12, save_into(1)), want, 1e-4f);
    close(numbers(texts[1]), numbers(texts[0]), 1e-4f);
    if (texts[0].empty())
      continue;
    const auto read_again = [&texts](Trainer &t) {
      t.restart(7.0f);
      std::stringstream text(texts[0]);
      read(t, text, 0);
    };
    // Not as without: DyNet's AmsgradTrainer reads other values than it has written.
    close(train_thirds(make, by_trainer, 12, read_again),
          train_thirds(make, by_dynet, 12, read_again), 1e-4f);
  }
}

// The error is told once; nobody asks before the handle's end.
TEST(a_handle_brings_what_it_has_trained_though_a_batch_failed) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  MomentumSGDTrainer own(m, 0.5f, 0.5f);
  own.clipping_enabled = false;
  {
    vpps::handle hndl(m, own);
    for (float x : {1.0f, INFINITY}) {
      ComputationGraph cg;
      hndl.fb(m, cg, sum_elems(parameter(cg, p)) * x);
    }
  }
  EQUAL(as_vector(*p.values())[0], 0.5f);
  EQUAL(own.vp[0].h.v[1], -0.5f);
  EQUAL(own.updates, 1);
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

TEST(parameters_without_elements_stand_beside_others) {
  for (bool handle : {false, true}) {
    ParameterCollection m;
    m.add_parameters({0, 3});
    m.add_lookup_parameters(0, {2});
    Parameter w = m.add_parameters({2}, ParameterInitConst(1));
    m.add_parameters({3, 0});
    SimpleSGDTrainer trainer(m, 1);
    {
      std::unique_ptr<vpps::handle> hndl(handle ? new vpps::handle(m, trainer) : nullptr);
      ComputationGraph cg;
      if (!handle)
        vpps::accelerate(cg);
      Expression loss = sum_elems(parameter(cg, w));
      if (handle) {
        hndl->fb(m, cg, loss);
        hndl->sync_get_latest_loss();
      } else {
        cg.forward(loss);
        cg.backward(loss);
        trainer.update();
      }
    }
    close(as_vector(*w.values()), floats{0, 0}, 1e-6f);
  }
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

// A program that moves the factor itself, before the first step and between steps, by DyNet's
// trainer and by libvpps.
TEST(weight_decay_moved_by_hand) {
  for (float lambda : {0.f, 0.1f}) {
    floats traces[3];
    for (int way : {0, 1, 2}) { // DyNet; accelerated; with libvpps' trainer, too
      ParameterCollection m;
      L2WeightDecay &decay = m.get_weight_decay();
      decay.set_lambda(0.2f);
      decay.update_weight_decay(2);
      decay.set_lambda(lambda);
      Parameter p = m.add_parameters({2}, ParameterInitConst(1));
      SimpleSGDTrainer own(m, 0.1f);
      std::unique_ptr<vpps::trainer> wrap(way == 2 ? new vpps::trainer(own) : nullptr);
      Trainer &trainer = wrap ? *wrap : static_cast<Trainer &>(own);
      for (int k = 0; k < 8; k++) {
        ComputationGraph cg;
        if (way > 0)
          vpps::accelerate(cg);
        Expression loss = squared_norm(parameter(cg, p) + 0.5f);
        traces[way].push_back(as_scalar(cg.forward(loss)));
        cg.backward(loss);
        trainer.update();
        traces[way].push_back(as_vector(*p.values())[0] * p.current_weight_decay());
        if (k == 2) {
          decay.set_lambda(0.3f);
          decay.update_weight_decay();
          decay.set_lambda(lambda);
        } else if (k == 5) {
          p.get_storage().scale_parameters(p.current_weight_decay());
          decay.reset_weight_decay();
        }
      }
    }
    close(traces[1], traces[0], 1e-5f);
    close(traces[2], traces[0], 1e-5f);
  }
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

TEST(exponentiated_gradients_keep_their_rate_cycle) {
  floats traces[2];
  for (int through : {0, 1}) {
    ParameterCollection m;
    Parameter p = m.add_parameters({4}, ParameterInitConst(0.25f));
    LookupParameter E = m.add_lookup_parameters(3, {4}, ParameterInitConst(0.25f));
    EGTrainer trainer(m, 0.3f, 0.5f);
    trainer.enableCyclicalLR(0.1f, 0.4f, 3, 0.9f);
    std::unique_ptr<vpps::handle> hndl(through ? new vpps::handle(m, trainer) : nullptr);
    for (unsigned k = 0; k < 10; k++) {
      ComputationGraph cg;
      Expression loss = pickneglogsoftmax(parameter(cg, p) + lookup(cg, E, k % 3), k % 4) * 2.f;
      if (through) {
        hndl->fb(m, cg, loss);
        traces[through].push_back(hndl->sync_get_latest_loss());
      } else {
        traces[through].push_back(as_scalar(cg.forward(loss)));
        cg.backward(loss);
        trainer.update();
      }
      traces[through].push_back(trainer.learning_rate);
    }
  }
  close(traces[1], traces[0], 1e-5f);
}

namespace {
struct unheard_of : public SimpleSGDTrainer {
  explicit unheard_of(ParameterCollection &m) : SimpleSGDTrainer(m) {}
};
// DyNet 2.1 has no averages.
template <class T> auto average(T &t, int) -> decltype(t.cumulative_moving_average(), true) {
  t.cumulative_moving_average();
  return true;
}
template <class T> bool average(T &, long) { return false; }
} // namespace

TEST(trainers_that_libvpps_does_not_do_are_refused) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2});
  unheard_of own(m);
  THROWS(std::invalid_argument, "unheard_of", vpps::handle(m, own));
  SimpleSGDTrainer averaging(m);
  vpps::handle hndl(m, averaging);
  if (average(averaging, 0)) {
    ComputationGraph cg;
    THROWS(std::invalid_argument, "moving averages", hndl.fb(m, cg, sum_elems(parameter(cg, p))));
  }
}

TEST(parameters_may_be_on_any_device_of_the_host) {
  static Device_CPU *second = nullptr; // DyNet's manager deletes it
  if (second == nullptr) {
    second =
        new Device_CPU(int(get_device_manager()->num_devices()), DeviceMempoolSizes(16), false);
    second->name = "CPU:1";
    get_device_manager()->add(second);
  }
  floats traces[2]; // DyNet's own to_device does nothing in builds without CUDA
  for (int through : {0, 1}) {
    ParameterCollection m;
    Parameter W =
        m.add_parameters({4, 2}, ParameterInitConst(0.5f), "W", through ? second : default_device);
    Parameter v = m.add_parameters({1, 4}, ParameterInitConst(0.25f));
    SimpleSGDTrainer own(m);
    std::unique_ptr<vpps::trainer> wrap(through ? new vpps::trainer(own) : nullptr);
    for (unsigned k = 0; k < 5; k++) {
      ComputationGraph cg;
      if (through)
        vpps::accelerate(cg);
      Expression x = input(cg, {2}, {1, float(k)}, W.p->device);
      Expression h = tanh(parameter(cg, W) * x);
      if (through)
        h = to_device(h, default_device);
      Expression loss = squared_norm(parameter(cg, v) * h - 1.f);
      traces[through].push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      if (through)
        wrap->update();
      else
        own.update();
      traces[through].push_back(as_vector(*W.values())[1]);
    }
  }
  close(traces[1], traces[0], 1e-5f);
}

TEST(models_take_turns) {
  tagger a, b;
  SimpleSGDTrainer of_a(a.m, 0.2f), of_b(b.m, 0.2f);
  floats want_model, losses;
  const floats want = train(sgd, false, false, 12, want_model);
  {
    vpps::handle first(a.m, of_a), second(b.m, of_b);
    for (unsigned k = 0; k < 12; k++) {
      {
        ComputationGraph cg;
        first.fb(a.m, cg, a.loss(cg, k));
      }
      ComputationGraph cg;
      if (k % 2)
        vpps::accelerate(cg);
      second.fb(b.m, cg, b.loss(cg, k));
      losses.push_back(second.sync_get_latest_loss());
      EQUAL(first.sync_get_latest_loss(), losses.back());
      if (k == 6) {
        first.learning_rate /= 2;
        of_b.learning_rate /= 2;
      }
    }
  }
  close(losses, want, 1e-4f);
  close(saved(a), want_model, 1e-4f);
  close(saved(b), saved(a), 0);
}

// Under a vpps::trainer on the CPU both use one memory, under a handle each has its own.
TEST(parameters_move_to_the_engine_and_back) {
  const bool host = vpps::device().compare(0, 3, "cpu") == 0;
  floats want_model, losses;
  const floats want = train(sgd, false, false, 12, want_model);
  tagger t;
  const float *dense = t.W.p->values.v, *table = t.E.p->all_values.v;
  for (auto make : {adam, momentum, adagrad, adadelta, rmsprop, amsgrad}) {
    const std::unique_ptr<Trainer> rule(make(t.m));
    {
      vpps::trainer wrapped(*rule);
      EQUAL(t.W.p->values.v != dense, host);
    }
    vpps::handle hndl(t.m);
    CHECK(t.W.p->values.v == dense);
  }
  SimpleSGDTrainer own(t.m, 0.2f);
  vpps::trainer trainer(own);
  EQUAL(t.W.p->values.v != dense, host);
  EQUAL(t.E.p->all_values.v != table, host);
  CHECK(t.E.p->values[3].v == t.E.p->all_values.v + 18);
  for (unsigned k = 0; k < 6; k++) {
    ComputationGraph cg;
    vpps::accelerate(cg);
    Expression loss = t.loss(cg, k);
    losses.push_back(as_scalar(cg.forward(loss)));
    cg.backward(loss);
    trainer.update();
  }
  {
    vpps::handle hndl(t.m, own);
    CHECK(t.W.p->values.v == dense && t.E.p->all_values.v == table);
    CHECK(t.E.p->values[3].v == table + 18);
    for (unsigned k = 6; k < 12; k++) {
      ComputationGraph cg;
      hndl.fb(t.m, cg, t.loss(cg, k));
      losses.push_back(hndl.sync_get_latest_loss());
      if (k == 6)
        hndl.learning_rate /= 2;
    }
  }
  close(losses, want, 1e-4f);
  close(saved(t), want_model, 1e-4f);

  vpps::trainer again(own);
  TensorTools::zero(t.W.p->values);
  TensorTools::zero(t.b.p->values);
  ComputationGraph cg;
  vpps::accelerate(cg);
  close({as_scalar(cg.forward(t.loss(cg, 0)))}, {6 * std::log(4.0f)}, 1e-5f);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
