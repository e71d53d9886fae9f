// The multilayer perceptron that the benchmarks train: vectors of numbers in minibatches.
#ifndef VPPS_BENCH_MLP_H
#define VPPS_BENCH_MLP_H

#include <dynet/dynet.h>
#include <dynet/expr.h>

#include <random>
#include <string>
#include <vector>

// Two hidden layers and ten labels.
struct mlp {
  enum { pixels = 784, labels = 10 };
  struct example {
    std::vector<float> x; // [pixels]
    unsigned label;
  };
  struct corpus {
    typedef example sentence;
    std::vector<example> train;
    // Random numbers; there is no file.
    void read(const std::string &, const std::string &) {
      std::mt19937 random(1);
      std::uniform_real_distribution<float> pixel(0, 1);
      for (unsigned k = 0; k < 1000; k++) {
        train.push_back(example{{}, k % labels});
        for (int i = 0; i < pixels; i++)
          train.back().x.push_back(pixel(random));
      }
    }
  };

  dynet::Parameter w[3], b[3];

  mlp(dynet::ParameterCollection &m, unsigned hidden) {
    const unsigned sizes[] = {pixels, hidden, hidden, labels};
    for (int k = 0; k < 3; k++) {
      w[k] = m.add_parameters({sizes[k + 1], sizes[k]});
      b[k] = m.add_parameters({sizes[k + 1]});
    }
  }

  dynet::Expression loss(dynet::ComputationGraph &cg, const std::vector<const example *> &batch) {
    using namespace dynet;
    std::vector<float> x;
    std::vector<unsigned> right;
    for (const example *e : batch) {
      x.insert(x.end(), e->x.begin(), e->x.end());
      right.push_back(e->label);
    }
    Expression h = input(cg, Dim({pixels}, unsigned(batch.size())), x);
    for (int k = 0; k < 3; k++) {
      h = affine_transform({parameter(cg, b[k]), parameter(cg, w[k]), h});
      if (k < 2)
        h = rectify(h);
    }
    return sum_batches(pickneglogsoftmax(h, right));
  }
};

#endif
