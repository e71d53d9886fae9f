// Models whose graph is another one for each example, on random data. An example is a part of the
// graph of its own: there is no minibatch dimension. Those with a class in twins.py have the same
// layers and sizes as it.
#ifndef VPPS_BENCH_PORTFOLIO_DYNAMIC_H
#define VPPS_BENCH_PORTFOLIO_DYNAMIC_H

#include "../tree_lstm.h"
#include "models.h"

namespace portfolio {

// A Tree-LSTM of random binary trees.
struct trees {
  enum { vocabulary = 10000 };
  unsigned leaves;
  tree_lstm model;

  trees(ParameterCollection &m, unsigned hidden, unsigned leaves)
      : leaves(leaves), model(m, vocabulary, hidden, hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<tree> all(batch);
    std::vector<const tree *> these;
    for (tree &t : all) {
      t = random_tree(data);
      these.push_back(&t);
    }
    return model.loss(cg, these);
  }

private:
  // Joins neighbours at random places until one node is left.
  tree random_tree(random_data &data) const {
    tree t;
    std::vector<int> open;
    const std::vector<unsigned> words = data.words(leaves, vocabulary);
    const std::vector<float> places = data.numbers(leaves);
    t.nodes.resize(2 * leaves - 1);
    for (unsigned k = 0; k < leaves; k++) {
      t.nodes[k].word_id = words[k];
      open.push_back(int(k));
    }
    for (unsigned k = leaves; k < 2 * leaves - 1; k++) {
      const size_t at = size_t(places[k - leaves] * float(open.size() - 1));
      t.nodes[k].left = open[at];
      t.nodes[k].right = open[at + 1];
      open[at] = int(k);
      open.erase(open.begin() + std::ptrdiff_t(at) + 1);
    }
    for (tree_node &n : t.nodes)
      n.label = n.word_id % tree_labels;
    return t;
  }
};

// A transition-based parser: LSTMs of the stack, of the words not read yet and of the actions so
// far. An action takes a word to the stack, or joins its two uppermost.
struct stack_parser {
  enum { hidden = 128, vocabulary = 20000, actions = 3, length = 20 };
  LookupParameter words, names;
  VanillaLSTMBuilder stack, rest, history;
  linear state, scores, joined[2];

  explicit stack_parser(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {hidden})),
        names(m.add_lookup_parameters(actions, {hidden})), stack(1, hidden, hidden, m),
        rest(1, hidden, hidden, m), history(1, hidden, hidden, m), state(m, hidden, 3 * hidden),
        scores(m, actions, hidden), joined{{m, hidden, 2 * hidden}, {m, hidden, 2 * hidden}} {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    for (VanillaLSTMBuilder *b : {&stack, &rest, &history})
      b->new_graph(cg);
    std::vector<Expression> losses;
    for (unsigned k = 0; k < batch; k++)
      parse(cg, data, losses);
    return sum(losses);
  }

private:
  struct entry {
    Expression meaning;
    RNNPointer state; // of the stack with it
  };

  void parse(ComputationGraph &cg, random_data &data, std::vector<Expression> &losses) {
    const std::vector<unsigned> word = data.words(length, vocabulary);
    const std::vector<float> choice = data.numbers(2 * length);
    std::vector<Expression> x;
    for (unsigned w : word)
      x.push_back(lookup(cg, words, w));
    rest.start_new_sequence();
    std::vector<RNNPointer> unread = {rest.state()}; // with 0, 1, ... words left
    for (unsigned k = length; k-- > 0;) {
      rest.add_input(x[k]);
      unread.push_back(rest.state());
    }
    for (VanillaLSTMBuilder *b : {&stack, &history}) {
      b->start_new_sequence();
      b->add_input(lookup(cg, names, 0u)); // so that there is a state before the first word
    }
    std::vector<entry> open = {{lookup(cg, names, 0u), stack.state()}};
    unsigned left = length;
    for (unsigned step = 0; step < 2 * length - 1; step++) {
      const bool must = open.size()<3, may = left> 0;
      const unsigned action = must || (may && choice[step] < .5f) ? 0 : choice[step] < .75f ? 1 : 2;
      const Expression seen = concatenate(
          {stack.get_h(open.back().state).back(), last(cg, rest, unread[left]), history.back()});
      losses.push_back(pickneglogsoftmax(scores(cg, tanh(state(cg, seen))), action));
      history.add_input(lookup(cg, names, action));
      Expression next;
      if (action == 0) {
        next = x[length - left];
        left--;
      } else {
        const Expression right = open.back().meaning;
        open.pop_back();
        const Expression other = open.back().meaning;
        open.pop_back();
        next = tanh(joined[action - 1](cg, concatenate({other, right})));
      }
      stack.add_input(open.back().state, next);
      open.push_back({next, stack.state()});
    }
  }

