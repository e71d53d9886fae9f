// What the front-end records: the exact words of a small program, DyNet's node counts
// and order, rejected shapes, pointers read anew, and what clear and revert send.
#include "fake_engine.h"

#include "check.h"

#include <cstdlib>
#include <new>
#include <set>

#include "dynet/expr.h"
#include "dynet/lstm.h"
#include "dynet/training.h"
#include "ops.h"
#include "vpps/vpps.hpp"

using namespace dynet;
typedef std::vector<uint32_t> Words;

static uint32_t bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
static std::ostream &operator<<(std::ostream &os, const Words &w) {
  for (uint32_t x : w)
    os << x << ' ';
  return os;
}
static bool operator==(const vpps_dim &a, const Dim &b) {
  return a.nd == b.nd && a.bd == b.bd && std::equal(a.d, a.d + a.nd, b.d);
}

TEST(words_of_a_small_program) {
  ParameterCollection m;
  Parameter W = m.add_parameters({2, 3}), b = m.add_parameters({2});
  LookupParameter E = m.add_lookup_parameters(7, {3});
  ComputationGraph cg;
  Expression x = lookup(cg, E, 5u);
  Expression w = parameter(cg, W), c = parameter(cg, b);
  Expression y = tanh(affine_transform({c, w, x}));
  Expression loss = pickneglogsoftmax(y + 2.f, 1u);
  EQUAL(loss.i, 6u);
  cg.forward(loss);
  Words expected = {VPPS_OP_LOOKUP_NODE,
                    E.p.unexposed()->id,
                    0, // its row number is the first input word
                    VPPS_OP_PARAMETER_NODE | 1u << 8,
                    W.p.unexposed()->id,
                    VPPS_OP_PARAMETER_NODE | 2u << 8,
                    b.p.unexposed()->id,
                    VPPS_OP_AFFINE_TRANSFORM | 2u << 8,
                    3,
                    2,
                    1,
                    0,
                    VPPS_OP_TANH | 2u << 8,
                    3,
                    VPPS_OP_CONSTANT_PLUS_X | 2u << 8,
                    4,
                    bits(2.f),
                    VPPS_OP_PICK_NEG_LOG_SOFTMAX | 3u << 8,
                    5,
                    1};
  // All is missing, so the call for the value sends and evaluates them.
  EQUAL(state.calls.back(), "value");
  EQUAL(state.words, expected);
  EQUAL(state.inputs, (Words{5, 1}));
  EQUAL(state.nodes, 7u);
  CHECK(state.dims.size() == 4 && state.dims[0] == Dim({3}) && state.dims[1] == Dim({2, 3}) &&
        state.dims[2] == Dim({2}) && state.dims[3] == Dim({1}));
  cg.forward(
      loss); // forward evaluates anew; the call for the value, which follows, has nothing new
  EQUAL(state.calls[state.calls.size() - 2], "forward");
  EQUAL(state.words, Words());
  cg.clear();
  EQUAL(state.calls.back(), "truncate 0");
  // The same program again, in the same graph: the dims are there already.
  x = lookup(cg, E, 5u);
  w = parameter(cg, W), c = parameter(cg, b);
  loss = pickneglogsoftmax(tanh(affine_transform({c, w, x})) + 2.f, 1u);
  cg.incremental_forward(loss);
  EQUAL(state.words, expected);
  EQUAL(state.new_dims, 0u);
  EQUAL(state.inputs, (Words{5, 1}));
}

TEST(only_what_is_new_is_sent) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1.f, 2.f});
  x.value();
  EQUAL(state.new_nodes, 1u);
  Expression y = tanh(x), z = exp(y);
  z.value();
  EQUAL(state.words, (Words{VPPS_OP_TANH, 0, VPPS_OP_EXP, 1}));
  EQUAL(state.new_dims, 0u);
  EQUAL(state.inputs, (Words{bits(1.f), bits(2.f)}));
  y.value();
  EQUAL(state.words, Words());
}

