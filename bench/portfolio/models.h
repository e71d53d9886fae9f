// Models of the kinds that DyNet programs train, in minibatches of DyNet's batch dimension, on
// random data of fixed sizes. Each has the same layers and sizes as the class of its name in
// twins.py.
#ifndef VPPS_BENCH_PORTFOLIO_MODELS_H
#define VPPS_BENCH_PORTFOLIO_MODELS_H

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/gru.h>
#include <dynet/lstm.h>
#include <dynet/rnn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace portfolio {

using namespace dynet;

// A source of random words and numbers. Of several ranks, each gets its part of what one process
// would get for their minibatches joined.
class random_data {
public:
  random_data(unsigned rank, unsigned ranks) : rank_(rank), ranks_(ranks) {
    std::uniform_real_distribution<float> draw(0, 1);
    for (float &x : drawn_)
      x = draw(random_);
  }
  std::vector<unsigned> words(unsigned n, unsigned below) {
    std::uniform_int_distribution<unsigned> draw(0, below - 1);
    std::vector<unsigned> all(n * ranks_);
    for (unsigned &x : all)
      x = draw(random_);
    return std::vector<unsigned>(all.begin() + n * rank_, all.begin() + n * (rank_ + 1));
  }
  // To draw each takes longer than a step of a small network.
  std::vector<float> numbers(unsigned n) {
    const size_t start = random_() + size_t(n) * rank_;
    std::vector<float> part(n);
    for (size_t k = 0; k < n;) {
      const size_t at = (start + k) % drawn_.size();
      const size_t run = std::min(drawn_.size() - at, n - k);
      std::copy_n(drawn_.begin() + std::ptrdiff_t(at), run, part.begin() + std::ptrdiff_t(k));
      k += run;
    }
    return part;
  }

private:
  unsigned rank_, ranks_;
  std::mt19937 random_{1};
  std::vector<float> drawn_ = std::vector<float>(999983);
};

// A layer y = W x + b.
struct linear {
  Parameter w, b;
  linear(ParameterCollection &m, unsigned to, unsigned from)
      : w(m.add_parameters({to, from})), b(m.add_parameters({to})) {}
  Expression operator()(ComputationGraph &cg, const Expression &x) const {
    return affine_transform({parameter(cg, b), parameter(cg, w), x});
  }
  // Of each column.
  Expression columns(ComputationGraph &cg, const Expression &x) const {
    return colwise_add(parameter(cg, w) * x, parameter(cg, b));
  }
};

// An LSTM language model, if it is regularized with layer normalization and dropout.
struct language_model {
  unsigned vocabulary, length;
  float dropped;
  LookupParameter words;
  VanillaLSTMBuilder lstm;
  linear scores;

  language_model(ParameterCollection &m, unsigned vocabulary, unsigned layers, unsigned hidden,
                 unsigned length, bool regularized = false)
      : vocabulary(vocabulary), length(length), dropped(regularized ? 0.3f : 0.f),
        words(m.add_lookup_parameters(vocabulary, {hidden})),
        lstm(layers, hidden, hidden, m, regularized), scores(m, vocabulary, hidden) {
    if (regularized)
      lstm.set_dropout(dropped);
  }

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    lstm.new_graph(cg);
    lstm.start_new_sequence();
    std::vector<Expression> losses;
    std::vector<unsigned> word = data.words(batch, vocabulary);
    for (unsigned k = 0; k < length; k++) {
      Expression h = lstm.add_input(lookup(cg, words, word));
      if (dropped > 0)
        h = dropout(h, dropped);
      word = data.words(batch, vocabulary);
      losses.push_back(pickneglogsoftmax(scores(cg, h), word));
    }
    return sum_batches(sum(losses));
  }
};

// Vectors of words: which words are next to one, by negative sampling.
struct skip_gram {
  enum { width = 128, vocabulary = 100000, others = 5 };
  LookupParameter words, contexts;

