// The rate at which a Tree-LSTM trains through DyNet's own calls. The program is an ordinary
// DyNet program, so it compiles against these headers and against those of DyNet itself, which
// makes the two comparable; and, with -DVPPS_ADAPTER, against an installed DyNet whose graphs
// libvpps runs. It prints one CSV row for each window; bench/compare_rates calls all in turn.
//
//   build/bench/treelstm_rate --train train.txt --batch 1 --repetition 1
//
// --train F         trees in the Stanford treebank's format (required)
// --program NAME    the first column (libvpps, adapter or dynet, as it was compiled)
// --mode M          calls: forward, backward, update. fb: vpps::handle::fb, with libvpps only
// --batch N         sentences in a graph (1)
// --hidden N        size of embeddings and hidden states (128)
// --seconds X       of each window (1), of which there are --windows N (5)
// --warm-up X       seconds before them (0.5)
// --repetition N    the last column
//
// A rate per CPU second counts the time of all threads and leaves out what other programs
// took of the machine.
#include <dynet/dict.h>
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#if defined(VPPS_BUNDLED_DYNET) || defined(VPPS_ADAPTER)
#define WITH_VPPS
#include <vpps/vpps.hpp>
#endif

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tree_lstm.h"

using namespace dynet;

namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_time() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct options {
#ifdef VPPS_BUNDLED_DYNET
  std::string program = "libvpps";
#elif defined(VPPS_ADAPTER)
  std::string program = "adapter";
#else
  std::string program = "dynet";
#endif
  std::string train, mode = "calls", batch = "1", hidden = "128", seconds = "1", windows = "5",
                     warm_up = "0.5", repetition = "1";
};

options parse(int argc, char **argv) {
  options o;
  const std::map<std::string, std::string *> flags = {
      {"--train", &o.train},     {"--program", &o.program},       {"--mode", &o.mode},
      {"--batch", &o.batch},     {"--hidden", &o.hidden},         {"--seconds", &o.seconds},
      {"--windows", &o.windows}, {"--repetition", &o.repetition}, {"--warm-up", &o.warm_up}};
  for (int k = 1; k < argc; k++) {
    const auto flag = flags.find(argv[k]);
    if (flag == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    *flag->second = argv[++k];
  }
  if (o.train.empty())
    throw std::runtime_error("no trees: name a file of them with --train");
  if (o.mode != "calls" && o.mode != "fb")
    throw std::runtime_error("--mode " + o.mode + " is unknown: calls or fb");
  return o;
}

// One training run.
class training {
public:
  training(const options &o, const std::vector<tree> &trees, unsigned words)
      : trees_(trees), batch_(size_t(std::stoul(o.batch))),
        model_(m_, words, unsigned(std::stoul(o.hidden)), unsigned(std::stoul(o.hidden))),
        trainer_(m_) {
#ifdef WITH_VPPS
    if (o.mode == "fb")
      hndl_.reset(new vpps::handle(m_, trainer_));
    else
      vpps_trainer_.reset(new vpps::trainer(trainer_));
#else
    if (o.mode == "fb")
      throw std::runtime_error("--mode fb needs libvpps; this program was compiled without");
#endif
  }

  // Trains for some seconds, at least one batch; the number of sentences.
  size_t run(double seconds) {
    const double start = wall_time();
    size_t sentences = 0;
    do {
      std::vector<const tree *> batch;
      for (size_t k = 0; k < batch_; k++)
        batch.push_back(&trees_[next_++ % trees_.size()]);
      ComputationGraph cg;
#ifdef WITH_VPPS
      if (!hndl_)
        vpps::accelerate(cg);
#endif
      step(cg, model_.loss(cg, batch));
      sentences += batch_;
    } while (wall_time() - start < seconds);
#ifdef WITH_VPPS
    if (hndl_)
      hndl_->sync_get_latest_loss();
#endif
    return sentences;
  }

private:
  void step(ComputationGraph &cg, const Expression &loss) {
#ifdef WITH_VPPS
    if (hndl_) {
      hndl_->fb(m_, cg, loss);
      return;
    }
#endif
    cg.forward(loss);
    cg.backward(loss);
#ifdef WITH_VPPS
    vpps_trainer_->update();
#else
    trainer_.update();
#endif
  }

  const std::vector<tree> &trees_;
  size_t batch_, next_ = 0;
  ParameterCollection m_;
  tree_lstm model_;
  SimpleSGDTrainer trainer_; // at its defaults: clipping is on
#ifdef WITH_VPPS
  std::unique_ptr<vpps::handle> hndl_;
  std::unique_ptr<vpps::trainer> vpps_trainer_;
#endif
};

void run(int argc, char **argv) {
  std::string autobatch;
  for (int k = 1; k + 1 < argc; k++)
    if (std::string(argv[k]) == "--dynet-autobatch")
      autobatch = argv[k + 1];
  DynetParams params = extract_dynet_params(argc, argv);
  const options o = parse(argc, argv);
  if (params.random_seed == 0)
    params.random_seed = 1;
  initialize(params);

  std::vector<tree> trees = read_trees(o.train);
  Dict dict;
  count_words(trees, 1, dict);
  number_words(trees, dict);
  std::mt19937 random(1);
  std::shuffle(trees.begin(), trees.end(), random);

  const char *threads = std::getenv("VPPS_THREADS");
  const std::string mode =
      autobatch.empty() ? o.mode : "autobatch " + autobatch; // only DyNet does something with it
  training t(o, trees, unsigned(dict.size()));
  t.run(std::stod(o.warm_up));
  for (int k = 0; k < std::stoi(o.windows); k++) {
    const double wall = wall_time(), cpu = cpu_time();
    const size_t sentences = t.run(std::stod(o.seconds));
    std::printf("%s,%s,%s,%s,%s,%.1f,%.1f,%s\n", o.program.c_str(), mode.c_str(),
                threads ? threads : "1", o.hidden.c_str(), o.batch.c_str(),
                double(sentences) / (wall_time() - wall), double(sentences) / (cpu_time() - cpu),
                o.repetition.c_str());
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "treelstm_rate: " << e.what() << std::endl;
    return 1;
  }
}
