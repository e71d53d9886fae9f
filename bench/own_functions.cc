// How fast a network trains with an element-wise function of the program's own. Eight layers of 256
// are each followed by swish; a batch has 16 sentences of random words. One CSV row: how swish is
// made, sentences a second, and sentences a second of processor time.
//
//   build/bench/own_functions silu      the built-in function
//   build/bench/own_functions formula   vpps::elementwise
//   build/bench/own_functions class     a class derived from dynet::Node
#include <vpps/elementwise.hpp>
#include <vpps/vpps.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace dynet;

namespace {

const unsigned layers = 8, width = 256, words = 1000, sentences = 16;

struct Swish : Node {
  explicit Swish(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  Dim dim_forward(const std::vector<Dim> &x) const override { return x[0]; }
  std::string as_string(const std::vector<std::string> &x) const override {
    return "swish(" + x[0] + ")";
  }
  void forward_impl(const std::vector<const Tensor *> &x, Tensor &y) const override {
    for (size_t i = 0; i < y.d.size(); ++i)
      y.v[i] = x[0]->v[i] / (1 + std::exp(-x[0]->v[i]));
  }
  void backward_impl(const std::vector<const Tensor *> &x, const Tensor &y, const Tensor &dy,
                     unsigned, Tensor &dx) const override {
    for (size_t i = 0; i < y.d.size(); ++i) {
      const float s = 1 / (1 + std::exp(-x[0]->v[i]));
      dx.v[i] += dy.v[i] * (s + y.v[i] * (1 - s));
    }
  }
};

Expression swish(const std::string &way, const Expression &x) {
  static const vpps::elementwise formula("swish", "x / (1 + exp(-x))");
  if (way == "silu")
    return silu(x);
  if (way == "formula")
    return formula(x);
  return Expression(x.pg, x.pg->add_function<Swish>({x.i}));
}

class training_run {
public:
  explicit training_run(const std::string &way)
      : way_(way), table_(m_.add_lookup_parameters(words, {width})), trainer_(m_, 1e-3f),
        hndl_(m_, trainer_) {
    for (unsigned l = 0; l < layers; ++l) {
      weights_.push_back(m_.add_parameters({width, width}));
      biases_.push_back(m_.add_parameters({width}));
    }
  }

  void batches(unsigned count) {
    while (count-- > 0)
      batch();
    hndl_.sync_get_latest_loss();
  }

private:
  void batch() {
    ComputationGraph cg;
    std::vector<Expression> w, b, losses;
    for (unsigned l = 0; l < layers; ++l) {
      w.push_back(parameter(cg, weights_[l]));
      b.push_back(parameter(cg, biases_[l]));
    }
    for (unsigned s = 0; s < sentences; ++s)
      for (unsigned n = 5 + random_() % 20; n > 0; --n) {
        Expression x = lookup(cg, table_, static_cast<unsigned>(random_() % words));
        for (unsigned l = 0; l < layers; ++l)
          x = swish(way_, affine_transform({b[l], w[l], x}));
        losses.push_back(squared_norm(x));
      }
    hndl_.fb(m_, cg, sum(losses));
  }

  std::string way_;
  ParameterCollection m_;
  LookupParameter table_;
  std::vector<Parameter> weights_, biases_;
  SimpleSGDTrainer trainer_;
  vpps::handle hndl_;
  std::mt19937 random_;
};

} // namespace

int main(int argc, char **argv) {
  initialize(argc, argv);
  const std::string way = argc > 1 ? argv[1] : "";
  if (way != "silu" && way != "formula" && way != "class") {
    std::cerr << "own_functions needs silu, formula or class\n";
    return 2;
  }
  const unsigned batches = way == "class" ? 10 : 40;
  training_run run(way);
  run.batches(3); // which prepare what later ones need
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  run.batches(batches);
  const double worked = double(std::clock() - processor) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double done = batches * sentences;
  std::printf("%s,%.1f,%.1f\n", way.c_str(), done / took.count(), done / worked);
}