  explicit skip_gram(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {width})),
        contexts(m.add_lookup_parameters(vocabulary, {width})) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    const Expression x = lookup(cg, words, data.words(batch, vocabulary));
    std::vector<Expression> losses;
    for (unsigned k = 0; k <= others; k++) {
      const Expression score = dot_product(x, lookup(cg, contexts, data.words(batch, vocabulary)));
      losses.push_back(log(1.f + exp(k == 0 ? -score : score)));
    }
    return sum_batches(sum(losses));
  }
};

// A simple recurrent network, whose last state is classified.
struct chain {
  enum { classes = 10 };
  unsigned hidden, length;
  SimpleRNNBuilder rnn;
  linear scores;

  chain(ParameterCollection &m, unsigned hidden, unsigned length)
      : hidden(hidden), length(length), rnn(1, hidden, hidden, m), scores(m, classes, hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    rnn.new_graph(cg);
    rnn.start_new_sequence();
    const Dim each({hidden}, batch);
    for (unsigned k = 0; k < length; k++)
      rnn.add_input(input(cg, each, data.numbers(hidden * batch)));
    return sum_batches(pickneglogsoftmax(scores(cg, rnn.back()), data.words(batch, classes)));
  }
};

// A multilayer perceptron.
struct perceptron {
  linear first, second, third;

  explicit perceptron(ParameterCollection &m)
      : first(m, 512, 784), second(m, 512, 512), third(m, 10, 512) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    const Expression x = input(cg, Dim({784}, batch), data.numbers(784 * batch));
    const Expression y = third(cg, rectify(second(cg, rectify(first(cg, x)))));
    return sum_batches(pickneglogsoftmax(y, data.words(batch, 10)));
  }
};

// An encoder-decoder with attention to all words.
struct attention {
  enum { hidden = 256, vocabulary = 4000, length = 20 };
  LookupParameter source, target;
  VanillaLSTMBuilder encoder, decoder;
  Parameter of_words, of_state, weights;
  linear scores;

  explicit attention(ParameterCollection &m)
      : source(m.add_lookup_parameters(vocabulary, {hidden})),
        target(m.add_lookup_parameters(vocabulary, {hidden})), encoder(1, hidden, hidden, m),
        decoder(1, 2 * hidden, hidden, m), of_words(m.add_parameters({hidden, hidden})),
        of_state(m.add_parameters({hidden, hidden})), weights(m.add_parameters({1, hidden})),
        scores(m, vocabulary, hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    encoder.new_graph(cg);
    encoder.start_new_sequence();
    std::vector<Expression> read;
    for (unsigned k = 0; k < length; k++)
      read.push_back(encoder.add_input(lookup(cg, source, data.words(batch, vocabulary))));
    const Expression encoded = concatenate_cols(read); // hidden x length
    const Expression keys = parameter(cg, of_words) * encoded;
    decoder.new_graph(cg);
    decoder.start_new_sequence();
    Expression state = read.back();
    std::vector<Expression> losses;
    std::vector<unsigned> word = data.words(batch, vocabulary);
    for (unsigned k = 0; k < length; k++) {
      const Expression query = parameter(cg, of_state) * state;
      const Expression a =
          softmax(transpose(parameter(cg, weights) * tanh(colwise_add(keys, query))));
      state = decoder.add_input(concatenate({encoded * a, lookup(cg, target, word)}));
      word = data.words(batch, vocabulary);
      losses.push_back(pickneglogsoftmax(scores(cg, state), word));
    }
    return sum_batches(sum(losses));
  }
};

