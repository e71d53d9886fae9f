// How long a training step of each model of portfolio/models.h takes. An ordinary DyNet program,
// which also compiles against DyNet's own headers. One CSV row each: model, program, mode, batch,
// median milliseconds of a step, the first step's milliseconds, the first and the last loss.
//
//   build/bench/portfolio --models perceptron,transformer --batches 1,16,64
//
// --models A,B     all without. Three have sizes: chain:HIDDEN:LENGTH is a simple recurrent
//                  network, trees:HIDDEN:LEAVES a Tree-LSTM. The third is
//                  language_model:WORDS:LAYERS:HIDDEN:LENGTH
// --batches N,M    examples in a minibatch (1,16,64)
// --mode M         ahead: vpps::handle::fb, whose loss is awaited after the last step. fb: after
//                  each. calls: forward, backward, update. forward: that alone. infer: forward
//                  by vpps::handle::infer, two steps ahead of the one whose loss is fetched
// --steps N        in each of five rounds (20), after three that do not count
// --program NAME   the second column (libvpps)
//
// With --vpps-data-parallel several processes train one model, each with minibatches of its own:
// see scale.sh. Losses are those of all. They must have the same parameters in the end.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#ifdef VPPS_BUNDLED_DYNET
#include "../cpp_examples/ranks.h"
#include <vpps/vpps.hpp>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../cpp_examples/progress.h"
#include "portfolio/dynamic.h"
#include "portfolio/models.h"

using namespace dynet;