  // The output of a state; zeros of the one before all words.
  static Expression last(ComputationGraph &cg, VanillaLSTMBuilder &b, RNNPointer at) {
    return at < 0 ? zeros(cg, {hidden}) : b.get_h(at).back();
  }
};

// A gated graph network: for some rounds each node of a random graph adds up messages by the kinds
// of its edges, and a GRU takes them in. The sum of what all nodes say is classified.
struct graph_network {
  enum { hidden = 128, kinds = 3, nodes = 24, edges = 48, rounds = 4, symbols = 100, classes = 10 };
  LookupParameter symbol;
  Parameter message[kinds], of_sum[3], of_node[3], bias[3];
  linear weight, word, scores;

  explicit graph_network(ParameterCollection &m)
      : symbol(m.add_lookup_parameters(symbols, {hidden})), weight(m, hidden, 2 * hidden),
        word(m, hidden, 2 * hidden), scores(m, classes, hidden) {
    for (Parameter &p : message)
      p = m.add_parameters({hidden, hidden});
    for (unsigned k = 0; k < 3; k++) {
      of_sum[k] = m.add_parameters({hidden, hidden});
      of_node[k] = m.add_parameters({hidden, hidden});
      bias[k] = m.add_parameters({hidden});
    }
  }

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> losses;
    for (unsigned k = 0; k < batch; k++)
      losses.push_back(pickneglogsoftmax(scores(cg, read(cg, data)), data.words(1, classes)[0]));
    return sum(losses);
  }

private:
  Expression gate(ComputationGraph &cg, unsigned k, const Expression &sum,
                  const Expression &node) const {
    return affine_transform(
        {parameter(cg, bias[k]), parameter(cg, of_sum[k]), sum, parameter(cg, of_node[k]), node});
  }

  Expression read(ComputationGraph &cg, random_data &data) const {
    const std::vector<unsigned> from = data.words(edges, nodes), kind = data.words(edges, kinds);
    std::vector<Expression> first, h;
    for (unsigned s : data.words(nodes, symbols))
      first.push_back(lookup(cg, symbol, s));
    h = first;
    for (unsigned round = 0; round < rounds; round++) {
      std::vector<std::vector<Expression>> read(nodes);
      for (unsigned e = 0; e < edges; e++) // two edges end at each node
        read[e % nodes].push_back(parameter(cg, message[kind[e]]) * h[from[e]]);
      std::vector<Expression> next;
      for (unsigned n = 0; n < nodes; n++) {
        const Expression all = sum(read[n]);
        const Expression reset = logistic(gate(cg, 0, all, h[n]));
        const Expression update = logistic(gate(cg, 1, all, h[n]));
        const Expression fresh = tanh(gate(cg, 2, all, cmult(reset, h[n])));
        next.push_back(cmult(1.f - update, h[n]) + cmult(update, fresh));
      }
      h = next;
    }
    std::vector<Expression> said;
    for (unsigned n = 0; n < nodes; n++) {
      const Expression both = concatenate({h[n], first[n]});
      said.push_back(cmult(logistic(weight(cg, both)), tanh(word(cg, both))));
    }
    return sum(said);
  }
};

} // namespace portfolio

#endif
