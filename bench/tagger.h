// The BiLSTM tagger that the benchmarks train: that of DyNet's own benchmark programs.
#ifndef VPPS_BENCH_TAGGER_H
#define VPPS_BENCH_TAGGER_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>

#include <vector>

#include "../cpp_examples/tags.h"

// The tagger of cpp_examples/bilstm.cc, its scores from a layer of another size and without biases.
struct tagger {
  typedef tag_corpus corpus;
  dynet::LookupParameter table;
  dynet::Parameter mlp, tags;
  dynet::VanillaLSTMBuilder forwards, backwards;

  tagger(dynet::ParameterCollection &m, corpus &data, unsigned embed, unsigned hidden,
         unsigned layer)
      : table(m.add_lookup_parameters(data.words.size(), {embed})),
        mlp(m.add_parameters({layer, 2 * hidden})),
        tags(m.add_parameters({unsigned(data.tags.size()), layer})), forwards(1, embed, hidden, m),
        backwards(1, embed, hidden, m) {}

  dynet::Expression loss(dynet::ComputationGraph &cg,
                         const std::vector<const tagged_sentence *> &batch) {
    using namespace dynet;
    forwards.new_graph(cg);
    backwards.new_graph(cg);
    const Expression w = parameter(cg, mlp), t = parameter(cg, tags);
    std::vector<Expression> losses;
    for (const tagged_sentence *s : batch) {
      const size_t n = s->size();
      std::vector<Expression> words, before(n), after(n);
      for (const tagged_word &word : *s)
        words.push_back(lookup(cg, table, word.word_id));
      forwards.start_new_sequence();
      for (size_t k = 0; k < n; k++)
        before[k] = forwards.add_input(words[k]);
      backwards.start_new_sequence();
      for (size_t k = n; k-- > 0;)
        after[k] = backwards.add_input(words[k]);
      for (size_t k = 0; k < n; k++)
        losses.push_back(
            pickneglogsoftmax(t * tanh(w * concatenate({before[k], after[k]})), (*s)[k].tag_id));
    }
    return sum(losses);
  }
};

#endif