// What a builder for each direction makes of each word.
template <class Builder>
std::vector<Expression> read_both_ways(ComputationGraph &cg, Builder &forth, Builder &back,
                                       const std::vector<Expression> &words) {
  const size_t n = words.size();
  std::vector<Expression> left(n), right(n), both;
  for (Builder *b : {&forth, &back}) {
    b->new_graph(cg);
    b->start_new_sequence();
  }
  for (size_t k = 0; k < n; k++) {
    left[k] = forth.add_input(words[k]);
    right[n - 1 - k] = back.add_input(words[n - 1 - k]);
  }
  for (size_t k = 0; k < n; k++)
    both.push_back(concatenate({left[k], right[k]}));
  return both;
}

// A tagger: a GRU in each direction, labels of all words.
struct gru_tagger {
  enum { hidden = 200, vocabulary = 20000, labels = 17, length = 24 };
  LookupParameter words;
  GRUBuilder forth, back;
  linear scores;

  explicit gru_tagger(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {hidden})), forth(1, hidden, hidden, m),
        back(1, hidden, hidden, m), scores(m, labels, 2 * hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> x, losses;
    for (unsigned k = 0; k < length; k++)
      x.push_back(lookup(cg, words, data.words(batch, vocabulary)));
    for (const Expression &h : read_both_ways(cg, forth, back, x))
      losses.push_back(pickneglogsoftmax(scores(cg, h), data.words(batch, labels)));
    return sum_batches(sum(losses));
  }
};

// A tagger with a conditional random field: the sum over all sequences of labels is made of
// numbers, a node for each label before each label. So its graph has many small nodes.
struct crf_tagger {
  enum { hidden = 100, vocabulary = 20000, labels = 9, length = 16 };
  LookupParameter words, transitions; // of a label, from each label
  VanillaLSTMBuilder forth, back;
  linear scores;

  explicit crf_tagger(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {hidden})),
        transitions(m.add_lookup_parameters(labels, {labels})), forth(1, hidden, hidden, m),
        back(1, hidden, hidden, m), scores(m, labels, 2 * hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> x, from, sums;
    for (unsigned k = 0; k < length; k++)
      x.push_back(lookup(cg, words, data.words(batch, vocabulary)));
    const std::vector<Expression> h = read_both_ways(cg, forth, back, x);
    for (unsigned to = 0; to < labels; to++)
      from.push_back(lookup(cg, transitions, to));
    std::vector<unsigned> last;
    Expression right;
    for (unsigned k = 0; k < length; k++) {
      const Expression score = scores(cg, h[k]);
      std::vector<Expression> now;
      for (unsigned to = 0; to < labels; to++)
        now.push_back(k == 0 ? pick(score, to) : before(sums, from[to]) + pick(score, to));
      sums = now;
      const std::vector<unsigned> label = data.words(batch, labels);
      const Expression gained = pick(score, label);
      right = k == 0 ? gained : right + gained + pick(lookup(cg, transitions, label), last);
      last = label;
    }
    return sum_batches(logsumexp(sums) - right);
  }

private:
  // The sum over the labels before one.
  static Expression before(const std::vector<Expression> &sums, const Expression &from) {
    std::vector<Expression> ways;
    for (unsigned k = 0; k < labels; k++)
      ways.push_back(sums[k] + pick(from, k));
    return logsumexp(ways);
  }
};

// A dependency parser with biaffine scores: which word is each word's head.
struct biaffine {
  enum { hidden = 200, arc = 256, vocabulary = 20000, length = 24 };
  LookupParameter words;
  VanillaLSTMBuilder forth, back;
  linear dependent, head;
  Parameter between, prior;

  explicit biaffine(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {hidden})), forth(1, hidden, hidden, m),
        back(1, hidden, hidden, m), dependent(m, arc, 2 * hidden), head(m, arc, 2 * hidden),
        between(m.add_parameters({arc, arc})), prior(m.add_parameters({1, arc})) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> x, losses;
    for (unsigned k = 0; k < length; k++)
      x.push_back(lookup(cg, words, data.words(batch, vocabulary)));
    const Expression h = concatenate_cols(read_both_ways(cg, forth, back, x));
    const Expression d = rectify(dependent.columns(cg, h)), e = rectify(head.columns(cg, h));
    // scores[i, j]: of word i as the head of word j
    const Expression scores = colwise_add(transpose(e) * (parameter(cg, between) * d),
                                          transpose(parameter(cg, prior) * e));
    for (unsigned k = 0; k < length; k++)
      losses.push_back(pickneglogsoftmax(pick(scores, k, 1), data.words(batch, length)));
    return sum_batches(sum(losses));
  }
};

