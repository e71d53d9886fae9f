// Prints the words that reach the C ABI for a few programs. It is compiled twice, against
// libvpps's own DyNet headers and against an installed DyNet with the adapter; what the two
// print must be the same.
//
//   words TREES     TREES: a file in the Stanford treebank's format
#include "fake_engine.h"

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/lstm.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <cstdio>
#include <iostream>
#include <set>

#include "../../../bench/tree_lstm.h"

using namespace dynet;
typedef std::vector<Expression> list;
typedef std::vector<unsigned> numbers;

namespace {

std::set<uint32_t> met; // codes of the graphs' operations

void note_operations() {
  int arguments[256] = {}, attributes[256] = {};
#define COUNTS(code, NAME, name, args, attrs) arguments[code] = args, attributes[code] = attrs;
  VPPS_OPS(COUNTS)
#undef COUNTS
  for (size_t at = 0; at < state.words.size();) {
    const uint32_t code = state.words[at] & 255;
    met.insert(code);
    const int n = arguments[code];
    at += 1 + (n < 0 ? 1 + state.words[at + 1] : uint32_t(n)) + uint32_t(attributes[code]);
  }
}

bool all_met() {
  bool all = true;
#define MET(code, NAME, name, args, attrs)                                                         \
  if (!met.count(code)) {                                                                          \
    all = false;                                                                                   \
    std::cerr << "no graph has the operation " name "\n";                                          \
  }
  VPPS_OPS(MET)
#undef MET
  return all;
}

void print(const char *what) {
  note_operations();
  std::printf("%s: %u nodes\n words", what, state.nodes);
  for (uint32_t w : state.words)
    std::printf(" %u", w);
  std::printf("\n dims");
  for (const vpps_dim &d : state.dims) {
    std::printf(" {");
    for (uint32_t k = 0; k < d.nd; ++k)
      std::printf(k ? ",%u" : "%u", d.d[k]);
    std::printf("X%u}", d.bd);
  }
  std::printf("\n inputs");
  for (uint32_t w : state.inputs)
    std::printf(" %u", w);
  std::printf("\n");
}

void trees(const std::vector<tree> &all, unsigned words) {
  ParameterCollection m;
  tree_lstm model(m, words, 8, 16);
  vpps::handle hndl(m);
  for (size_t first = 0; first + 3 <= all.size() && first < 60; first += 3) {
    ComputationGraph cg;
    hndl.fb(m, cg, model.loss(cg, {&all[first], &all[first + 1], &all[first + 2]}));
    print("trees");
  }
}

void tagger(const std::vector<tree> &all, unsigned words) {
  ParameterCollection m;
  LookupParameter E = m.add_lookup_parameters(words, {8});
  VanillaLSTMBuilder forwards(1, 8, 6, m), backwards(1, 8, 6, m);
  Parameter W = m.add_parameters({5, 12}), b = m.add_parameters({5});
  SimpleSGDTrainer trainer(m);
  vpps::handle hndl(m, trainer);
  for (size_t k = 0; k < 20 && k < all.size(); ++k) {
    ComputationGraph cg;
    if (k % 2 == 0) {
      forwards.set_dropout(0.25f, 0.5f);
      backwards.disable_dropout();
    }
    forwards.new_graph(cg);
    backwards.new_graph(cg);
    forwards.start_new_sequence();
    backwards.start_new_sequence();
    Expression w = parameter(cg, W), bias = parameter(cg, b);
    list x, h, losses;
    numbers labels;
    for (const tree_node &n : all[k].nodes)
      if (n.is_word()) {
        x.push_back(noise(lookup(cg, E, n.word_id), 0.1f));
        labels.push_back(n.label);
      }
    for (const Expression &e : x)
      h.push_back(forwards.add_input(e));
    for (size_t i = x.size(); i-- > 0;) {
      const Expression both = concatenate({h[i], backwards.add_input(x[i])});
      losses.push_back(pickneglogsoftmax(affine_transform({bias, w, both}), labels[i]));
    }
    hndl.fb(m, cg, sum(losses));
    print("tagger");
  }
}

// Every operation of the table at least once, and every way to give numbers.
void operations() {
  ParameterCollection m;
  Parameter W = m.add_parameters({4, 3}), b = m.add_parameters({4}), s = m.add_parameters({4, 4});
  ParameterCollection sub = m.add_subcollection("sub");
  LookupParameter E = sub.add_lookup_parameters(9, {3});
  Parameter G = sub.add_parameters({16, 3}), H = sub.add_parameters({16, 4}),
            c = sub.add_parameters({16});
  vpps::handle hndl(m);
  float number = 0.75f;
  std::vector<float> some = {1, 2, 3, 4, 5, 6};
  unsigned index = 2;
  numbers two = {1, 2};
  for (int round = 0; round < 2; ++round) {
    number += 1;
    index = 1;
    two[0] = 0;
    ComputationGraph cg;
    Expression w = parameter(cg, W), bias = parameter(cg, b),
               square_matrix = const_parameter(cg, s);
    Expression x = input(cg, {3}, {1, 2, 3}), xb = input(cg, Dim({3}, 2), some);
    Expression p = input(cg, Dim({3}, 2), &some), one = input(cg, 2.5f), other = input(cg, &number);
    Expression sparse = input(cg, Dim({3}, 2), numbers({0, 4}), {1.f, 2.f}, 0.5f);
    Expression hot = one_hot(cg, 3, 1), hots = one_hot(cg, 3, numbers({0, 2}));
    list all = {x,
                xb,
                p,
                sparse,
                hot,
                hots,
                lookup(cg, E, 1u),
                lookup(cg, E, &index),
                lookup(cg, E, numbers({3, 4})),
                lookup(cg, E, &two),
                lookup(cg, E, numbers({5})),
                const_lookup(cg, E, 6u),
                const_lookup(cg, E, &index),
                const_lookup(cg, E, numbers({7, 8})),
                const_lookup(cg, E, &two)};
    Expression table = parameter(cg, E), still = const_parameter(cg, E);
    all.push_back(zeros(cg, {3}));
    all.push_back(ones(cg, {3}));
    all.push_back(constant(cg, Dim({3}, 2), 0.1f));
    all.push_back(random_normal(cg, {3}));
    all.push_back(random_bernoulli(cg, {3}, 0.3f, 2.f));
    all.push_back(random_uniform(cg, {3}, -1, 1));
    all.push_back(random_gumbel(cg, {3}));
    Expression total = sum_batches(sum(all));
    total = total + sum_cols(table) - sum_cols(still) / 2.f;
    Expression v = affine_transform({bias, w, x}),
               vb = affine_transform({bias, w, xb, square_matrix, v});
    for (const Expression &e : {tanh(v),
                                logistic(v),
                                rectify(v),
                                exp(v),
                                log(v + 9.f),
                                sqrt(exp(v)),
                                square(v),
                                abs(v),
                                -v,
                                v + 1.f,
                                1.f + v,
                                v - 1.f,
                                2.f - v,
                                v * 3.f,
                                dropout(v, 0.5f),
                                noise(v, 0.1f),
                                nobackprop(v),
                                flip_gradient(v),
                                scale_gradient(v, 0.5f),
                                cube(v),
                                sin(v),
                                cos(v),
                                tan(v),
                                asin(v),
                                acos(v),
                                atan(v),
                                sinh(v),
                                cosh(v),
                                asinh(v),
                                acosh(v),
                                atanh(v),
                                erf(v),
                                lgamma(v),
                                log_sigmoid(v),
                                elu(v, 0.5f),
                                selu(v),
                                silu(v, 2.f),
                                softsign(v),
                                dynet::round(v, zero_gradient),
                                ceil(v, zero_gradient),
                                floor(v, zero_gradient),
                                reshape(reshape(v, {2, 2}), {4}),
                                v + bias,
                                v - bias,
                                cmult(v, bias),
                                cdiv(v, exp(bias)),
                                v / exp(bias),
                                pow(exp(v), one),
                                min(v, bias),
                                max(v, bias),
                                max({v, bias}),
                                average({v, bias}),
                                square_matrix * v,
                                transpose(transpose(v)),
                                softmax(v),
                                log_softmax(v),
                                log_softmax(v, numbers({0, 2})),
                                concatenate({pick_range(v, 0, 2), pick_range(v, 2, 4)}),
                                pick(w, 1u, 1),
                                pick(w, &index, 1),
                                sum_dim(w, {1}),
                                mean_dim(w, {1}, false),
                                moment_dim(w, {1}, 2, false, 5),
                                average_cols(w)})
      v = sum({v, e});
    list scalars;
    scalars = {sum_elems(v),
               mean_elems(v),
               moment_elems(w, 3),
               dot_product(v, bias),
               squared_distance(v, bias),
               squared_norm(v),
               l2_norm(v),
               one,
               other,
               sum_elems(colwise_add(w, bias)),
               pick(v, 1u),
               pick(v, &index),
               sum_batches(pick(vb, numbers({0, 3}))),
               sum_batches(pick(vb, &two)),
               sum_elems(pick_batch_elem(vb, 1u)),
               sum_elems(pick_batch_elem(vb, &index)),
               sum_elems(sum_batches(pick_batch_elems(vb, numbers({1, 0, 1})))),
               sum_elems(sum_batches(pick_batch_elems(vb, &two))),
               sum_elems(mean_batches(vb)),
               sum_elems(moment_batches(vb, 2)),
               sum_elems(sum_rows(w)),
               sum_batches(mean_dim(vb, {0}, false)),
               pickneglogsoftmax(v, 3u),
               pickneglogsoftmax(v, &index),
               sum_batches(pickneglogsoftmax(vb, numbers({0, 1}))),
               sum_batches(pickneglogsoftmax(vb, &two)),
               hinge(v, 1u),
               hinge(v, &index, 2.f),
               sum_batches(hinge(vb, numbers({2, 0}), 0.5f)),
               sum_batches(hinge(vb, &two)),
               binary_log_loss(logistic(v), logistic(bias)),
               sum_elems(sum_batches(concatenate_to_batch({v, vb}))),
               sum_elems(concatenate_cols({v, bias})),
               sum_elems(concatenate({w, w}, 1)),
               std_elems(w),
               sum_elems(std_batches(vb)),
               sum_elems(std_dim(w, {1})),
               sum_elems(cumsum(w, 1)),
               sum_elems(max_dim(w, 1)),
               sum_elems(min_dim(w)),
               sum_elems(argmax(v, zero_gradient)),
               sum_elems(argmax(v, straight_through_gradient)),
               sum_elems(logsumexp({v, bias})),
               sum_elems(logsumexp_dim(w, 0)),
               sum_elems(kmax_pooling(w, 2)),
               sum_elems(kmh_ngram(w, 2)),
               sum_elems(fold_rows(w)),
               sum_elems(filter1d_narrow(w, w)),
               sum_elems(select_rows(w, numbers({3, 0}))),
               sum_elems(select_rows(w, &two)),
               sum_elems(select_cols(w, numbers({2, 0}))),
               sum_elems(select_cols(w, &two)),
               sum_elems(strided_select(w, {2, 1}, {1}, {4})),
               sum_elems(sum_batches(strided_select(vb, {1, 2}))),
               sum_elems(conv2d(w, reshape(w, {2, 2, 1, 3}), {1, 1})),
               sum_elems(conv2d(w, reshape(w, {2, 2, 1, 3}), x, {1, 2}, false)),
               sum_elems(maxpooling2d(w, {2, 2}, {2, 1})),
               sum_elems(contract3d_1d(reshape(w, {2, 2, 3}), x)),
               sum_elems(contract3d_1d_1d(reshape(w, {2, 2, 3}), x, pick_range(v, 0, 2))),
               sum_elems(circ_conv(v, bias)),
               sum_elems(circ_corr(v, bias)),
               sum_elems(inverse(square_matrix)),
               logdet(square_matrix),
               trace_of_product(w, w),
               sum_elems(weight_norm(v, one)),
               sum_elems(layer_norm(v, bias, bias)),
               l1_distance(v, bias),
               huber_distance(v, bias, 0.5f),
               pairwise_rank_loss(one, other, 0.5f),
               poisson_loss(one, 3u),
               poisson_loss(one, &index),
               sum_elems(hinge_dim(w, numbers({0, 1, 3}))),
               sum_elems(hinge_dim(w, std::vector<numbers>({{0, 1, 3}}), 0, 2.f)),
               sum_elems(sparsemax(v)),
               sparsemax_loss(v, numbers({1, 2})),
               sparsemax_loss(v, &two),
               sum_elems(constrained_softmax(v, exp(bias))),
               sum_elems(dropout_dim(w, 1, 0.5f)),
               sum_elems(sum_batches(dropout_batch(vb, 0.5f))),
               sum_elems(block_dropout(v, 0.5f)),
               sum_elems(softmax(w, 1)),
               sum_elems(total)};
    Expression Wx = parameter(cg, G), Wh = parameter(cg, H), bc = parameter(cg, c);
    Expression gates = vanilla_lstm_gates(x, v, Wx, Wh, bc);
    Expression masked = vanilla_lstm_gates_dropout(x, v, Wx, Wh, bc, ones(cg, {3}), ones(cg, {4}));
    Expression cell = vanilla_lstm_c(v, gates), out = vanilla_lstm_h(cell, masked);
    scalars.push_back(sum_elems(out));
    hndl.fb(m, cg, sum(scalars));
    print("operations");
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::cerr << "words: name a file of trees\n";
    return 1;
  }
  initialize(argc, argv);
  std::vector<tree> all = read_trees(argv[1]);
  Dict dict;
  count_words(all, 1, dict);
  number_words(all, dict);
  operations();
  trees(all, unsigned(dict.size()));
  tagger(all, unsigned(dict.size()));
  return all_met() ? 0 : 1;
}