TEST(words_stay_pending_when_a_call_fails) {
  ComputationGraph cg;
  Expression y = tanh(input(cg, 1.f));
  state.fail_next = VPPS_ERR_GRAPH;
  THROWS(std::invalid_argument, "asked to fail", cg.forward(y));
  state.fail_next = VPPS_ERR_DEVICE;
  THROWS(std::runtime_error, "asked to fail", cg.forward(y));
  state.fail_next = VPPS_ERR_MEMORY;
  THROWS(std::bad_alloc, "asked to fail", cg.forward(y));
  y.value();
  EQUAL(state.new_nodes, 2u);
}

TEST(operators_make_dynets_nodes) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}), y = input(cg, {2}, {3, 4});
  EQUAL((x + y).i, 2u);
  EQUAL((x - y).i, 4u); // Negate, CwiseSum
  CHECK(cg.nodes[3]->name == "Negate" && cg.nodes[4]->name == "CwiseSum");
  EQUAL((2.f - x).i, 5u);
  EQUAL((x - 2.f).i, 7u); // ConstantMinusX, Negate
  CHECK(cg.nodes[6]->name == "ConstantMinusX" && cg.nodes[7]->name == "Negate");
  EQUAL((x * 2.f).i, 8u);
  EQUAL((x / 2.f).i, 9u);
  EQUAL((x / y).i, 10u);
  CHECK(cg.nodes[10]->name == "CwiseQuotient");
  EQUAL(mean_elems(x).i, 11u);
  CHECK(cg.nodes[11]->name == "MomentDimension");
  CHECK(cg.nodes[11]->args == std::vector<VariableIndex>{0});
  EQUAL(cg.nodes.size(), 12u);
}

TEST(lstm_steps_have_13_and_15_nodes) {
  ParameterCollection m;
  VanillaLSTMBuilder lstm(1, 3, 4, m);
  EQUAL(lstm.params[0][0].get_fullname(), "/vanilla-lstm-builder/_0");
  EQUAL(lstm.params[0][1].get_fullname(), "/vanilla-lstm-builder/_1");
  ComputationGraph cg;
  Expression x = input(cg, {3}, {1, 2, 3});
  THROWS(std::invalid_argument, "State transition error", lstm.add_input(x));
  lstm.new_graph(cg);
  lstm.start_new_sequence();
  size_t before = cg.nodes.size();
  Expression h = lstm.add_input(x);
  EQUAL(cg.nodes.size() - before, 13u);
  before = cg.nodes.size();
  h = lstm.add_input(x);
  EQUAL(cg.nodes.size() - before, 15u);
  const char *names[] = {"AffineTransform", "PickRange",
                         "PickRange",       "PickRange",
                         "PickRange",       "LogisticSigmoid",
                         "ConstantPlusX",   "LogisticSigmoid",
                         "LogisticSigmoid", "Tanh",
                         "CwiseMultiply",   "CwiseMultiply",
                         "CwiseSum",        "Tanh",
                         "CwiseMultiply"};
  for (size_t i = 0; i < 15; ++i)
    EQUAL(cg.nodes[before + i]->name, names[i]);
  const Node &sum = *cg.nodes[before + 12];
  EQUAL(sum.args[0], before + 11); // f*c, then i*g
  EQUAL(sum.args[1], before + 10);
  EQUAL(h.dim(), Dim({4}));
  EQUAL(lstm.final_s().size(), 2u);
  EQUAL(lstm.state(), 1);
  lstm.rewind_one_step();
  EQUAL(lstm.state(), 0);
  lstm.set_dropout(0.5f);
  lstm.start_new_sequence();
  before = cg.nodes.size();
  lstm.add_input(x);
  EQUAL(cg.nodes.size() - before, 2u + 13u + 1u); // two masks, one used at first
  before = cg.nodes.size();
  lstm.add_input(x);
  EQUAL(cg.nodes.size() - before, 17u);
}