// A classifier of sentences: windows of words, the strongest answer of each filter.
struct word_cnn {
  enum { embed = 128, filters = 100, vocabulary = 20000, length = 30, labels = 5 };
  LookupParameter words;
  Parameter filter[3], bias[3];
  linear scores;

  explicit word_cnn(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {embed})), scores(m, labels, 3 * filters) {
    for (unsigned k = 0; k < 3; k++) {
      filter[k] = m.add_parameters({embed, 3 + k, 1, filters});
      bias[k] = m.add_parameters({filters});
    }
  }

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> x, strongest;
    for (unsigned k = 0; k < length; k++)
      x.push_back(lookup(cg, words, data.words(batch, vocabulary)));
    const Expression image = reshape(concatenate_cols(x), Dim({embed, length, 1}, batch));
    for (unsigned k = 0; k < 3; k++) {
      const Expression y =
          conv2d(image, parameter(cg, filter[k]), parameter(cg, bias[k]), {1, 1}, true);
      const unsigned windows = length - 2 - k;
      strongest.push_back(
          reshape(maxpooling2d(rectify(y), {1, windows}, {1, 1}, true), Dim({filters}, batch)));
    }
    return sum_batches(
        pickneglogsoftmax(scores(cg, concatenate(strongest)), data.words(batch, labels)));
  }
};

// A classifier of images of 28 x 28.
struct image_cnn {
  Parameter f1, b1, f2, b2;
  linear hidden, scores;

  explicit image_cnn(ParameterCollection &m)
      : f1(m.add_parameters({5, 5, 1, 16})), b1(m.add_parameters({16})),
        f2(m.add_parameters({5, 5, 16, 32})), b2(m.add_parameters({32})),
        hidden(m, 128, 7 * 7 * 32), scores(m, 10, 128) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    const Expression x = input(cg, Dim({28, 28, 1}, batch), data.numbers(784 * batch));
    Expression y = conv2d(x, parameter(cg, f1), parameter(cg, b1), {1, 1}, false);
    y = rectify(maxpooling2d(y, {2, 2}, {2, 2}, true));
    y = conv2d(y, parameter(cg, f2), parameter(cg, b2), {1, 1}, false);
    y = rectify(maxpooling2d(y, {2, 2}, {2, 2}, true));
    y = rectify(hidden(cg, reshape(y, Dim({7 * 7 * 32}, batch))));
    return sum_batches(pickneglogsoftmax(scores(cg, y), data.words(batch, 10)));
  }
};

// A Transformer's encoder of two layers that predicts each word.
struct transformer {
  enum { width = 256, heads = 4, inner = 1024, layers = 2, vocabulary = 4000, length = 32 };
  struct layer {
    linear q, k, v, o, in, out;
    Parameter g1, b1, g2, b2;
    explicit layer(ParameterCollection &m)
        : q(m, width, width), k(m, width, width), v(m, width, width), o(m, width, width),
          in(m, inner, width), out(m, width, inner), g1(m.add_parameters({width})),
          b1(m.add_parameters({width})), g2(m.add_parameters({width})),
          b2(m.add_parameters({width})) {}
  };
  LookupParameter words;
  Parameter positions;
  std::vector<layer> stack;
  linear scores;

