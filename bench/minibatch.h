// A batch of sentences as minibatched programs have it: a position of all sentences is one tensor.
#ifndef VPPS_BENCH_MINIBATCH_H
#define VPPS_BENCH_MINIBATCH_H

#include <dynet/dynet.h>
#include <dynet/expr.h>

#include <algorithm>
#include <vector>

#include "../cpp_examples/tags.h"

// Short sentences are filled up with word and tag 0, which do not count.
struct minibatch {
  std::vector<std::vector<unsigned>> words, tags; // [position][sentence]
  std::vector<std::vector<float>> counts;         // [position][sentence], 0 or 1

  explicit minibatch(const std::vector<const tagged_sentence *> &batch) {
    size_t longest = 0;
    for (const tagged_sentence *s : batch)
      longest = std::max(longest, s->size());
    words.assign(longest, std::vector<unsigned>(batch.size()));
    tags = words;
    counts.assign(longest, std::vector<float>(batch.size()));
    for (size_t k = 0; k < batch.size(); k++)
      for (size_t at = 0; at < batch[k]->size(); at++) {
        words[at][k] = (*batch[k])[at].word_id;
        tags[at][k] = (*batch[k])[at].tag_id;
        counts[at][k] = 1;
      }
  }

  size_t size() const { return words.size(); }
  // The errors of a position, summed over those sentences that have it.
  dynet::Expression sum(dynet::ComputationGraph &cg, size_t at,
                        const dynet::Expression &errors) const {
    const dynet::Dim each({1}, unsigned(counts[at].size()));
    return dynet::sum_batches(dynet::cmult(errors, dynet::input(cg, each, counts[at])));
  }
};

#endif