TEST(wrong_shapes_are_refused_and_leave_the_graph) {
  ParameterCollection m;
  ComputationGraph cg;
  Expression x = input(cg, {3}, {1, 2, 3}), y = input(cg, {4}, {1, 2, 3, 4});
  Expression W = input(cg, {3, 4}, std::vector<float>(12)), xs = zeros(cg, Dim({3}, 2));
  size_t before = cg.nodes.size();
  THROWS(std::invalid_argument, "CwiseSum", x + y);
  THROWS(std::invalid_argument, "{3} {4}", x + y);
  THROWS(std::invalid_argument, "CwiseSum", x - y);
  THROWS(std::invalid_argument, "MatrixMultiply", W * x);
  THROWS(std::invalid_argument, "odd number", affine_transform({x, W}));
  THROWS(std::invalid_argument, "Concatenate", concatenate({W, y}, 1u + 1u));
  THROWS(std::invalid_argument, "at least one", sum(std::vector<Expression>()));
  THROWS(std::invalid_argument, "Reshape", reshape(x, {2, 2}));
  THROWS(std::invalid_argument, "one for each", pickneglogsoftmax(xs, 1u));
  THROWS(std::invalid_argument, "one for each", pickneglogsoftmax(xs, std::vector<unsigned>{1}));
  THROWS(std::invalid_argument, "one for each", pick(xs, std::vector<unsigned>{1}));
  THROWS(std::invalid_argument, "out of range", pick(x, 0u, 1u));
  THROWS(std::invalid_argument, "arguments", max({x, x, x}));
  THROWS(std::invalid_argument, "ids", input(cg, {3}, {0u, 1u}, {1.f}));
  THROWS(std::invalid_argument, "elements", input(cg, {3}, std::vector<float>{1.f}));
  THROWS(std::invalid_argument, "empty or too large", zeros(cg, {0}));
  THROWS(std::invalid_argument, "empty or too large", zeros(cg, {65536, 65536}));
  THROWS(std::invalid_argument, "PickElement", pick(x, std::vector<unsigned>()));
  THROWS(std::invalid_argument, "null",
         lookup(cg, m.add_lookup_parameters(2, {2}), static_cast<const unsigned *>(nullptr)));
  THROWS(std::invalid_argument, "empty", parameter(cg, Parameter()));
  THROWS(std::invalid_argument, "scalar", cg.backward(x));
  EQUAL(cg.nodes.size(), before);
  x.value(); // the graph is as good as before
  EQUAL(state.nodes, before);
}

