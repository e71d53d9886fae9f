// The binary Tree-LSTM that the benchmarks train, with a loss at every node.
#ifndef VPPS_BENCH_TREE_LSTM_H
#define VPPS_BENCH_TREE_LSTM_H

#include <dynet/dynet.h>
#include <dynet/expr.h>

#include <vector>

#include "../cpp_examples/trees.h"

// The binary Tree-LSTM of cpp_examples/treelstm.cc, without what only a reader needs.
struct tree_lstm {
  typedef tree_corpus corpus;
  dynet::Parameter p[13]; // softmax; leaf i o u; node i o u; forget left right; biases i o u f
  dynet::LookupParameter table;

  tree_lstm(dynet::ParameterCollection &m, unsigned words, unsigned embed, unsigned hidden) {
    for (unsigned k = 0; k < 13; k++)
      p[k] = m.add_parameters(k == 0   ? dynet::Dim({tree_labels, hidden})
                              : k <= 3 ? dynet::Dim({hidden, embed})
                              : k <= 6 ? dynet::Dim({hidden, 2 * hidden})
                              : k <= 8 ? dynet::Dim({hidden, hidden})
                                       : dynet::Dim({hidden}));
    table = m.add_lookup_parameters(words, {embed});
  }

  dynet::Expression loss(dynet::ComputationGraph &cg,
                         const std::vector<const tree *> &batch) const {
    using namespace dynet;
    Expression w[13];
    for (int k = 0; k < 13; k++)
      w[k] = parameter(cg, p[k]);
    std::vector<Expression> losses, h, c;
    for (const tree *t : batch) {
      h.clear();
      c.clear();
      for (const tree_node &n : t->nodes) {
        const bool leaf = n.is_word();
        const Expression x = leaf ? lookup(cg, table, n.word_id)
                                  : concatenate({h[size_t(n.left)], h[size_t(n.right)]});
        const Expression *gate = w + (leaf ? 1 : 4);
        const Expression i = logistic(affine_transform({w[9], gate[0], x}));
        const Expression o = logistic(affine_transform({w[10], gate[1], x}));
        const Expression u = tanh(affine_transform({w[11], gate[2], x}));
        Expression cell = cmult(i, u);
        if (!leaf) {
          const Expression f1 = logistic(affine_transform({w[12], w[7], h[size_t(n.left)]}));
          const Expression f2 = logistic(affine_transform({w[12], w[8], h[size_t(n.right)]}));
          cell = cell + cmult(f1, c[size_t(n.left)]) + cmult(f2, c[size_t(n.right)]);
        }
        c.push_back(cell);
        h.push_back(cmult(o, tanh(cell)));
        losses.push_back(pickneglogsoftmax(w[0] * h.back(), n.label));
      }
    }
    return sum(losses);
  }
};

#endif
