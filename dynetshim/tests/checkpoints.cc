// Training that goes on from a checkpoint gives the same bits as training that never stopped.
#include "check.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>

#include <unistd.h>

#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/globals.h"
#include "dynet/lstm.h"
#include "dynet/training.h"
#include "vpps/vpps.hpp"

using namespace dynet;

namespace {

std::string file;

typedef std::function<Trainer *(ParameterCollection &)> maker;
template <class T> Trainer *make(ParameterCollection &m) { return new T(m); }

// An LSTM with dropout over a table, trained by fb or by DyNet's three calls.
struct program {
  ParameterCollection m;
  LookupParameter words = m.add_lookup_parameters(20, {6}, "words");
  VanillaLSTMBuilder lstm{1, 6, 5, m};
  Parameter w = m.add_parameters({3, 5}, "w");
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<vpps::handle> hndl;
  std::vector<float> losses;

  program(const maker &of, bool by_fb) : trainer(of(m)) {
    m.set_weight_decay_lambda(0.01f);
    lstm.set_dropout(0.2f);
    if (by_fb)
      hndl.reset(new vpps::handle(m, *trainer));
  }
  vpps::checkpoint checkpoint() { return vpps::checkpoint(m, *trainer, hndl.get()); }
  void train(unsigned first, unsigned last) {
    for (unsigned k = first; k < last; k++) {
      ComputationGraph cg;
      lstm.new_graph(cg);
      lstm.start_new_sequence();
      std::vector<Expression> all;
      for (unsigned i = 0; i < 4; i++) {
        const unsigned word = unsigned((*rndeng)() % 20);
        const Expression h = dropout(lstm.add_input(lookup(cg, words, word)), 0.5f);
        all.push_back(pickneglogsoftmax(parameter(cg, w) * h, word % 3));
      }
      const Expression loss = sum(all);
      if (hndl) {
        losses.push_back(hndl->fb(m, cg, loss));
        continue;
      }
      losses.push_back(as_scalar(cg.forward(loss)));
      cg.backward(loss);
      trainer->update();
    }
  }
  // All bits there are, by way of a checkpoint.
  std::string state() {
    const std::string other = file + ".state";
    checkpoint().save(other);
    std::ifstream in(other);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    unlink(other.c_str());
    return text;
  }
};

maker cyclical_eg() {
  return [](ParameterCollection &m) {
    EGTrainer *t = new EGTrainer(m, 0.01f);
    t->enableCyclicalLR(0.001f, 0.01f, 3, 0.9f);
    return t;
  };
}

} // namespace

TEST(training_goes_on_with_the_same_bits) {
  const maker trainers[] = {make<SimpleSGDTrainer>,   make<CyclicalSGDTrainer>,
                            make<MomentumSGDTrainer>, make<AdagradTrainer>,
                            make<AdadeltaTrainer>,    make<RMSPropTrainer>,
                            make<AdamTrainer>,        make<AmsgradTrainer>};
  for (bool by_fb : {true, false})
    for (const maker &of : trainers) {
      reset_rng(5);
      program straight(of, by_fb);
      straight.train(0, 7);
      straight.trainer->clip_threshold = 0.5f;
      straight.checkpoint().save(file, {{"position", "7"}, {"empty", ""}});
      straight.losses.clear();
      straight.train(7, 15);
      const std::string want = straight.state();

      reset_rng(6);
      program resumed(of, by_fb);
      resumed.train(0, 3);
      const vpps::checkpoint::blobs own = resumed.checkpoint().load(file);
      EQUAL(own.size(), 2u);
      EQUAL(own.at("position"), "7");
      EQUAL(resumed.trainer->updates, 7);
      EQUAL(resumed.trainer->clip_threshold, 0.5f);
      resumed.losses.clear();
      resumed.train(7, 15);
      CHECK(resumed.losses == straight.losses);
      CHECK(resumed.state() == want);
    }
}

TEST(a_cycle_and_what_is_not_updated_come_back) {
  program first(cyclical_eg(), false);
  first.words.set_updated(false);
  first.w.values();
  for (auto &p : first.m.unexposed_parameters())
    p->set_value(std::vector<float>(p->size(), 0.25f));
  first.train(0, 4);
  first.checkpoint().save(file);
  program second(cyclical_eg(), false);
  second.w.values();
  second.checkpoint().load(file);
  CHECK(!second.words.is_updated() && second.w.is_updated());
  EQUAL(second.trainer->learning_rate, first.trainer->learning_rate);
  first.checkpoint().load(file); // the generator, too
  first.train(4, 8);
  const std::string want = first.state();
  second.checkpoint().load(file);
  second.train(4, 8);
  const std::string got = second.state();
  EQUAL(got.size(), want.size());
  for (size_t k = 0; k < want.size(); k++)
    if (got[k] != want[k]) {
      std::cout << k << " " << int(got[k]) << " " << int(want[k]) << "\n";
    }
  CHECK(got == want);
}

TEST(what_is_refused_changes_nothing) {
  program saved(make<AdamTrainer>, true), sgd(make<SimpleSGDTrainer>, true),
      other(make<AdamTrainer>, true), bare(make<AdamTrainer>, false);
  saved.train(0, 3);
  saved.checkpoint().save(file, {{"mine", "text"}});
  EQUAL(vpps::checkpoint::read(file).at("mine"), "text");
  sgd.train(0, 2);
  const std::string before = sgd.state();
  THROWS(std::runtime_error, "update rule", sgd.checkpoint().load(file));
  CHECK(sgd.state() == before);
  other.m.add_parameters({2});
  THROWS(std::runtime_error, "another model", other.checkpoint().load(file));
  THROWS(std::runtime_error, "0 are to be loaded", bare.checkpoint().load(file));
  THROWS(std::invalid_argument, "taken", saved.checkpoint().save(file, {{"dynet.x", ""}}));

  std::string text = saved.state();
  text[text.size() / 2] ^= 1;
  std::ofstream(file) << text;
  THROWS(std::runtime_error, "damaged", saved.checkpoint().load(file));
  THROWS(std::runtime_error, "/nowhere/x", saved.checkpoint().save("/nowhere/x"));
  THROWS(std::runtime_error, "/nowhere/x", saved.checkpoint().load("/nowhere/x"));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  const char *dir = std::getenv("TMPDIR");
  file = std::string(dir ? dir : "/tmp") + "/checkpoints_" + std::to_string(getpid());
  const int status = tests::run_tests();
  unlink(file.c_str());
  return status;
}
