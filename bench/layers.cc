// How long a device takes for layers of one size on random data: for models beyond the registers.
// One CSV row for each number of examples, or, with --losses, the losses of six updates each, to
// compare devices and settings by.
//
//   VPPS_TIMES=1 build/bench/layers --sizes 2048,2048,2048,2048,2048 --examples 1,16,64,256,1024
//
// --sizes A,B,...    of the vectors before, between and behind the layers
// --examples A,B,... in a batch (1,16,64)
// --losses 1         prints losses instead
// --report 1         prints the plan, too, to stderr
//
// The device's times need VPPS_TIMES=1, those of the phases VPPS_PROFILE=1.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../cpp_examples/progress.h"

using namespace dynet;

namespace {

std::vector<unsigned> numbers(const std::string &text) {
  std::vector<unsigned> list;
  std::istringstream in(text);
  for (std::string n; std::getline(in, n, ',');)
    list.push_back(unsigned(std::stoul(n)));
  return list;
}

class layers {
public:
  explicit layers(const std::vector<unsigned> &sizes)
      : sizes_(sizes), weights_(add(m_, sizes)), trainer_(m_, 0.001f), hndl_(m_, trainer_) {}

  // One update with so many new examples.
  void update(unsigned examples) {
    ComputationGraph cg;
    std::vector<Expression> w, losses;
    for (const Parameter &p : weights_)
      w.push_back(parameter(cg, p));
    while (data_.size() < examples)
      data_.push_back(random_vector());
    for (unsigned k = 0; k < examples; k++) {
      Expression x = input(cg, {sizes_[0]}, data_[k]);
      for (const Expression &layer : w)
        x = tanh(layer * x);
      losses.push_back(squared_norm(x));
    }
    hndl_.fb(m_, cg, sum(losses) * (1.f / float(examples)));
  }

  float loss() { return hndl_.sync_get_latest_loss(); }
  std::string report() { return hndl_.plan_report(); }

private:
  static std::vector<Parameter> add(ParameterCollection &m, const std::vector<unsigned> &sizes) {
    std::vector<Parameter> list;
    for (size_t k = 1; k < sizes.size(); k++)
      list.push_back(m.add_parameters({sizes[k], sizes[k - 1]}));
    return list;
  }

  std::vector<float> random_vector() {
    std::normal_distribution<float> normal;
    std::vector<float> x(sizes_[0]);
    for (float &v : x)
      v = normal(random_);
    return x;
  }

  std::vector<unsigned> sizes_;
  ParameterCollection m_;
  std::vector<Parameter> weights_;
  SimpleSGDTrainer trainer_;
  vpps::handle hndl_;
  std::mt19937 random_{1};
  std::vector<std::vector<float>> data_;
};

// Prints what an update with so many examples takes: the median of five runs, and the device's
// means.
void measure(layers &model, const std::string &sizes, unsigned examples) {
  const int warm_up = 10, runs = 5, updates = examples > 512 ? 10 : 40;
  for (int k = 0; k < warm_up; k++)
    model.update(examples);
  model.loss();
  const vpps_times before = vpps::times();
  std::vector<double> ms;
  for (int k = 0; k < runs; k++) {
    const stopwatch clock;
    for (int i = 0; i < updates; i++)
      model.update(examples);
    model.loss();
    ms.push_back(clock.seconds() * 1e3 / updates);
  }
  std::sort(ms.begin(), ms.end());
  const vpps_times after = vpps::times();
  const auto us = [&](uint64_t from, uint64_t to) {
    return double(to - from) / 1e3 / (runs * updates);
  };
  std::printf("\"%s\",%u,%.4f,%.1f,%.1f,%.1f,%.1f,%.1f\n", sizes.c_str(), examples, ms[runs / 2],
              us(before.kernel_ns, after.kernel_ns),
              us(before.forward.mean_ns, after.forward.mean_ns),
              us(before.backward.mean_ns, after.backward.mean_ns),
              us(before.gradients.mean_ns, after.gradients.mean_ns),
              us(before.update.mean_ns, after.update.mean_ns));
  std::fflush(stdout);
}

void run(int argc, char **argv) {
  initialize(argc, argv);
  std::map<std::string, std::string> flags = {
      {"--sizes", ""}, {"--examples", "1,16,64"}, {"--losses", "0"}, {"--report", "0"}};
  for (int k = 1; k < argc; k++) {
    const auto flag = flags.find(argv[k]);
    if (flag == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    flag->second = argv[++k];
  }
  const std::vector<unsigned> sizes = numbers(flags["--sizes"]);
  if (sizes.size() < 2)
    throw std::runtime_error("no layers: name the sizes of two vectors or more with --sizes");
  layers model(sizes);
  const bool losses = flags["--losses"] == "1";
  std::puts(
      losses
          ? "examples,update,loss"
          : "sizes,examples,ms_per_update,kernel_us,forward_us,backward_us,gradients_us,update_us");
  for (const unsigned examples : numbers(flags["--examples"]))
    if (losses)
      for (int k = 0; k < 6; k++) {
        model.update(examples);
        std::printf("%u,%d,%.7g\n", examples, k, double(model.loss()));
      }
    else
      measure(model, flags["--sizes"], examples);
  if (flags["--report"] == "1")
    std::cerr << model.report();
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "layers: " << e.what() << std::endl;
    return 1;
  }
}
