// The rate at which a model trains through DyNet's own calls. The program is an ordinary
// DyNet program, so it compiles against these headers and against those of DyNet itself, which
// makes the two comparable; and, with -DVPPS_ADAPTER, against an installed DyNet whose graphs
// and trainers libvpps runs. It prints one CSV row for each window; bench/compare_rates calls all
// in turn.
//
//   build/bench/rate --app treelstm --train train.txt --batch 1 --repetition 1
//
// --app A           treelstm (trees in the Stanford treebank's format); tagger (word|TAG); in
//                   minibatches language_model, encoder_decoder (word|TAG), mlp (random numbers);
//                   sentences (word|TAG): the language model, each sentence by itself
// --train F         its sentences (required, but for mlp)
// --program NAME    the first column (libvpps, adapter or dynet, as it was compiled)
// --mode M          calls: forward, backward, update. fb: vpps::handle::fb, with libvpps only
// --batch N         sentences in a graph (1)
// --embed N --hidden N --layer N   sizes: 128 and 128, for tagger 128, 50 and 32, for mlp 256
// hidden
// --seconds X       of each window (1), of which there are --windows N (5)
// --warm-up X       seconds before them (0.5)
// --repetition N    the last column
//
// A rate per CPU second counts the time of all threads and leaves out what other programs
// took of the machine.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#if defined(VPPS_BUNDLED_DYNET) || defined(VPPS_ADAPTER)
#define WITH_VPPS
#include <vpps/vpps.hpp>
#endif

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../cpp_examples/progress.h"
#include "encoder_decoder.h"
#include "language_model.h"
#include "mlp.h"
#include "tagger.h"
#include "tree_lstm.h"

using namespace dynet;