namespace {

typedef std::map<std::string, std::string> settings;

settings parse_flags(int argc, char **argv) {
  settings s = {{"--models", ""},
                {"--batches", "1,16,64"},
                {"--mode", "ahead"},
                {"--steps", "20"},
                {"--program", "libvpps"}};
  for (int k = 1; k < argc; k += 2) {
    if (s.find(argv[k]) == s.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    s[argv[k]] = argv[k + 1];
  }
  return s;
}

std::vector<std::string> items(const std::string &list) {
  std::vector<std::string> all;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    all.push_back(item);
  return all;
}

#ifndef VPPS_BUNDLED_DYNET
unsigned this_rank() { return 0; }
unsigned all_ranks() { return 1; }
#endif

// Steps of one model.
template <class Model> class training_run {
public:
  training_run(const std::string &mode, ParameterCollection &m, Model &model)
      : mode_(mode), m_(m), model_(model), trainer_(m, 0.001f), data_(this_rank(), all_ranks()) {
#ifdef VPPS_BUNDLED_DYNET
    if (mode == "ahead" || mode == "fb" || mode == "infer")
      hndl_.reset(new vpps::handle(m, trainer_));
#endif
  }

  // The loss; NaN if nobody has waited for it.
  float step(unsigned batch, bool wait) {
    ComputationGraph cg;
    const Expression loss = model_.loss(cg, data_, batch);
#ifdef VPPS_BUNDLED_DYNET
    if (mode_ == "infer") {
      asked_.push_back(hndl_->infer(cg, loss));
      float value = NAN;
      for (; asked_.size() > (wait ? 0u : 2u); asked_.pop_front())
        value = hndl_->result(asked_.front())[0];
      return value;
    }
    if (hndl_) {
      hndl_->fb(m_, cg, loss);
      return wait || mode_ == "fb" ? vpps::global_loss(*hndl_) : NAN;
    }
#endif
    (void)wait;
    const float value = as_scalar(cg.forward(loss));
    if (mode_ != "infer" && mode_ != "forward") {
      cg.backward(loss);
      trainer_.update();
    }
    return value;
  }

private:
  std::string mode_;
  ParameterCollection &m_;
  Model &model_;
  SimpleSGDTrainer trainer_;
  portfolio::random_data data_;
#ifdef VPPS_BUNDLED_DYNET
  std::unique_ptr<vpps::handle> hndl_;
  std::deque<vpps::ticket> asked_;
#endif
};

template <class Model>
void measure(const settings &s, const std::string &name, unsigned batch, ParameterCollection &m,
             Model &model) {
  const unsigned steps = unsigned(std::stoul(s.at("--steps")));
  training_run<Model> run(s.at("--mode"), m, model);
  stopwatch start;
  const float first = run.step(batch, true);
  const double cold = start.seconds();
  run.step(batch, false);
  run.step(batch, true);
  std::vector<double> times;
  float last = first;
  for (unsigned round = 0; round < 5; round++) {
    stopwatch clock;
    for (unsigned k = 1; k <= steps; k++)
      last = run.step(batch, k == steps);
    times.push_back(1e3 * clock.seconds() / steps);
  }
  std::sort(times.begin(), times.end());
  std::printf("%s,%s,%s,%u,%.3f,%.0f,%.4f,%.4f\n", name.c_str(), s.at("--program").c_str(),
              s.at("--mode").c_str(), batch, times[2], 1e3 * cold, first, last);
#ifdef VPPS_BUNDLED_DYNET
  compare_ranks(m);
#endif
  std::fflush(stdout);
}

typedef std::function<void(const settings &, const std::string &, unsigned)> measured;

template <class Model, class... Sizes> measured with(Sizes... sizes) {
  return [=](const settings &s, const std::string &name, unsigned batch) {
    ParameterCollection m;
    Model model(m, sizes...);
    measure(s, name, batch, m, model);
  };
}

// A model whose sizes are in its name; none: not one of these, another number of sizes, or a size
// of 0.
measured of_sizes(const std::string &name) {
  using namespace portfolio;
  std::istringstream in(name);
  std::string kind, size;
  std::getline(in, kind, ':');
  std::vector<unsigned> n;
  while (std::getline(in, size, ':'))
    n.push_back(unsigned(std::strtoul(size.c_str(), nullptr, 10)));
  if (std::count(n.begin(), n.end(), 0u) > 0)
    return measured();
  if (kind == "language_model" && n.size() == 4)
    return with<language_model>(n[0], n[1], n[2], n[3]);
  if (kind == "chain" && n.size() == 2)
    return with<chain>(n[0], n[1]);
  if (kind == "trees" && n.size() == 2)
    return with<trees>(n[0], n[1]);
  return measured();
}

void run(int argc, char **argv) {
  DynetParams params = extract_dynet_params(argc, argv);
  const settings s = parse_flags(argc, argv);
  if (params.random_seed == 0)
    params.random_seed = 1;
  initialize(params);
#ifdef VPPS_BUNDLED_DYNET
  print_on_rank_0();
#endif
  using namespace portfolio;
  const std::map<std::string, measured> models = {
      {"language_model_128", with<language_model>(2000u, 1u, 128u, 20u)},
      {"language_model_256", with<language_model>(10000u, 2u, 256u, 20u)},
      {"language_model_512", with<language_model>(10000u, 2u, 512u, 30u)},
      {"perceptron", with<perceptron>()},
      {"attention", with<attention>()},
      {"gru_tagger", with<gru_tagger>()},
      {"crf_tagger", with<crf_tagger>()},
      {"biaffine", with<biaffine>()},
      {"word_cnn", with<word_cnn>()},
      {"image_cnn", with<image_cnn>()},
      {"transformer", with<transformer>()},
      {"siamese", with<siamese>()},
      {"autoencoder", with<autoencoder>()},
      {"regularized_model", with<language_model>(10000u, 2u, 256u, 20u, true)},
      {"skip_gram", with<skip_gram>()},
      {"stack_parser", with<stack_parser>()},
      {"graph_network", with<graph_network>()}};
  std::vector<std::string> names = items(s.at("--models"));
  if (names.empty())
    for (const auto &one : models)
      names.push_back(one.first);
  for (const std::string &name : names) {
    const auto known = models.find(name);
    const measured one = known != models.end() ? known->second : of_sizes(name);
    if (!one)
      throw std::runtime_error("--models " + name + " is unknown");
    for (const std::string &batch : items(s.at("--batches")))
      one(s, name, unsigned(std::stoul(batch)));
  }
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "portfolio: " << e.what() << std::endl;
    return 1;
  }
}