  explicit transformer(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {width})),
        positions(m.add_parameters({width, length})), scores(m, vocabulary, width) {
    for (unsigned k = 0; k < layers; k++)
      stack.push_back(layer(m));
  }

  // Each column has mean 0 and variance 1, then gain and bias.
  static Expression normed(ComputationGraph &cg, const Expression &x, const Parameter &g,
                           const Parameter &b) {
    const Dim row({1, length}, x.dim().bd);
    const Expression centred = x - reshape(mean_dim(x, {0}), row);
    const Expression variance = reshape(mean_dim(square(centred), {0}), row);
    const Expression scaled = cdiv(centred, sqrt(variance + 1e-5f));
    return colwise_add(cmult(scaled, parameter(cg, g)), parameter(cg, b));
  }

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    std::vector<Expression> columns;
    for (unsigned k = 0; k < length; k++)
      columns.push_back(lookup(cg, words, data.words(batch, vocabulary)));
    Expression x = concatenate_cols(columns) + parameter(cg, positions);
    const unsigned each = width / heads;
    for (layer &l : stack) {
      const Expression q = l.q.columns(cg, x), k = l.k.columns(cg, x), v = l.v.columns(cg, x);
      std::vector<Expression> read;
      for (unsigned h = 0; h < heads; h++) {
        const unsigned from = h * each, to = from + each;
        const Expression a = softmax(transpose(pick_range(k, from, to)) * pick_range(q, from, to) /
                                     std::sqrt(float(each)));
        read.push_back(pick_range(v, from, to) * a);
      }
      x = normed(cg, x + l.o.columns(cg, concatenate(read)), l.g1, l.b1);
      x = normed(cg, x + l.out.columns(cg, rectify(l.in.columns(cg, x))), l.g2, l.b2);
    }
    // Columns become batch elements.
    const Expression flat = reshape(x, Dim({width}, length * batch));
    return sum_batches(pickneglogsoftmax(scores(cg, flat), data.words(length * batch, vocabulary)));
  }
};

// Whether two sentences mean the same: one encoder reads both.
struct siamese {
  enum { hidden = 256, vocabulary = 20000, length = 20 };
  LookupParameter words;
  VanillaLSTMBuilder lstm;

  explicit siamese(ParameterCollection &m)
      : words(m.add_lookup_parameters(vocabulary, {hidden})), lstm(1, hidden, hidden, m) {}

  Expression read(ComputationGraph &cg, random_data &data, unsigned batch) {
    lstm.start_new_sequence();
    for (unsigned k = 0; k < length; k++)
      lstm.add_input(lookup(cg, words, data.words(batch, vocabulary)));
    return lstm.back();
  }

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    lstm.new_graph(cg);
    const Expression left = read(cg, data, batch), right = read(cg, data, batch);
    const Expression same = input(cg, Dim({1}, batch), data.numbers(batch));
    return sum_batches(square(exp(-l1_distance(left, right)) - same));
  }
};

// A variational autoencoder of images.
struct autoencoder {
  enum { pixels = 784, hidden = 400, code = 20 };
  linear in, mean, spread, out, picture;

  explicit autoencoder(ParameterCollection &m)
      : in(m, hidden, pixels), mean(m, code, hidden), spread(m, code, hidden), out(m, hidden, code),
        picture(m, pixels, hidden) {}

  Expression loss(ComputationGraph &cg, random_data &data, unsigned batch) {
    const Expression x = input(cg, Dim({pixels}, batch), data.numbers(pixels * batch));
    const Expression h = rectify(in(cg, x));
    const Expression mu = mean(cg, h), log_variance = spread(cg, h);
    const Expression noise = random_normal(cg, Dim({code}, batch));
    const Expression z = mu + cmult(exp(log_variance * 0.5f), noise);
    const Expression y = picture(cg, rectify(out(cg, z)));
    const Expression errors = sum_elems(log(exp(y) + 1.f) - cmult(x, y)); // of logistic(y)
    const Expression divergence =
        0.5f * sum_elems(square(mu) + exp(log_variance) - log_variance - 1.f);
    return sum_batches(errors + divergence);
  }
};

} // namespace portfolio

#endif