TEST(every_operation_is_recorded_as_the_decoder_reads_it) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2, 3});
  LookupParameter E = m.add_lookup_parameters(7, {3});
  ComputationGraph cg;
  Expression x = input(cg, {3}, {1, 2, 3}), s = input(cg, 2.f), W = parameter(cg, p);
  Expression xb = lookup(cg, E, {1u, 2u}), A = zeros(cg, {3, 2}), v = ones(cg, {2});
  std::vector<Expression> all = {
      const_parameter(cg, p),
      parameter(cg, E),
      const_parameter(cg, E),
      const_lookup(cg, E, 1u),
      constant(cg, {2}, 3.f),
      random_normal(cg, {2}),
      random_bernoulli(cg, {2}, 0.5f),
      random_uniform(cg, {2}, 0.f, 1.f),
      one_hot(cg, 3, 1u),
      -x,
      x + x,
      x + xb,
      x + 1.f,
      1.f + x,
      x - xb,
      1.f - x,
      x - 1.f,
      W * x,
      W * xb,
      W * A,
      x * 2.f,
      2.f * x,
      x / 2.f,
      x / s,
      affine_transform({v, W, x}),
      affine_transform({v, W, xb, W, x}),
      sum({x, xb, x}),
      average({x, x}),
      cmult(x, xb),
      cdiv(xb, x),
      colwise_add(A, x),
      pow(x, s),
      min(x, x),
      max(x, x),
      max({x, x}),
      sqrt(x),
      abs(x),
      tanh(x),
      exp(x),
      square(x),
      log(x),
      logistic(x),
      rectify(x),
      sum_elems(xb),
      moment_elems(A, 2),
      mean_elems(xb),
      sum_batches(xb),
      moment_batches(xb, 2),
      mean_batches(xb),
      sum_dim(A, {1}, true),
      sum_rows(A),
      sum_cols(A),
      moment_dim(A, {0, 1}, 2),
      mean_dim(A, {0}),
      average_cols(A),
      dot_product(x, xb),
      squared_distance(x, xb),
      squared_norm(xb),
      l2_norm(x),
      softmax(A),
      softmax(A, 1),
      log_softmax(A),
      log_softmax(x, {1u, 0u}),
      pickneglogsoftmax(x, 1u),
      pickneglogsoftmax(xb, {1u, 2u}),
      hinge(x, 1u),
      hinge(xb, {0u, 1u}, 0.5f),
      binary_log_loss(x, x),
      nobackprop(x),
      reshape(A, {6}),
      reshape(xb, {1, 3}),
      transpose(A),
      transpose(x),
      pick(A, 1u, 1u),
      pick(xb, {1u, 2u}),
      pick_range(A, 1, 2, 0),
      pickrange(x, 0, 2),
      pick_batch_elem(xb, 1u),
      pick_batch_elems(xb, {1u, 0u, 1u}),
      concatenate_to_batch({x, xb}),
      concatenate({x, v, xb}),
      concatenate_cols({x, A}),
      noise(x, 0.1f),
      dropout(x, 0.5f),
      vanilla_lstm_gates(x, v, zeros(cg, {8, 3}), zeros(cg, {8, 2}), zeros(cg, {8})),
      vanilla_lstm_gates_dropout(x, v, zeros(cg, {8, 3}), zeros(cg, {8, 2}), zeros(cg, {8}), x, v),
      vanilla_lstm_c(v, zeros(cg, {8})),
      vanilla_lstm_h(v, zeros(cg, {8}))};
  const Expression M = zeros(cg, {2, 2}), u = zeros(cg, {2}), T = zeros(cg, {3, 4, 2}),
                   I = zeros(cg, {4, 4, 2});
  const GradientMode mode = zero_gradient;
  std::vector<Expression> seldom = {random_gumbel(cg, {3}),
                                    contract3d_1d(T, u),
                                    contract3d_1d_1d(T, u, zeros(cg, {4})),
                                    circ_conv(x, x),
                                    circ_corr(x, x),
                                    inverse(M),
                                    logdet(M),
                                    trace_of_product(M, M),
                                    cube(x),
                                    dynet::sin(x),
                                    dynet::cos(x),
                                    dynet::tan(x),
                                    dynet::asin(x),
                                    dynet::acos(x),
                                    dynet::atan(x),
                                    dynet::sinh(x),
                                    dynet::cosh(x),
                                    dynet::asinh(x),
                                    dynet::acosh(x),
                                    dynet::atanh(x),
                                    dynet::erf(x),
                                    dynet::lgamma(x),
                                    log_sigmoid(x),
                                    elu(x),
                                    selu(x),
                                    silu(x),
                                    softsign(x),
                                    dynet::round(x, mode),
                                    dynet::ceil(x, mode),
                                    dynet::floor(x, mode),
                                    std_elems(x),
                                    cumsum(x, 0),
                                    max_dim(x),
                                    min_dim(x),
                                    argmax(x, mode),
                                    logsumexp({x, x}),
                                    logsumexp_dim(M, 0),
                                    l1_distance(x, x),
                                    huber_distance(x, x),
                                    hinge_dim(M, {0u, 1u}),
                                    sparsemax(x),
                                    sparsemax_loss(x, {0u, 2u}),
                                    constrained_softmax(x, x),
                                    pairwise_rank_loss(transpose(x), transpose(x)),
                                    poisson_loss(sum_elems(x), 2u),
                                    flip_gradient(x),
                                    select_rows(M, {1u}),
                                    select_cols(M, {1u}),
                                    strided_select(x, {2}),
                                    fold_rows(M),
                                    conv2d(I, zeros(cg, {2, 2, 2, 3}), {1, 1}),
                                    maxpooling2d(I, {2, 2}, {1, 1}),
                                    filter1d_narrow(zeros(cg, {2, 4}), zeros(cg, {2, 2, 3})),
                                    kmax_pooling(M, 1),
                                    kmh_ngram(zeros(cg, {3, 4}), 2),
                                    layer_norm(x, x, x),
                                    weight_norm(x, zeros(cg, {1})),
                                    dropout_dim(M, 0, 0.5f),
                                    dropout_batch(xb, 0.5f),
                                    block_dropout(x, 0.5f)};
  cg.forward(cg.nodes.size() - 1u);
  EQUAL(state.nodes, cg.nodes.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < cg.nodes.size(); ++i)
    seen.insert(cg.nodes[i]->name);
