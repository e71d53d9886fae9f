// Predicts the next of some letters with an LSTM, learns with momentum, its rate falling, and makes
// its graphs in a function and its trainer on the heap.
#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/lstm.h"
#include "dynet/training.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace std;
using namespace dynet;

struct Letters {
  ParameterCollection model;
  LookupParameter embeddings;
  Parameter W, b;
  VanillaLSTMBuilder lstm;
  unique_ptr<Trainer> trainer;

  Letters()
      : embeddings(model.add_lookup_parameters(26, {8})), W(model.add_parameters({26, 16})),
        b(model.add_parameters({26})), lstm(1, 8, 16, model),
        trainer(new MomentumSGDTrainer(model, 0.05)) {}

  float learn(const string &word) {
    ComputationGraph cg;
    lstm.new_graph(cg);
    lstm.start_new_sequence();
    Expression w = parameter(cg, W), bias = parameter(cg, b);
    vector<Expression> errors;
    for (size_t k = 0; k + 1 < word.size(); k++) {
      Expression h = lstm.add_input(lookup(cg, embeddings, unsigned(word[k] - 'a')));
      errors.push_back(
          pickneglogsoftmax(affine_transform({bias, w, h}), unsigned(word[k + 1] - 'a')));
    }
    Expression error = sum(errors);
    cg.backward(error);
    trainer->update();
    return as_scalar(error.value());
  }
};

static bool initialized = false;

int main(int argc, char **argv) {
  if (!initialized)
    initialize(argc, argv);
  Letters letters;
  float first = 0, last = 0;
  for (int epoch = 0; epoch < 16; epoch++) {
    float sum = 0;
    for (const char *word : {"abcabcabc", "xyzzyxyzzy", "hello", "neural", "graphs"})
      sum += letters.learn(word);
    if (epoch % 5 == 0)
      printf("epoch %d: loss %.3f\n", epoch, sum);
    if (epoch == 8)
      letters.trainer->restart(0.02f);
    (epoch == 0 ? first : last) = sum;
  }
  return last < first / 2 ? 0 : 1;
}