namespace {

double cpu_time() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct measure_options {
#ifdef VPPS_BUNDLED_DYNET
  std::string program = "libvpps";
#elif defined(VPPS_ADAPTER)
  std::string program = "adapter";
#else
  std::string program = "dynet";
#endif
  std::string app = "treelstm", train, mode = "calls", batch = "1", embed, hidden, layer = "32",
              seconds = "1", windows = "5", warm_up = "0.5", repetition = "1";
};

measure_options parse_flags(int argc, char **argv) {
  measure_options o;
  const std::map<std::string, std::string *> flags = {
      {"--app", &o.app},         {"--train", &o.train},     {"--program", &o.program},
      {"--mode", &o.mode},       {"--batch", &o.batch},     {"--embed", &o.embed},
      {"--hidden", &o.hidden},   {"--layer", &o.layer},     {"--seconds", &o.seconds},
      {"--windows", &o.windows}, {"--warm-up", &o.warm_up}, {"--repetition", &o.repetition}};
  for (int k = 1; k < argc; k++) {
    const auto flag = flags.find(argv[k]);
    if (flag == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    *flag->second = argv[++k];
  }
  if (o.train.empty() && o.app != "mlp")
    throw std::runtime_error("no sentences: name a file of them with --train");
  if (o.embed.empty())
    o.embed = "128";
  if (o.hidden.empty())
    o.hidden = o.app == "tagger" ? "50" : o.app == "mlp" ? "256" : "128";
  if (o.mode != "calls" && o.mode != "fb")
    throw std::runtime_error("--mode " + o.mode + " is unknown: calls or fb");
  return o;
}

unsigned number(const std::string &s) { return unsigned(std::stoul(s)); }

// The language model reads sentences one by one, as a program does that leaves batching to others.
struct sentence_model : language_model {
  using language_model::language_model;

  Expression loss(ComputationGraph &cg, const std::vector<const tagged_sentence *> &batch) {
    std::vector<Expression> losses;
    for (const tagged_sentence *one : batch)
      losses.push_back(language_model::loss(cg, {one}));
    return sum(losses);
  }
};

// Makes the model of an application.
template <class Model> struct make {
  static Model *with(const measure_options &o, ParameterCollection &m, tag_corpus &data) {
    return new Model(m, data, number(o.embed), number(o.hidden));
  }
};
template <> struct make<tagger> {
  static tagger *with(const measure_options &o, ParameterCollection &m, tag_corpus &data) {
    return new tagger(m, data, number(o.embed), number(o.hidden), number(o.layer));
  }
};
template <> struct make<tree_lstm> {
  static tree_lstm *with(const measure_options &o, ParameterCollection &m, tree_corpus &data) {
    return new tree_lstm(m, unsigned(data.words.size()), number(o.embed), number(o.hidden));
  }
};
template <> struct make<mlp> {
  static mlp *with(const measure_options &o, ParameterCollection &m, mlp::corpus &) {
    return new mlp(m, number(o.hidden));
  }
};

// One training run.
template <class Model> class training_run {
public:
  typedef typename Model::corpus::sentence sentence;

  training_run(const measure_options &o, typename Model::corpus &data)
      : sentences_(data.train), batch_(number(o.batch)), model_(make<Model>::with(o, m_, data)),
        trainer_(m_) {
    std::mt19937 random(1);
    std::shuffle(sentences_.begin(), sentences_.end(), random);
#ifdef WITH_VPPS
    if (o.mode == "fb")
      hndl_.reset(new vpps::handle(m_, trainer_));
    else
      vpps::accelerate();
#else
    if (o.mode == "fb")
      throw std::runtime_error("--mode fb needs libvpps; this program was compiled without");
#endif
  }

  // Trains for some seconds, at least one batch; the number of sentences.
  size_t run(double seconds) {
    const stopwatch clock;
    size_t sentences = 0;
    do {
      std::vector<const sentence *> batch;
      for (size_t k = 0; k < batch_; k++)
        batch.push_back(&sentences_[next_++ % sentences_.size()]);
      ComputationGraph cg;
      step(cg, model_->loss(cg, batch));
      sentences += batch_;
    } while (clock.seconds() < seconds);
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
    trainer_.update();
  }

  std::vector<sentence> sentences_;
  size_t batch_, next_ = 0;
  ParameterCollection m_;
  std::unique_ptr<Model> model_;
  SimpleSGDTrainer trainer_; // at its defaults: clipping is on
#ifdef WITH_VPPS
  std::unique_ptr<vpps::handle> hndl_;
#endif
};

// mode: as it is printed.
template <class Model> void measure_rate(const measure_options &o, const std::string &mode) {
  typename Model::corpus data;
  data.read(o.train, "");
  training_run<Model> t(o, data);
  const char *threads = std::getenv("VPPS_THREADS");
  t.run(std::stod(o.warm_up));
  for (int k = 0; k < std::stoi(o.windows); k++) {
    const stopwatch clock;
    const double cpu = cpu_time();
    const size_t sentences = t.run(std::stod(o.seconds));
    std::printf("%s,%s,%s,%s,%s,%s,%.1f,%.1f,%s\n", o.app.c_str(), o.program.c_str(), mode.c_str(),
                threads ? threads : "1", o.hidden.c_str(), o.batch.c_str(),
                double(sentences) / clock.seconds(), double(sentences) / (cpu_time() - cpu),
                o.repetition.c_str());
    std::fflush(stdout);
  }
}

template <class Map> std::string names_of(const Map &all) {
  std::string names;
  for (const auto &one : all)
    names += (names.empty() ? "" : ", ") + one.first;
  return names;
}

void run(int argc, char **argv) {
  std::string autobatch;
  for (int k = 1; k + 1 < argc; k++)
    if (std::string(argv[k]) == "--dynet-autobatch")
      autobatch = argv[k + 1];
  DynetParams params = extract_dynet_params(argc, argv);
  const measure_options o = parse_flags(argc, argv);
  if (params.random_seed == 0)
    params.random_seed = 1;
  initialize(params);
  // Only DyNet does something with autobatch.
  const std::string mode = autobatch.empty() ? o.mode : "autobatch " + autobatch;
  const std::map<std::string, void (*)(const measure_options &, const std::string &)> apps = {
      {"treelstm", measure_rate<tree_lstm>},
      {"tagger", measure_rate<tagger>},
      {"language_model", measure_rate<language_model>},
      {"sentences", measure_rate<sentence_model>},
      {"encoder_decoder", measure_rate<encoder_decoder>},
      {"mlp", measure_rate<mlp>}};
  const auto app = apps.find(o.app);
  if (app == apps.end())
    throw std::runtime_error("--app " + o.app + " is unknown: " + names_of(apps));
  app->second(o, mode);
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "rate: " << e.what() << std::endl;
    return 1;
  }
}
