// Sentiment analysis with a recursive neural network (RvNN): a phrase's vector is made from
// those of its two parts, with the same weights everywhere in the tree; words have weights
// of their own. The vector of the whole sentence gives the label.
//
//	rvnn --demo                      about a minute on the sample trees
//	rvnn --trees DIR --hidden 512    train.txt and dev.txt of the Stanford treebank
#include "bag_of_words.h"
#include "root.h"

using namespace dynet;

class rvnn {
public:
  typedef tree_corpus corpus;

  rvnn(ParameterCollection &m, const corpus &data, const options &o) : root(m, o.hidden) {
    leaf = m.add_parameters({o.hidden, o.embed});
    leaf_bias = m.add_parameters({o.hidden});
    left = m.add_parameters({o.hidden, o.hidden});
    right = m.add_parameters({o.hidden, o.hidden});
    bias = m.add_parameters({o.hidden});
    embeddings = m.add_lookup_parameters(data.words.size(), {o.embed});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    root.start(graph);
    wx = parameter(graph, leaf);
    bx = parameter(graph, leaf_bias);
    wl = parameter(graph, left);
    wr = parameter(graph, right);
    b = parameter(graph, bias);
  }

  // The scores of the labels of the whole sentence.
  Expression scores(const tree &t) {
    std::vector<Expression> h; // by node
    for (const tree_node &n : t.nodes)
      if (n.is_word())
        h.push_back(tanh(affine_transform({bx, wx, lookup(*cg, embeddings, n.word_id)})));
      else
        h.push_back(tanh(affine_transform({b, wl, h[n.left], wr, h[n.right]})));
    return root(h.back());
  }

  void add_losses(const tree &t, std::vector<Expression> &losses) {
    losses.push_back(pickneglogsoftmax(scores(t), t.root().label));
  }

  void add_answers(const tree &t, std::vector<answer> &answers) {
    answers.push_back({scores(t), t.root().label});
  }

private:
  root_scores root;
  Parameter leaf, leaf_bias, left, right, bias;
  LookupParameter embeddings;
  ComputationGraph *cg = nullptr;
  Expression wx, bx, wl, wr, b;
};

int main(int argc, char **argv) {
  const application rvnn_512 = {"RvNN", "trees", "(label (label word) (label word))", "", 512, 512,
                                0.05,   nullptr};
  return run<rvnn>(rvnn_512, argc, argv, print_bag_of_words);
}
