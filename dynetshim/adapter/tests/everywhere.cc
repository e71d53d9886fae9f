// vpps::accelerate() once: programs that know nothing of libvpps go on as DyNet alone would have
// it. Whatever is done without it is done before the first test.
#include "own_class.h"
#include "tagger.h"

#include <dynet/devices.h>
#include <vpps/vpps.hpp>

#include <functional>
#include <memory>
#include <sstream>

using namespace dynet;

namespace {

Trainer *exponentiated(ParameterCollection &m) {
  std::unique_ptr<EGTrainer> t(new EGTrainer(m, 0.1f, 0.5f));
  t->enableCyclicalLR(0.05f, 0.3f, 4, 0.98f);
  return t.release();
}

// What a program does to its trainer at the beginning, or in the middle.
enum deed { begin_average, nothing, restart, change_rate, save_and_read };

template <class T> auto through_a_file(T &t, int) -> decltype(t.save(std::cout)) {
  std::stringstream file;
  t.save(file);
  for (int k = 0; k < 3; k++) // what is read back makes these undone
    t.restart();
  t.populate(file);
}
template <class T> void through_a_file(T &, long) {} // DyNet 2.1 cannot
template <class T> auto average(T &t, int) -> decltype(t.cumulative_moving_average()) {
  t.cumulative_moving_average();
}
template <class T> void average(T &, long) {}

void act(Trainer &t, deed d) {
  switch (d) {
  case nothing:
    break;
  case restart:
    t.restart();
    break;
  case change_rate:
    t.learning_rate /= 2;
    break;
  case save_and_read:
    through_a_file(t, 0);
    break;
  case begin_average:
    average(t, 0);
    break;
  }
}

// Losses of some steps, what the trainer has counted, and the model.
floats train(Trainer *(*make)(ParameterCollection &), deed d, bool batched = false) {
  tagger t;
  for (Tensor *v : {&t.W.p->values, &t.b.p->values, &t.E.p->all_values})
    if (make == exponentiated)
      TensorTools::randomize_uniform(*v, 0.1f, 0.4f);
  if (make == exponentiated)
    for (Parameter &p : t.rnn.params[0])
      TensorTools::randomize_uniform(p.p->values, 0.1f, 0.4f);
  const std::unique_ptr<Trainer> trainer(make(t.m));
  floats all;
  for (unsigned k = 0; k < 24; k++) {
    if (k == (d == begin_average ? 0 : 12))
      act(*trainer, d);
    const std::unique_ptr<ComputationGraph> cg(batched ? new ComputationGraph(true)
                                                       : new ComputationGraph);
    const Expression loss = t.loss(*cg, k);
    all.push_back(as_scalar(cg->forward(loss)));
    cg->backward(loss);
    trainer->update();
  }
  for (float x : {trainer->learning_rate, trainer->clips, trainer->updates,
                  trainer->clips_since_status, trainer->updates_since_status})
    all.push_back(x);
  const floats model = saved(t);
  all.insert(all.end(), model.begin(), model.end());
  return all;
}

// A graph with an operation that libvpps does not know.
float unknown() {
  ComputationGraph cg;
  return as_scalar(cg.forward(sum_elems(doubled(input(cg, {2}, {1, 2})))));
}

struct run {
  Trainer *(*make)(ParameterCollection &);
  deed d;
  floats by_dynet;
};
std::vector<run> &runs() {
  static std::vector<run> all;
  return all;
}

struct graph_of_a_program : ComputationGraph {};

} // namespace

TEST(trainers_and_graphs_do_what_dynets_do) {
  for (const run &r : runs())
    close(train(r.make, r.d), r.by_dynet, 2e-4f);
}

TEST(graphs_of_all_kinds_are_accelerated) {
  {
    ComputationGraph cg;
    CHECK(vpps::installed::executing(cg) != nullptr);
  }
  {
    ComputationGraph cg(true);
    CHECK(vpps::installed::executing(cg) != nullptr);
  }
  {
    graph_of_a_program cg;
    CHECK(vpps::installed::executing(cg) != nullptr);
  }
  close(train(sgd, nothing, true), runs()[0].by_dynet, 2e-4f);
}

TEST(the_engine_updates) {
  tagger t;
  AdamTrainer trainer(t.m);
  ComputationGraph cg;
  cg.backward(t.loss(cg, 0));
  const auto updates = vpps::installed::parameters::all().updates;
  trainer.update();
  EQUAL(vpps::installed::parameters::all().updates, updates + 1);
  trainer.status();
  EQUAL(trainer.updates_since_status, 0);
  cg.clear();
  cg.backward(t.loss(cg, 1));
  trainer.update();
  EQUAL(trainer.updates_since_status, 1);
}

TEST(a_handle_and_a_wrapped_trainer_go_on_where_the_trainer_is) {
  for (bool with_handle : {false, true}) {
    tagger t;
    const std::unique_ptr<Trainer> trainer(adam(t.m));
    std::unique_ptr<vpps::handle> hndl;
    std::unique_ptr<vpps::trainer> wrapped;
    floats losses;
    for (unsigned k = 0; k < 24; k++) {
      if (k == 8 && with_handle)
        hndl.reset(new vpps::handle(t.m, *trainer));
      if (k == 8 && !with_handle)
        wrapped.reset(new vpps::trainer(*trainer));
      if (k == 16) {
        hndl.reset();
        wrapped.reset();
      }
      ComputationGraph cg;
      const Expression loss = t.loss(cg, k);
      if (hndl) {
        hndl->fb(t.m, cg, loss);
        losses.push_back(hndl->sync_get_latest_loss());
        continue;
      }
      losses.push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      wrapped ? wrapped->update() : trainer->update();
    }
    for (const run &r : runs())
      if (r.make == adam && r.d == nothing)
        close(losses, floats(r.by_dynet.begin(), r.by_dynet.begin() + 24), 2e-4f);
  }
}

TEST(what_libvpps_does_not_know_is_dynets) {
  EQUAL(unknown(), 6);
  vpps::accelerate(vpps::only_vpps);
  THROWS(vpps::unknown_node, "twice", unknown());
  vpps::accelerate();
  EQUAL(unknown(), 6);
}

TEST(models_and_trainers_end_in_any_order) {
  for (int k = 0; k < 3; k++) {
    std::unique_ptr<tagger> t(new tagger);
    std::unique_ptr<Trainer> first(adam(t->m)), second(momentum(t->m));
    for (Trainer *trainer : {first.get(), second.get()}) {
      ComputationGraph cg;
      cg.backward(t->loss(cg, 0));
      trainer->update();
    }
    if (k == 1)
      first.reset();
    if (k > 0)
      t.reset();
  }
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  for (auto make :
       {sgd, cyclical, adam, momentum, adagrad, adadelta, rmsprop, amsgrad, exponentiated})
    for (deed d : {nothing, restart, change_rate, save_and_read, begin_average})
      if (make != amsgrad || d != save_and_read) // DyNet reads it wrongly itself
        runs().push_back(run{make, d, train(make, d)});
  vpps::accelerate();
  return tests::run_tests();
}
