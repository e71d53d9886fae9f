// The language model that the benchmarks train: an LSTM over minibatches of sentences.
#ifndef VPPS_BENCH_LANGUAGE_MODEL_H
#define VPPS_BENCH_LANGUAGE_MODEL_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>

#include <algorithm>
#include <vector>

#include "minibatch.h"

// The scores of the next word are over 2000 words, or all of a larger vocabulary.
struct language_model {
  typedef tag_corpus corpus;
  dynet::LookupParameter table;
  dynet::Parameter w, b;
  dynet::VanillaLSTMBuilder lstm;

  language_model(dynet::ParameterCollection &m, corpus &data, unsigned embed, unsigned hidden)
      : table(m.add_lookup_parameters(vocabulary(data), {embed})),
        w(m.add_parameters({vocabulary(data), hidden})), b(m.add_parameters({vocabulary(data)})),
        lstm(1, embed, hidden, m) {}

  dynet::Expression loss(dynet::ComputationGraph &cg,
                         const std::vector<const tagged_sentence *> &batch) {
    using namespace dynet;
    const minibatch all(batch);
    lstm.new_graph(cg);
    lstm.start_new_sequence();
    const Expression scores = parameter(cg, w), bias = parameter(cg, b);
    std::vector<unsigned> last(batch.size()); // the word before
    std::vector<Expression> losses;
    for (size_t k = 0; k < all.size(); k++) {
      const Expression h = lstm.add_input(lookup(cg, table, last));
      losses.push_back(
          all.sum(cg, k, pickneglogsoftmax(affine_transform({bias, scores, h}), all.words[k])));
      last = all.words[k];
    }
    return sum(losses);
  }

private:
  static unsigned vocabulary(const corpus &data) {
    return std::max(2000u, unsigned(data.words.size()));
  }
};

#endif