#define VPPS_OP(code, NAME, name, args, attrs) CHECK(seen.count(name) == 1);
  VPPS_OPS(VPPS_OP)
#undef VPPS_OP
}

TEST(batches_broadcast) {
  ComputationGraph cg;
  Expression x = zeros(cg, Dim({3}, 4)), w = zeros(cg, {2, 3}), b = zeros(cg, {2});
  EQUAL(affine_transform({b, w, x}).dim(), Dim({2}, 4));
  EQUAL((w * x).dim(), Dim({2}, 4));
  EQUAL((x + zeros(cg, {3, 2})).dim(), Dim({3, 2}, 4));
  EQUAL(sum_batches(x).dim(), Dim({3}));
  EQUAL(sum_elems(x).dim(), Dim({1}, 4));
  EQUAL(pick(zeros(cg, {3}), {1u, 2u}).dim(), Dim({1}, 2));
  EQUAL(pick(x, 1u).dim(), Dim({1}, 4));
  EQUAL(pick_batch_elem(x, 1u).dim(), Dim({3}));
  EQUAL(pick_batch_elems(x, {0u, 1u}).dim(), Dim({3}, 2));
  EQUAL(concatenate_to_batch({x, zeros(cg, {3})}).dim(), Dim({3}, 5));
  EQUAL(concatenate({x, b}).dim(), Dim({5}, 4));
  EQUAL(concatenate_cols({x, x}).dim(), Dim({3, 2}, 4));
  EQUAL(transpose(x).dim(), Dim({1, 3}, 4));
  EQUAL(reshape(x, {12}).dim(), Dim({12}));
  EQUAL(reshape(x, {1, 3}).dim(), Dim({1, 3}, 4));
  EQUAL(one_hot(cg, 3, {0u, 2u}).dim(), Dim({3}, 2));
  Expression last = pickneglogsoftmax(x, {0u, 1u, 2u, 0u});
  EQUAL(last.dim(), Dim({1}, 4));
  last.value(); // the fake engine checks every dim
}

TEST(pointers_are_read_when_their_nodes_are_evaluated) {
  ParameterCollection m;
  LookupParameter E = m.add_lookup_parameters(9, {2});
  float f = 1;
  unsigned row = 3;
  std::vector<float> v{5, 6};
  std::vector<unsigned> rows{7, 8};
  ComputationGraph cg;
  Expression a = input(cg, &f), b = lookup(cg, E, &row), c = input(cg, {2}, &v);
  f = 2;
  c.value();
  EQUAL(state.inputs, (Words{bits(2), 3, bits(5), bits(6)}));
  f = 3, row = 4, v[0] = 7;
  Expression d = lookup(cg, E, &rows);
  rows[0] = 1;
  d.value(); // the first three are not evaluated again
  EQUAL(state.inputs, (Words{bits(2), 3, bits(5), bits(6), 1, 8}));
  cg.forward(d); // now they are
  EQUAL(state.inputs, (Words{bits(3), 4, bits(7), bits(6), 1, 8}));
  f = 4, rows[1] = 2;
  cg.forward(b); // up to b only
  EQUAL(state.inputs, (Words{bits(4), 4, bits(7), bits(6), 1, 8}));
  cg.invalidate();
  rows.push_back(1);
  THROWS(std::invalid_argument, "vector", d.value());
  (void)a;
}

