// The encoder-decoder that the benchmarks train: it reads a sentence's words, and writes its tags
// with attention to all words. Minibatches.
#ifndef VPPS_BENCH_ENCODER_DECODER_H
#define VPPS_BENCH_ENCODER_DECODER_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>

#include <vector>

#include "minibatch.h"

struct encoder_decoder {
  typedef tag_corpus corpus;
  dynet::LookupParameter words, tags;
  dynet::Parameter of_words, of_state, attention, scores, bias;
  dynet::VanillaLSTMBuilder encoder, decoder;

  encoder_decoder(dynet::ParameterCollection &m, corpus &data, unsigned embed, unsigned hidden)
      : words(m.add_lookup_parameters(unsigned(data.words.size()), {embed})),
        tags(m.add_lookup_parameters(unsigned(data.tags.size()), {embed})),
        of_words(m.add_parameters({hidden, hidden})), of_state(m.add_parameters({hidden, hidden})),
        attention(m.add_parameters({1, hidden})),
        scores(m.add_parameters({unsigned(data.tags.size()), hidden})),
        bias(m.add_parameters({unsigned(data.tags.size())})), encoder(1, embed, hidden, m),
        decoder(1, hidden + embed, hidden, m) {}

  dynet::Expression loss(dynet::ComputationGraph &cg,
                         const std::vector<const tagged_sentence *> &batch) {
    using namespace dynet;
    const minibatch all(batch);
    encoder.new_graph(cg);
    encoder.start_new_sequence();
    std::vector<Expression> read;
    for (size_t k = 0; k < all.size(); k++)
      read.push_back(encoder.add_input(lookup(cg, words, all.words[k])));
    const Expression encoded = concatenate_cols(read); // hidden x positions
    const Expression keys = parameter(cg, of_words) * encoded;

    const Expression query = parameter(cg, of_state), a = parameter(cg, attention);
    const Expression w = parameter(cg, scores), b = parameter(cg, bias);
    decoder.new_graph(cg);
    decoder.start_new_sequence();
    Expression state = read.back();
    std::vector<unsigned> last(batch.size()); // the tag before
    std::vector<Expression> losses;
    for (size_t k = 0; k < all.size(); k++) {
      const Expression weights = softmax(transpose(a * tanh(colwise_add(keys, query * state))));
      state = decoder.add_input(concatenate({encoded * weights, lookup(cg, tags, last)}));
      losses.push_back(
          all.sum(cg, k, pickneglogsoftmax(affine_transform({b, w, state}), all.tags[k])));
      last = all.tags[k];
    }
    return sum(losses);
  }
};

#endif
