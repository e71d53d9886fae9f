// How long steps of an LSTM language model over a large vocabulary take: minibatches of random
// words in DyNet's batch dimension. One CSV row: the median of the steps, in milliseconds.
//
//   build/bench/large_vocabulary --mode fb --layers 2 --hidden 256 --batch 32 --words 20
//
// --vocabulary N (10000), --layers N (2), --hidden N (256), --batch N (32) sentences of --words N
// (20) words, --steps N (20), after three that do not count
// --mode M    fb: the program waits for each step's loss. ahead: for that of the last step only.
//             calls: forward, backward, update
// --program NAME   the first column (libvpps)
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../cpp_examples/progress.h"

using namespace dynet;

namespace {

typedef std::map<std::string, std::string> settings;

settings parse_flags(int argc, char **argv) {
  settings s = {{"--vocabulary", "10000"}, {"--layers", "2"},       {"--hidden", "256"},
                {"--batch", "32"},         {"--words", "20"},       {"--steps", "20"},
                {"--mode", "fb"},          {"--program", "libvpps"}};
  for (int k = 1; k < argc; k += 2) {
    if (s.find(argv[k]) == s.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    s[argv[k]] = argv[k + 1];
  }
  return s;
}

class training_run {
public:
  explicit training_run(const settings &s)
      : s_(s), words_(number("--words")),
        table_(m_.add_lookup_parameters(number("--vocabulary"), {number("--hidden")})),
        scores_(m_.add_parameters({number("--vocabulary"), number("--hidden")})),
        bias_(m_.add_parameters({number("--vocabulary")})),
        lstm_(number("--layers"), number("--hidden"), number("--hidden"), m_), trainer_(m_) {
    if (s_["--mode"] != "calls")
      hndl_.reset(new vpps::handle(m_, trainer_));
  }

  void step() {
    ComputationGraph cg;
    const Expression l = loss(cg);
    if (hndl_) {
      hndl_->fb(m_, cg, l);
      if (s_["--mode"] == "fb")
        hndl_->sync_get_latest_loss();
      return;
    }
    as_scalar(cg.forward(l));
    cg.backward(l);
    trainer_.update();
  }

  unsigned number(const char *flag) { return unsigned(std::stoul(s_[flag])); }

private:
  Expression loss(ComputationGraph &cg) {
    lstm_.new_graph(cg);
    lstm_.start_new_sequence();
    const Expression scores = parameter(cg, scores_), bias = parameter(cg, bias_);
    std::vector<unsigned> last(number("--batch")), next(last);
    std::vector<Expression> losses;
    for (unsigned k = 0; k < words_; k++) {
      for (unsigned &word : next)
        word = unsigned(random_()) % number("--vocabulary");
      const Expression h = lstm_.add_input(lookup(cg, table_, last));
      losses.push_back(pickneglogsoftmax(affine_transform({bias, scores, h}), next));
      last = next;
    }
    return sum_batches(sum(losses)) * (1.0f / float(last.size() * words_));
  }

  settings s_;
  unsigned words_;
  ParameterCollection m_;
  LookupParameter table_;
  Parameter scores_, bias_;
  VanillaLSTMBuilder lstm_;
  SimpleSGDTrainer trainer_;
  std::unique_ptr<vpps::handle> hndl_;
  std::mt19937 random_;
};

void run(int argc, char **argv) {
  initialize(argc, argv);
  settings s = parse_flags(argc, argv);
  training_run t(s);
  std::vector<double> ms;
  for (unsigned k = 0; k < t.number("--steps") + 3; k++) {
    const stopwatch clock;
    t.step();
    if (k >= 3)
      ms.push_back(1e3 * clock.seconds());
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%s,%s,%s,%s,%s,%s,%s,%.2f\n", s["--program"].c_str(), s["--vocabulary"].c_str(),
              s["--layers"].c_str(), s["--hidden"].c_str(), s["--batch"].c_str(),
              s["--words"].c_str(), s["--mode"].c_str(), ms[ms.size() / 2]);
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "large_vocabulary: " << e.what() << std::endl;
    return 1;
  }
}
