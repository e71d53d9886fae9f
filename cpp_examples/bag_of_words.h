// The baseline beside the models of sentiment: softmax regression on the words of a sentence, which
// never sees the tree. Plain loops; it is done in a moment.
#ifndef VPPS_EXAMPLES_BAG_OF_WORDS_H
#define VPPS_EXAMPLES_BAG_OF_WORDS_H

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "options.h"
#include "trees.h"

class bag_of_words {
public:
  explicit bag_of_words(size_t words)
      : bias(tree_labels), weights(words, std::vector<double>(tree_labels)) {}

  void train(std::vector<tree> trees, unsigned epochs, double rate, unsigned seed) {
    std::mt19937 random(seed);
    for (unsigned epoch = 0; epoch < epochs; epoch++) {
      std::shuffle(trees.begin(), trees.end(), random);
      for (const tree &t : trees) {
        std::vector<double> g = scores(t);
        const double most = *std::max_element(g.begin(), g.end());
        double sum = 0;
        for (double &x : g)
          sum += x = std::exp(x - most);
        for (unsigned k = 0; k < tree_labels; k++) {
          g[k] = rate * (g[k] / sum - (k == t.root().label));
          bias[k] -= g[k];
        }
        for (const tree_node &n : t.nodes)
          for (unsigned k = 0; n.is_word() && k < tree_labels; k++)
            weights[n.word_id][k] -= g[k];
      }
    }
  }

  double accuracy(const std::vector<tree> &trees) const {
    size_t right = 0;
    for (const tree &t : trees) {
      const std::vector<double> s = scores(t);
      right += size_t(std::max_element(s.begin(), s.end()) - s.begin()) == t.root().label;
    }
    return double(right) / double(trees.size());
  }

private:
  std::vector<double> scores(const tree &t) const {
    std::vector<double> s = bias;
    for (const tree_node &n : t.nodes)
      for (unsigned k = 0; n.is_word() && k < tree_labels; k++)
        s[k] += weights[n.word_id][k];
    return s;
  }

  std::vector<double> bias;
  std::vector<std::vector<double>> weights;
};

// How far the words alone lead.
inline void print_bag_of_words(const tree_corpus &data, const options &o) {
  bag_of_words words(data.words.size());
  words.train(data.train, 20, 0.05, o.seed);
  std::printf("held-out accuracy: %5.1f %% bag of words\n", 100 * words.accuracy(data.dev));
}

#endif
