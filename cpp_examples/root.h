// What the models of a sentence's sentiment have in common that judge the whole sentence
// only: the label scores of the last hidden state, through one hidden layer.
#ifndef VPPS_EXAMPLES_ROOT_H
#define VPPS_EXAMPLES_ROOT_H

#include "application.h"
#include "tree_answers.h"
#include "trees.h"

class root_scores {
public:
  root_scores(dynet::ParameterCollection &m, unsigned hidden) {
    mlp = m.add_parameters({hidden, hidden});
    mlp_bias = m.add_parameters({hidden});
    labels = m.add_parameters({tree_labels, hidden});
    labels_bias = m.add_parameters({tree_labels});
  }

  // Brings the parameters into a new graph.
  void start(dynet::ComputationGraph &graph) {
    w = parameter(graph, mlp);
    b = parameter(graph, mlp_bias);
    wl = parameter(graph, labels);
    bl = parameter(graph, labels_bias);
  }

  dynet::Expression operator()(const dynet::Expression &h) const {
    using dynet::affine_transform; // which an initializer list does not find
    return affine_transform({bl, wl, tanh(affine_transform({b, w, h}))});
  }

private:
  dynet::Parameter mlp, mlp_bias, labels, labels_bias;
  dynet::Expression w, b, wl, bl;
};

// Models that compose embeddings with embeddings need hidden states of the same size.
inline void need_equal_sizes(const options &o) {
  if (o.embed != o.hidden)
    throw usage_error("--embed " + std::to_string(o.embed) + " --hidden " +
                      std::to_string(o.hidden) +
                      ": the embeddings are composed as they are: give both one size");
}

#endif