TEST(fb_reads_pointers_again_after_an_update) {
  ParameterCollection m;
  Parameter p = m.add_parameters({1});
  vpps::handle h(m);
  float f = 1;
  ComputationGraph cg;
  Expression loss = cmult(parameter(cg, p), input(cg, &f));
  EQUAL(h.fb(m, cg, loss), 2.f);
  f = 2;
  h.fb(m, cg, loss);
  EQUAL(state.inputs, Words{bits(2)});
  cg.forward(loss); // evaluated now
  f = 3;
  h.fb(m, cg, loss); // uses what is there
  EQUAL(state.inputs, Words{bits(2)});
  EQUAL(h.sync_get_latest_loss(), 1.f);
  EQUAL(h.plan_report(), "plan");
  h.learning_rate = 0.5f;
  h.fb(m, cg, loss);
  EQUAL(state.options.learning_rate, 0.5f);
}

TEST(revert_takes_back_what_came_after_the_checkpoint) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2}), y = tanh(x);
  cg.checkpoint();
  EQUAL(state.calls.back(), "value");
  Expression z = exp(y);
  Expression w = input(cg, 3.f);
  w.value();
  cg.revert();
  EQUAL(state.calls[state.calls.size() - 2], "truncate 2");
  EQUAL(state.calls.back(), "invalidate 1");
  EQUAL(cg.nodes.size(), 2u);
  THROWS(std::invalid_argument, "not in its graph any more", tanh(z));
  THROWS(std::runtime_error, "stale", z.value());
  log(y).value();
  EQUAL(state.words, (Words{VPPS_OP_LOG, 1}));
  EQUAL(state.inputs, (Words{bits(1), bits(2)}));
}

TEST(one_graph_at_a_time) {
  Expression old;
  {
    ComputationGraph cg;
    old = input(cg, 1.f);
    THROWS(std::runtime_error, ">1 CG", ComputationGraph second);
    CHECK(!old.is_stale());
  }
  CHECK(old.is_stale());
  THROWS(std::runtime_error, "stale", old.dim());
  THROWS(std::invalid_argument, "gone", tanh(old));
  ComputationGraph cg;
  Expression x = input(cg, 1.f);
  THROWS(std::invalid_argument, "another graph", x + old);
  EQUAL(old.graph_id + 1, x.graph_id);
}

TEST(values_stay_where_they_are) {
  ComputationGraph cg;
  Expression x = input(cg, {2}, {1, 2});
  const Tensor &t = x.value();
  for (int i = 0; i < 1000; ++i)
    tanh(x).value();
  EQUAL(as_vector(t).at(1), 0.25f);
  EQUAL(as_scalar(sum_elems(x).value()), 1001.f);
  cg.backward(sum_elems(x));
  EQUAL(as_vector(x.gradient()).size(), 2u);
  Expression late = tanh(x);
  THROWS(std::runtime_error, "comes before", late.gradient());
}

TEST(immediate_compute_evaluates_each_node) {
  ParameterCollection m;
  LookupParameter E = m.add_lookup_parameters(9, {2});
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  cg.set_check_validity(true);
  lookup(cg, E, 4u);
  EQUAL(state.calls.back(), "value");
  EQUAL(state.inputs, Words{4});
  EQUAL(state.nodes, 1u);
}

TEST(immediate_compute_waits_until_it_can_be_told) {
  ParameterCollection m;
  Parameter a = m.add_parameters({2});
  SimpleSGDTrainer t(m, 0.25f);
  ComputationGraph cg;
  cg.set_immediate_compute(true);
  const size_t before = state.calls.size();
  Expression x = tanh(parameter(cg, a));
  EQUAL(state.calls.size(), before);
  t.update();
  EQUAL(state.calls.at(before), "value"); // of x, by the parameter's old value
  EQUAL(state.calls.back(), "update");
  EQUAL(state.nodes, 2u);
  x.value();
  float f = 1;
  input(cg, &f); // DyNet reads the pointer now
  EQUAL(state.nodes, 3u);
}

