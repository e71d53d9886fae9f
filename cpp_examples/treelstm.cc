// Sentiment analysis with a binary Tree-LSTM, written as an ordinary DyNet program: a new
// graph for every batch of trees, with the shape of the trees. The few lines
// that differ from a program for DyNet alone are marked "libvpps".
//
//	treelstm --demo                      about a minute on the sample trees
//	treelstm --trees DIR --hidden 256    train.txt and dev.txt of the Stanford treebank
#include "application.h"
#include "bag_of_words.h"
#include "tree_answers.h"
#include "trees.h"

using namespace dynet;

class tree_lstm {
public:
  typedef tree_corpus corpus;

  tree_lstm(ParameterCollection &m, const corpus &data, const options &o) {
    const unsigned hidden = o.hidden;
    softmax = m.add_parameters({tree_labels, hidden});
    for (Parameter &w : leaf_weights) // of the gates i, o, u
      w = m.add_parameters({hidden, o.embed});
    for (Parameter &w : node_weights)
      w = m.add_parameters({hidden, 2 * hidden});
    for (Parameter &w : forget_weights) // of the left and the right child
      w = m.add_parameters({hidden, hidden});
    for (Parameter &bias : biases) // of i, o, u, f
      bias = m.add_parameters({hidden});
    embeddings = m.add_lookup_parameters(data.words.size(), {o.embed});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    s = parameter(graph, softmax);
    for (int k = 0; k < 3; k++) {
      wl[k] = parameter(graph, leaf_weights[k]);
      wn[k] = parameter(graph, node_weights[k]);
    }
    for (int k = 0; k < 2; k++)
      wf[k] = parameter(graph, forget_weights[k]);
    for (int k = 0; k < 4; k++)
      b[k] = parameter(graph, biases[k]);
  }

  // The scores of the labels at every node of a tree.
  std::vector<Expression> scores(const tree &t) {
    std::vector<Expression> out, h, c; // scores, hidden states, cells by node
    for (const tree_node &n : t.nodes) {
      Expression i, o, u;
      if (n.is_word()) {
        const Expression x = lookup(*cg, embeddings, n.word_id);
        i = logistic(affine_transform({b[0], wl[0], x}));
        o = logistic(affine_transform({b[1], wl[1], x}));
        u = tanh(affine_transform({b[2], wl[2], x}));
        c.push_back(cmult(i, u));
      } else {
        const Expression h1 = h[n.left], h2 = h[n.right];
        const Expression both = concatenate({h1, h2});
        i = logistic(affine_transform({b[0], wn[0], both}));
        o = logistic(affine_transform({b[1], wn[1], both}));
        u = tanh(affine_transform({b[2], wn[2], both}));
        const Expression f1 = logistic(affine_transform({b[3], wf[0], h1}));
        const Expression f2 = logistic(affine_transform({b[3], wf[1], h2}));
        c.push_back(cmult(i, u) + cmult(f1, c[n.left]) + cmult(f2, c[n.right]));
      }
      h.push_back(cmult(o, tanh(c.back())));
      out.push_back(s * h.back());
    }
    return out;
  }

  // Every node's label counts, as in the treebank.
  void add_losses(const tree &t, std::vector<Expression> &losses) {
    const std::vector<Expression> out = scores(t);
    for (size_t n = 0; n < out.size(); n++)
      losses.push_back(pickneglogsoftmax(out[n], t.nodes[n].label));
  }

  // What the sentence says is the root's label.
  void add_answers(const tree &t, std::vector<answer> &answers) {
    answers.push_back({scores(t).back(), t.root().label});
  }

private:
  Parameter softmax, leaf_weights[3], node_weights[3], forget_weights[2], biases[4];
  LookupParameter embeddings;
  ComputationGraph *cg = nullptr;
  Expression s, wl[3], wn[3], wf[2], b[4];
};

int main(int argc, char **argv) {
  const application tree_lstm_256 = {
      "Tree-LSTM", "trees", "(label (label word) (label word))", "", 256, 256, 0.1, nullptr};
  return run<tree_lstm>(tree_lstm_256, argc, argv, print_bag_of_words);
}
