// Training by workers (mp.h): the same sums as by hand.
#include <dynet/mp.h>

#include "check.h"

using namespace dynet;
using namespace dynet::mp;

namespace {

// A loss p * datum; counts its calls.
class Learner : public ILearner<float, float> {
public:
  explicit Learner(ParameterCollection &m)
      : p(m.add_parameters({1}, ParameterInitConst(1))), learned(0), looked(0), saved(0) {}
  float LearnFromDatum(const float &datum, bool learn) override {
    ComputationGraph cg;
    Expression loss = parameter(cg, p) * datum;
    const float value = as_scalar(loss.value());
    if (learn)
      cg.backward(loss);
    ++(learn ? learned : looked);
    if (learned == stop_after)
      stop_requested = true;
    return value;
  }
  void SaveModel() override { ++saved; }
  float value() const { return p.p.unexposed()->read(VPPS_VALUES)[0]; }
  float gradient() const { return p.p.unexposed()->read(VPPS_GRADIENT)[0]; }

  Parameter p;
  int learned, looked, saved, stop_after = -1;
};

struct Setting {
  ParameterCollection m;
  SimpleSGDTrainer trainer;
  Learner learner;
  std::vector<float> data = {1, 2, 3, 4}, dev = {1};
  std::string printed;
  Setting() : trainer(m, 0.1f), learner(m) {
    trainer.clipping_enabled = false;
    stop_requested = false;
  }
  template <class F> void quietly(F f) { printed = tests::printed(std::cerr, f); }
};

bool near(float a, float b) { return std::abs(a - b) < 1e-5; }

} // namespace

TEST(a_minibatch_adds_up_gradients) {
  Setting s;
  EQUAL(run_mp_minibatch<float>(4, &s.learner, s.data), 10);
  EQUAL(s.learner.gradient(), 10);
  EQUAL(s.learner.value(), 1);
  s.trainer.update();
  CHECK(near(s.learner.value(), 0));
  THROWS(std::invalid_argument, "not 0", run_mp_minibatch<float>(0, &s.learner, s.data));
}

TEST(the_first_worker_updates) {
  Setting s;
  // Worker 0 has data 1 and 3. Its second update is by 2 and 3; 4 is left.
  const float loss = run_mp_minibatch_trainer<float>(2, &s.learner, &s.trainer, s.data);
  CHECK(near(loss, 1 + .9f * 2 + .9f * 3 + .4f * 4));
  CHECK(near(s.learner.value(), .4f));
  EQUAL(s.learner.gradient(), 4);
}

TEST(one_worker_updates_after_each_datum) {
  Setting s;
  CHECK(near(run_sp_minibatch_trainer<float>(&s.learner, &s.trainer, s.data),
             1 + .9f * 2 + .7f * 3 + .4f * 4));
  CHECK(near(s.learner.value(), 0));
  EQUAL(run_sp_minibatch_trainer<float>(&s.learner, nullptr, s.data), s.learner.value() * 10);
  EQUAL(s.learner.looked, 4);
}

TEST(several_workers_train) {
  Setting s;
  s.quietly([&] { run_multi_process<float>(3, &s.learner, &s.trainer, s.data, s.dev, 2, 2, 1); });
  EQUAL(s.learner.learned, 8);
  EQUAL(s.learner.looked, 4);
  EQUAL(s.trainer.updates, 4); // chunks of two data, the first of which is worker 0's
  EQUAL(s.learner.saved, 4);   // the loss falls
  CHECK(s.printed.find("0.5\tloss = ") != std::string::npos);
  CHECK(s.printed.find("2\tdev loss = ") != std::string::npos);
  CHECK(s.printed.find(" (New best!)\n") != std::string::npos);
  CHECK(s.printed.find("train loss: ") != std::string::npos);
  Setting without;
  without.quietly([&] {
    run_multi_process<float>(1, &without.learner, &without.trainer, without.data, {}, 3, 0, 9);
  });
  EQUAL(without.learner.saved, 3);
  EQUAL(without.trainer.updates, 12);
}

TEST(a_single_process_trains_in_batches) {
  Setting s;
  s.quietly([&] { run_single_process<float>(&s.learner, &s.trainer, s.data, s.dev, 3, 4, 2, 2); });
  EQUAL(s.trainer.updates, 6);
  CHECK(near(s.learner.value(), 1 - .1f * 30));
  EQUAL(s.learner.saved, 3);
  CHECK(s.printed.find("0.5\tloss = ") != std::string::npos);
  THROWS(std::invalid_argument, "dev_frequency",
         run_single_process<float>(&s.learner, &s.trainer, s.data, s.dev, 1, 0, 1, 1));
}

TEST(training_stops_when_asked) {
  Setting s;
  s.learner.stop_after = 3;
  s.quietly([&] { run_multi_process<float>(2, &s.learner, &s.trainer, s.data, s.dev, 5, 0, 9); });
  EQUAL(s.learner.learned, 3);
  EQUAL(s.learner.saved, 0);
  stop_requested = false;
}

TEST(numbers_of_workers) {
  EQUAL(sum_values({1, 2, 4}), 7);
  EQUAL(mean({1, 2, 6}), 3);
  THROWS(std::invalid_argument, "no values", mean({}));
  timespec a = timespec(), b = timespec();
  b.tv_sec = 2;
  b.tv_nsec = 5;
  EQUAL(elapsed_time_string(a, b), "2 seconds and 5nseconds");
}

int main(int argc, char **argv) {
  initialize(argc, argv, true);
  return tests::run_tests();
}
