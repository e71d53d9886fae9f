// Sentiment analysis with a time-delay network of LSTM cells (TD-LSTM): as the TD-RNN
// composes neighbours until one vector is left, but each step is an LSTM's, whose cell keeps
// of the left and of the right neighbour's what a gate lets through.
//
//	tdlstm --demo                                   about a minute on the sample trees
//	tdlstm --trees DIR --hidden 256 --embed 256     train.txt and dev.txt of the Stanford
// treebank
#include "bag_of_words.h"
#include "root.h"

using namespace dynet;

class td_lstm {
public:
  typedef tree_corpus corpus;

  td_lstm(ParameterCollection &m, const corpus &data, const options &o) : root(m, o.hidden) {
    for (int k = 0; k < gates; k++) {
      left[k] = m.add_parameters({o.hidden, o.hidden});
      right[k] = m.add_parameters({o.hidden, o.hidden});
      biases[k] = m.add_parameters({o.hidden});
    }
    embeddings = m.add_lookup_parameters(data.words.size(), {o.hidden});
  }

  // Brings the parameters into a new graph.
  void start(ComputationGraph &graph) {
    cg = &graph;
    root.start(graph);
    for (int k = 0; k < gates; k++) {
      wl[k] = parameter(graph, left[k]);
      wr[k] = parameter(graph, right[k]);
      b[k] = parameter(graph, biases[k]);
    }
  }

  // The scores of the labels of the whole sentence.
  Expression scores(const tree &t) {
    std::vector<Expression> h, c; // words have no cell yet
    for (const tree_node &n : t.nodes)
      if (n.is_word())
        h.push_back(lookup(*cg, embeddings, n.word_id));
    for (; h.size() > 1; h.pop_back()) {
      const bool words = c.empty();
      c.resize(h.size());
      for (size_t k = 0; k + 1 < h.size(); k++) { // in place: h[k], c[k] are not read again
        const Expression i = logistic(gate(0, h[k], h[k + 1]));
        const Expression o = logistic(gate(1, h[k], h[k + 1]));
        const Expression u = tanh(gate(2, h[k], h[k + 1]));
        Expression cell = cmult(i, u);
        if (!words)
          cell = cell + cmult(logistic(gate(3, h[k], h[k + 1])), c[k]) +
                 cmult(logistic(gate(4, h[k], h[k + 1])), c[k + 1]);
        c[k] = cell;
        h[k] = cmult(o, tanh(cell));
      }
    }
    return root(h[0]);
  }

  void add_losses(const tree &t, std::vector<Expression> &losses) {
    losses.push_back(pickneglogsoftmax(scores(t), t.root().label));
  }

  void add_answers(const tree &t, std::vector<answer> &answers) {
    answers.push_back({scores(t), t.root().label});
  }

private:
  Expression gate(int k, const Expression &h1, const Expression &h2) const {
    return affine_transform({b[k], wl[k], h1, wr[k], h2});
  }

  static const int gates = 5; // i, o, u, and f of the left and of the right neighbour
  root_scores root;
  Parameter left[gates], right[gates], biases[gates];
  LookupParameter embeddings;
  ComputationGraph *cg = nullptr;
  Expression wl[gates], wr[gates], b[gates];
};

int main(int argc, char **argv) {
  const application td_lstm_256 = {
      "TD-LSTM", "trees",         "(label (label word) (label word))", "", 256, 256,
      0.05,      need_equal_sizes};
  return run<td_lstm>(td_lstm_256, argc, argv, print_bag_of_words);
}