TEST(what_cannot_be_evaluated_ahead_is_not) {
  ParameterCollection m;
  Parameter a = m.add_parameters({2});
  ComputationGraph cg;
  Expression x = parameter(cg, a), y = tanh(x), z = tanh(y);
  tanh(z);
  x.value();
  const size_t before = state.calls.size();
  state.fail_next = VPPS_ERR_NUMERIC;
  y.value();
  EQUAL(state.calls.size(), before + 1); // a call that fails is not noted
  EQUAL(state.calls.back(), "value");
  z.value();
  EQUAL(state.calls.at(before + 1), "incremental"); // all of them
  EQUAL(state.calls.back(), "value");
}

TEST(trainers_tell_the_engine_what_changed) {
  ParameterCollection m;
  Parameter a = m.add_parameters({1});
  SimpleSGDTrainer t(m, 0.25f);
  CHECK(t.clipping_enabled && t.clip_threshold == 5 && t.sparse_updates_enabled);
  t.update();
  EQUAL(state.options.learning_rate, 0.25f);
  EQUAL(state.trained, Words{a.p.unexposed()->id});
  Parameter b = m.add_parameters({1});
  LookupParameter c = m.add_lookup_parameters(2, {1});
  t.clipping_enabled = false;
  a.set_updated(false);
  state.clip_next = 1;
  t.update();
  state.clip_next = 0;
  EQUAL(state.trained, (Words{a.p.unexposed()->id, b.p.unexposed()->id, c.p.unexposed()->id}));
  EQUAL(state.options.clipping, 0);
  EQUAL(state.updated.at(a.p.unexposed()->id), 0);
  EQUAL(t.clips, 1.f);
  EQUAL(t.updates, 2.f);
  state.fail_next = VPPS_ERR_NUMERIC;
  THROWS(std::runtime_error, "", t.update());
  EQUAL(t.updates, 2.f);
}

// Counts allocations: of recording none depends on the number of nodes.
static size_t allocations = 0;
__attribute__((noinline)) void *operator new(size_t n) {
  ++allocations;
  void *p = std::malloc(n ? n : 1);
  if (p == nullptr)
    throw std::bad_alloc();
  return p;
}
__attribute__((noinline)) void operator delete(void *p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void *p, size_t) noexcept { std::free(p); }

static size_t allocations_of(unsigned steps) {
  ParameterCollection m;
  Parameter W = m.add_parameters({4, 8}), b = m.add_parameters({4});
  LookupParameter E = m.add_lookup_parameters(7, {4});
  ComputationGraph cg;
  size_t before = allocations;
  Expression w = parameter(cg, W), c = parameter(cg, b), h = lookup(cg, E, 0u);
  for (unsigned i = 0; i < steps; ++i) {
    Expression x = lookup(cg, E, i % 7);
    Expression f = logistic(affine_transform({c, w, concatenate({h, x})}));
    h = cmult(f, tanh(h)) + x - 0.5f;
    pickneglogsoftmax(h, 1u);
  }
  return allocations - before;
}

TEST(recording_does_not_allocate_for_each_node) {
  allocations_of(10000); // the buffers grow once
  size_t few = allocations_of(100), many = allocations_of(10000);
  CHECK(many < few + 20);
}

TEST(parameters_may_go_before_their_graph) {
  ComputationGraph cg;
  Expression loss;
  {
    ParameterCollection m;
    loss = sum_elems(parameter(cg, m.add_parameters({2})));
  }
  cg.backward(loss);
}

TEST(empty_expressions_are_refused) {
  ComputationGraph cg;
  THROWS(std::invalid_argument, "empty Expression", tanh(Expression()));
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
