// Sentiment analysis with a time-delay neural network (TD-RNN): every two neighbours are
// composed into one vector, these again with their neighbours, with the same weights at
// every step, until one vector is left. It gives the label; the tree is not looked at.
//
//	tdrnn --demo                                   about a minute on the sample trees
//	tdrnn --trees DIR --hidden 512 --embed 512     train.txt and dev.txt of the Stanford
// treebank
#include "bag_of_words.h"
#include "root.h"

using namespace dynet;

class td_rnn {
public:
  typedef tree_corpus corpus;

  td_rnn(ParameterCollection &m, const corpus &data, const options &o) : root(m, o.hidden) {
    left = m.add_parameters({o.hidden, o.hidden});
    right = m.add_parameters({o.hidden, o.hidden});
    bias = m.add_parameters({o.hidden});
    embeddings = m.add_lookup_parameters(data.words.size(), {o.hidden});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    root.start(graph);
    wl = parameter(graph, left);
    wr = parameter(graph, right);
    b = parameter(graph, bias);
  }

  // The scores of the labels of the whole sentence.
  Expression scores(const tree &t) {
    std::vector<Expression> h;
    for (const tree_node &n : t.nodes)
      if (n.is_word())
        h.push_back(lookup(*cg, embeddings, n.word_id));
    for (; h.size() > 1; h.pop_back())
      for (size_t k = 0; k + 1 < h.size(); k++) // in place: h[k] is not read again
        h[k] = tanh(affine_transform({b, wl, h[k], wr, h[k + 1]}));
    return root(h[0]);
  }

  void add_losses(const tree &t, std::vector<Expression> &losses) {
    losses.push_back(pickneglogsoftmax(scores(t), t.root().label));
  }

  void add_answers(const tree &t, std::vector<answer> &answers) {
    answers.push_back({scores(t), t.root().label});
  }

private:
  root_scores root;
  Parameter left, right, bias;
  LookupParameter embeddings;
  ComputationGraph *cg = nullptr;
  Expression wl, wr, b;
};

int main(int argc, char **argv) {
  const application td_rnn_512 = {
      "TD-RNN", "trees", "(label (label word) (label word))", "", 512, 512, 0.05, need_equal_sizes};
  return run<td_rnn>(td_rnn_512, argc, argv, print_bag_of_words);
}
