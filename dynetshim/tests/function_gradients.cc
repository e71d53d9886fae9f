// The gradient of every function of expr.h against differences of its value: without batches, with
// them, with batches in some of the arguments, and with one node as several arguments. The same
// gradients have to come from backward, from three calls and from fb. On a GPU too:
// VPPS_DEVICE=cuda.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "check.h"
#include "dynet/dynet.h"
#include "dynet/expr.h"
#include "dynet/nodes.h"
#include "dynet/training.h"
#include "ops.h"
#include "vpps/vpps.hpp"

using namespace dynet;

namespace {

typedef std::vector<Expression> Arguments;
typedef std::function<Expression(const Arguments &)> Function;

const unsigned batch = 3;

// When an argument may have a batch: at any time, never, only if the first has one, always if and
// only if it has.
enum class Batches { freely, never, after_first, with_first };

// An argument's shape and the range of its elements.
struct Argument {
  std::vector<long> d;
  float low, high;
  Batches batches;
  Argument(const std::vector<long> &shape, float from = -2, float to = 2)
      : d(shape), low(from), high(to), batches(Batches::freely) {}
  Argument that(Batches when) const {
    Argument a = *this;
    a.batches = when;
    return a;
  }
  Argument alone() const { return that(Batches::never); }
  Argument together() const { return that(Batches::with_first); }
  bool like(const Argument &o) const { return d == o.d && low == o.low && high == o.high; }
};

struct Case {
  const char *name;
  std::vector<Argument> arguments;
  Function call;
  Function measured; // what the gradient is that of, if not of call
};

// How a case's arguments are given.
struct Form {
  std::string name;
  unsigned batched; // a bit for each argument
  bool computed;    // unbatched ones are no parameters themselves
  bool repeated;    // equal ones are one node
};

// The same numbers on all machines.
class Numbers {
public:
  explicit Numbers(unsigned seed) : state_(seed * 2654435761u + 1) {}
  unsigned below(unsigned n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(state_ >> 33) % n;
  }
  float sign() { return below(2) ? 1.f : -1.f; }
  // n numbers from low to high, at equal distances, so that no maximum is near another element and
  // 0 is not met. Others than those of another slot.
  std::vector<float> apart(size_t n, float low, float high, size_t slot = 0) {
    std::vector<float> v(n);
    const float shift = .37f + .25f * static_cast<float>(slot % 3);
    for (size_t i = 0; i < n; ++i)
      v[i] = low + (high - low) * (static_cast<float>(i) + shift) / static_cast<float>(n);
    for (size_t i = n; i > 1; --i)
      std::swap(v[i - 1], v[below(static_cast<unsigned>(i))]);
    return v;
  }

private:
  unsigned long long state_;
};

size_t size_of(const std::vector<long> &d) {
  size_t n = 1;
  for (long k : d)
    n *= static_cast<size_t>(k);
  return n;
}

// The parameters of all cases are one model, so that a GPU compiles one kernel for it.
class Model {
public:
  Parameter get(size_t slot, const std::vector<long> &d) {
    std::pair<size_t, std::vector<long>> key(slot, d);
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_[key] = all.add_parameters(Dim(d));
  }
  ParameterCollection all;
  LookupParameter table;

private:
  std::map<std::pair<size_t, std::vector<long>>, Parameter> made_;
};

// A case in a form: the parameters, and how the graph is made of them.
struct Instance {
  const Case &c;
  const Form &form;
  Model &model;
  std::vector<Parameter> parameters;
  std::vector<std::vector<float>> values;

  Instance(const Case &which, const Form &how, Model &m) : c(which), form(how), model(m) {
    Numbers numbers(static_cast<unsigned>(c.arguments.size()) + form.batched * 7 +
                    form.computed * 3 + form.repeated);
    for (size_t k = 0; k < c.arguments.size(); ++k) {
      const Argument &a = c.arguments[k];
      const bool is_batched = form.batched >> k & 1;
      std::vector<long> d = a.d;
      if (is_batched)
        d.assign(1, static_cast<long>(size_of(a.d) * batch));
      parameters.push_back(m.get(k, d));
      values.push_back(numbers.apart(size_of(d), a.low, a.high, k));
    }
  }

  Arguments arguments(ComputationGraph &cg) const {
    Arguments x;
    for (size_t k = 0; k < parameters.size(); ++k) {
      const Argument &a = c.arguments[k];
      size_t same = k;
      for (size_t j = 0; form.repeated && j < k && same == k; ++j)
        if (a.like(c.arguments[j]))
          same = j;
      if (same != k) {
        x.push_back(x[same]);
        continue;
      }
      Expression e = parameter(cg, parameters[k]);
      if (form.batched >> k & 1)
        e = reshape(e, Dim(a.d, batch));
      else if (form.computed)
        e = -(-e);
      x.push_back(e);
    }
    return x;
  }

  // The sum of the value's elements, each times a number.
  Expression loss(const Function &f, ComputationGraph &cg) const {
    const Arguments x = arguments(cg);
    Expression y = f(x);
    if (form.repeated && x.size() == 1) // an argument of two nodes
      y = y + f(x) * .5f;
    std::vector<float> weights = Numbers(5).apart(y.dim().size(), -1, 1);
    return sum_batches(dot_product(y, input(cg, y.dim(), weights)));
  }

  void set(const std::vector<std::vector<float>> &v) {
    for (size_t k = 0; k < parameters.size(); ++k)
      parameters[k].set_value(v[k]);
  }

  std::vector<std::vector<float>> read(vpps_part part) const {
    std::vector<std::vector<float>> all;
    for (const Parameter &p : parameters)
      all.push_back(p.p.unexposed()->read(part));
    return all;
  }
};

// ---- the functions ------------------------------------------------------------------

Case one(const char *name, Expression (*f)(const Expression &), float low = -2, float high = 2) {
  return {
      name, {Argument({3, 4}, low, high)}, [f](const Arguments &x) { return f(x[0]); }, nullptr};
}
#define CALL(...) [](const Arguments &x) -> Expression { return __VA_ARGS__; }

void add_elementwise(std::vector<Case> &all) {
  all.push_back(one("sqrt", sqrt, .3f, 3));
  all.push_back(one("abs", abs));
  all.push_back(one("tanh", tanh));
  all.push_back(one("exp", exp));
  all.push_back(one("square", square));
  all.push_back(one("log", log, .3f, 3));
  all.push_back(one("logistic", logistic));
  all.push_back(one("rectify", rectify));
  all.push_back(one("cube", cube));
  all.push_back(one("sin", sin));
  all.push_back(one("cos", cos));
  all.push_back(one("tan", tan, -1, 1));
  all.push_back(one("asin", asin, -.8f, .8f));
  all.push_back(one("acos", acos, -.8f, .8f));
  all.push_back(one("atan", atan));
  all.push_back(one("sinh", sinh));
  all.push_back(one("cosh", cosh));
  all.push_back(one("asinh", asinh));
  all.push_back(one("acosh", acosh, 1.2f, 4));
  all.push_back(one("atanh", atanh, -.8f, .8f));
  all.push_back(one("erf", erf));
  all.push_back(one("lgamma", lgamma, .3f, 4));
  all.push_back(one("log_sigmoid", log_sigmoid));
  all.push_back({"elu", {{{3, 4}}}, CALL(elu(x[0], .7f)), nullptr});
  all.push_back(one("selu", selu));
  all.push_back({"silu", {{{3, 4}}}, CALL(silu(x[0], 1.3f)), nullptr});
  all.push_back({"softsign", {{{7}}}, CALL(softsign(x[0])), nullptr});
  all.push_back({"-x", {{{3, 4}}}, CALL(-x[0]), nullptr});
  all.push_back({"x + number", {{{3, 4}}}, CALL(x[0] + 2.f), nullptr});
  all.push_back({"number - x", {{{3, 4}}}, CALL(2.f - x[0]), nullptr});
  all.push_back({"x - number", {{{3, 4}}}, CALL(x[0] - 2.f), nullptr});
  all.push_back({"x * number", {{{3, 4}}}, CALL(x[0] * 1.7f), nullptr});
  all.push_back({"x / number", {{{3, 4}}}, CALL(x[0] / 1.7f), nullptr});
  all.push_back({"round", {{{3, 4}}}, CALL(round(x[0], zero_gradient)), CALL(x[0] * 0.f)});
  all.push_back({"ceil", {{{3, 4}}}, CALL(ceil(x[0], zero_gradient)), CALL(x[0] * 0.f)});
  all.push_back({"floor", {{{3, 4}}}, CALL(floor(x[0], zero_gradient)), CALL(x[0] * 0.f)});
  all.push_back(
      {"round, straight", {{{3, 4}}}, CALL(round(x[0], straight_through_gradient)), CALL(x[0])});
  all.push_back(
      {"ceil, straight", {{{3, 4}}}, CALL(ceil(x[0], straight_through_gradient)), CALL(x[0])});
  all.push_back(
      {"floor, straight", {{{3, 4}}}, CALL(floor(x[0], straight_through_gradient)), CALL(x[0])});
  all.push_back({"nobackprop", {{{3, 4}}}, CALL(nobackprop(x[0])), CALL(x[0] * 0.f)});
  all.push_back({"flip_gradient", {{{3, 4}}}, CALL(flip_gradient(x[0])), CALL(x[0] * -1.f)});
  all.push_back({"scale_gradient", {{{3, 4}}}, CALL(scale_gradient(x[0], .3f)), CALL(x[0] * .3f)});
  all.push_back({"to_device", {{{3, 4}}}, CALL(to_device(x[0], default_device)), nullptr});
  all.push_back({"dropout", {{{3, 4}}}, CALL(dropout(x[0], .4f)), nullptr});
  all.push_back({"dropout_dim", {{{3, 4}}}, CALL(dropout_dim(x[0], 1, .4f)), nullptr});
  all.push_back({"dropout_batch", {{{3, 4}}}, CALL(dropout_batch(x[0], .4f)), nullptr});
  all.push_back({"block_dropout", {{{3, 4}}}, CALL(block_dropout(x[0], .4f)), nullptr});
  all.push_back({"noise", {{{3, 4}}}, CALL(square(noise(x[0], .4f))), nullptr});
}

void add_arithmetic(std::vector<Case> &all) {
  const Argument m({3, 4}), v({3}), positive({3, 4}, .5f, 2);
  all.push_back({"x + y", {m, m}, CALL(x[0] + x[1]), nullptr});
  all.push_back({"x + y, rows broadcast", {m, {{1, 4}}}, CALL(x[0] + x[1]), nullptr});
  all.push_back({"x + y, both broadcast", {{{1, 4}}, {{3}}}, CALL(x[0] + x[1]), nullptr});
  all.push_back({"x + scalar", {m, {{1}}}, CALL(x[0] + x[1]), nullptr});
  all.push_back({"x - y", {m, m}, CALL(x[0] - x[1]), nullptr});
  all.push_back({"cmult", {m, m}, CALL(cmult(x[0], x[1])), nullptr});
  all.push_back({"cmult, columns broadcast", {v, m}, CALL(cmult(x[0], x[1])), nullptr});
  all.push_back({"cmult, scalar", {{{1}}, m}, CALL(cmult(x[0], x[1])), nullptr});
  all.push_back(
      {"cdiv", {positive, positive.that(Batches::after_first)}, CALL(cdiv(x[0], x[1])), nullptr});
  all.push_back({"cdiv, broadcast",
                 {m, Argument({3}, .5f, 2).that(Batches::after_first)},
                 CALL(cdiv(x[0], x[1])),
                 nullptr});
  all.push_back({"pow", {positive, Argument({1}, .5f, 2).alone()}, CALL(pow(x[0], x[1])), nullptr});
  all.push_back({"min", {m, m.together()}, CALL(min(x[0], x[1])), nullptr});
  all.push_back({"max", {m, m.together()}, CALL(max(x[0], x[1])), nullptr});
  all.push_back({"W * v", {{{5, 4}}, {{4}}}, CALL(x[0] * x[1]), nullptr});
  all.push_back({"A * B", {{{4, 4}}, {{4, 4}}}, CALL(x[0] * x[1]), nullptr});
  all.push_back({"row * column", {{{1, 4}}, {{4}}}, CALL(x[0] * x[1]), nullptr});
  all.push_back({"column * row", {{{4}}, {{1, 3}}}, CALL(x[0] * x[1]), nullptr});
  all.push_back({"transposed * x", {{{4, 5}}, {{4, 2}}}, CALL(transpose(x[0]) * x[1]), nullptr});
  all.push_back({"affine_transform", {{{5}}, {{5, 4}}, {{4}}}, CALL(affine_transform(x)), nullptr});
  all.push_back({"affine_transform of two",
                 {{{3}}, {{3, 3}}, {{3}}, {{3, 3}}, {{3}}},
                 CALL(affine_transform(x)),
                 nullptr});
  all.push_back({"affine_transform of matrices",
                 {{{5}}, {{5, 4}}, {{4, 2}}},
                 CALL(affine_transform(x)),
                 nullptr});
  all.push_back({"sum", {m, m, m}, CALL(sum(x)), nullptr});
  all.push_back({"average", {m, m, m}, CALL(average(x)), nullptr});
  all.push_back({"logsumexp", {m, m, m}, CALL(logsumexp(x)), nullptr});
  all.push_back({"colwise_add", {m, v}, CALL(colwise_add(x[0], x[1])), nullptr});
  all.push_back({"contract3d_1d", {{{2, 3, 4}}, {{4}}}, CALL(contract3d_1d(x[0], x[1])), nullptr});
  all.push_back({"contract3d_1d with bias",
                 {{{2, 3, 4}}, {{4}}, {{2, 3}}},
                 CALL(contract3d_1d(x[0], x[1], x[2])),
                 nullptr});
  all.push_back({"contract3d_1d_1d",
                 {{{2, 3, 3}}, {{3}}, {{3}}},
                 CALL(contract3d_1d_1d(x[0], x[1], x[2])),
                 nullptr});
  all.push_back({"contract3d_1d_1d with bias",
                 {{{2, 3, 3}}, {{3}}, {{3}}, {{2}}},
                 CALL(contract3d_1d_1d(x[0], x[1], x[2], x[3])),
                 nullptr});
  all.push_back(
      {"circ_conv", {{{5}}, Argument({5}).together()}, CALL(circ_conv(x[0], x[1])), nullptr});
  all.push_back(
      {"circ_corr", {{{5}}, Argument({5}).together()}, CALL(circ_corr(x[0], x[1])), nullptr});
  all.push_back(
      {"trace_of_product", {m, m.together()}, CALL(trace_of_product(x[0], x[1])), nullptr});
  // With a large diagonal.
  all.push_back({"inverse",
                 {{{3, 3}, -.5f, .5f}},
                 CALL(inverse(x[0] + input(*x[0].pg, {3, 3}, {3, 0, 0, 0, 2, 0, 0, 0, 2}))),
                 nullptr});
  all.push_back({"logdet",
                 {{{3, 3}, -.5f, .5f}},
                 CALL(logdet(x[0] + input(*x[0].pg, {3, 3}, {3, 0, 0, 0, 2, 0, 0, 0, 2}))),
                 nullptr});
}

void add_reductions(std::vector<Case> &all) {
  const Argument m({3, 4}), cube({2, 3, 2}), positive({3, 4}, .3f, 2);
  all.push_back({"sum_elems", {m}, CALL(sum_elems(x[0])), nullptr});
  all.push_back({"mean_elems", {m}, CALL(mean_elems(x[0])), nullptr});
  all.push_back({"moment_elems", {m}, CALL(moment_elems(x[0], 3)), nullptr});
  all.push_back({"std_elems", {m}, CALL(std_elems(x[0])), nullptr});
  all.push_back({"sum_batches", {m}, CALL(sum_batches(x[0])), nullptr});
  all.push_back({"mean_batches", {m}, CALL(mean_batches(x[0])), nullptr});
  all.push_back({"moment_batches", {m}, CALL(moment_batches(x[0], 2)), nullptr});
  all.push_back(
      {"std_batches", {m}, CALL(std_batches(concatenate_to_batch({x[0], x[0] * .3f}))), nullptr});
  all.push_back({"sum_dim", {cube}, CALL(sum_dim(x[0], {1})), nullptr});
  all.push_back(
      {"sum_dim of two axes and the batch", {cube}, CALL(sum_dim(x[0], {0, 2}, true)), nullptr});
  all.push_back({"sum_rows", {m}, CALL(sum_rows(x[0])), nullptr});
  all.push_back({"sum_cols", {m}, CALL(sum_cols(x[0])), nullptr});
  all.push_back({"moment_dim", {cube}, CALL(moment_dim(x[0], {0, 1}, 2)), nullptr});
  all.push_back(
      {"moment_dim over the batch", {cube}, CALL(moment_dim(x[0], {1}, 3, true, 5)), nullptr});
  all.push_back({"mean_dim", {cube}, CALL(mean_dim(x[0], {1})), nullptr});
  all.push_back({"std_dim", {cube}, CALL(std_dim(x[0], {1})), nullptr});
  all.push_back({"std_dim over the batch", {cube}, CALL(std_dim(x[0], {0}, true)), nullptr});
  all.push_back({"cumsum", {m}, CALL(cumsum(x[0], 1)), nullptr});
  all.push_back({"max_dim", {m}, CALL(max_dim(x[0], 1)), nullptr});
  all.push_back({"min_dim", {m}, CALL(min_dim(x[0], 0)), nullptr});
  all.push_back({"kmax_pooling", {{{2, 5}}}, CALL(kmax_pooling(x[0], 3)), nullptr});
  all.push_back({"argmax", {{{5}}}, CALL(argmax(x[0], zero_gradient)), CALL(x[0] * 0.f)});
  all.push_back(
      {"argmax, straight", {{{5}}}, CALL(argmax(x[0], straight_through_gradient)), CALL(x[0])});
  all.push_back({"logsumexp_dim", {m}, CALL(logsumexp_dim(x[0], 1)), nullptr});
  all.push_back({"average_cols", {m}, CALL(average_cols(x[0])), nullptr});
  all.push_back({"dot_product", {m, m}, CALL(dot_product(x[0], x[1])), nullptr});
  all.push_back({"squared_distance", {m, m}, CALL(squared_distance(x[0], x[1])), nullptr});
  all.push_back({"l1_distance", {m, {{3, 4}, 2.2f, 3}}, CALL(l1_distance(x[0], x[1])), nullptr});
  all.push_back(
      {"huber_distance", {m, {{3, 4}, 2.2f, 3}}, CALL(huber_distance(x[0], x[1], 6)), nullptr});
  all.push_back({"huber_distance, linear",
                 {m, {{3, 4}, 2.2f, 3}},
                 CALL(huber_distance(x[0], x[1], .1f)),
                 nullptr});
  all.push_back({"squared_norm", {m}, CALL(squared_norm(x[0])), nullptr});
  all.push_back({"l2_norm", {m}, CALL(l2_norm(x[0])), nullptr});
}

// One for each batch element.
std::vector<unsigned> each(const Expression &x, unsigned a, unsigned b, unsigned c) {
  const std::vector<unsigned> three = {a, b, c};
  return std::vector<unsigned>(three.begin(), three.begin() + x.dim().bd);
}

void add_losses(std::vector<Case> &all) {
  const Argument m({3, 4}), v({5}), scalar({1}), share({3, 4}, .1f, .9f);
  all.push_back({"softmax", {v}, CALL(softmax(x[0])), nullptr});
  all.push_back({"softmax of columns", {m}, CALL(softmax(x[0])), nullptr});
  all.push_back({"softmax of rows", {m}, CALL(softmax(x[0], 1)), nullptr});
  all.push_back({"softmax of many rows", {Argument({37, 6})}, CALL(softmax(x[0], 1)), nullptr});
  all.push_back(
      {"softmax of many longer rows", {Argument({21, 12})}, CALL(softmax(x[0], 1)), nullptr});
  all.push_back({"log_softmax", {m}, CALL(log_softmax(x[0])), nullptr});
  // The other rows are infinite.
  all.push_back({"log_softmax, restricted",
                 {v.alone()},
                 CALL(pick(log_softmax(x[0], {1u, 3u}), 3u)),
                 nullptr});
  all.push_back(
      {"pickneglogsoftmax", {v}, CALL(pickneglogsoftmax(x[0], each(x[0], 2, 0, 2))), nullptr});
  all.push_back(
      {"pickneglogsoftmax of one label", {v.alone()}, CALL(pickneglogsoftmax(x[0], 3u)), nullptr});
  all.push_back({"hinge", {v}, CALL(hinge(x[0], each(x[0], 2, 0, 2), 3)), nullptr});
  all.push_back(
      {"hinge_dim", {m}, CALL(hinge_dim(x[0], std::vector<unsigned>{0, 2, 1, 2}, 0, 3)), nullptr});
  all.push_back({"hinge_dim of rows",
                 {m.alone()},
                 CALL(hinge_dim(x[0], std::vector<unsigned>{0, 3, 1}, 1, 3.1f)),
                 nullptr});
  all.push_back({"sparsemax", {{{4}, -.4f, .4f}}, CALL(sparsemax(x[0])), nullptr});
  all.push_back({"sparsemax_loss",
                 {Argument({4}, -.4f, .4f).alone()},
                 CALL(sparsemax_loss(x[0], std::vector<unsigned>{1, 2})),
                 nullptr});
  all.push_back({"constrained_softmax",
                 {Argument({4}).alone(), Argument({4}, .26f, .6f).alone()},
                 CALL(constrained_softmax(x[0], x[1])),
                 nullptr});
  all.push_back({"pairwise_rank_loss",
                 {scalar, scalar.together()},
                 CALL(pairwise_rank_loss(x[0], x[1], 5)),
                 nullptr});
  all.push_back({"pairwise_rank_loss of rows",
                 {{{1, 4}}, Argument({1, 4}).together()},
                 CALL(pairwise_rank_loss(x[0], x[1], 5)),
                 nullptr});
  all.push_back({"poisson_loss", {scalar.alone()}, CALL(poisson_loss(x[0], 3)), nullptr});
  // DyNet's gradient of the target is not that of the function.
  all.push_back({"binary_log_loss",
                 {share.alone()},
                 CALL(binary_log_loss(x[0], input(*x[0].pg, {3, 4}, std::vector<float>(12, .3f)))),
                 nullptr});
}

void add_selections(std::vector<Case> &all) {
  const Argument m({3, 4}), v({5}), cube({2, 3, 2});
  all.push_back({"reshape", {m}, CALL(square(reshape(x[0], {6, 2}))), nullptr});
  all.push_back({"reshape of the batch",
                 {m},
                 CALL(square(reshape(x[0], Dim({3, 2}, 2 * x[0].dim().bd)))),
                 nullptr});
  all.push_back({"transpose", {m}, CALL(transpose(x[0])), nullptr});
  all.push_back({"transpose of three axes", {cube}, CALL(transpose(x[0], {2, 0, 1})), nullptr});
  all.push_back({"pick", {v}, CALL(pick(x[0], 3u)), nullptr});
  all.push_back({"pick of a column", {m}, CALL(pick(x[0], 2u, 1)), nullptr});
  all.push_back({"pick, each its own", {v}, CALL(pick(x[0], each(x[0], 4, 0, 4))), nullptr});
  all.push_back({"pick_range", {m}, CALL(pick_range(x[0], 1, 3, 1)), nullptr});
  all.push_back({"pickrange", {v}, CALL(pickrange(x[0], 1, 4)), nullptr});
  all.push_back(
      {"select_rows", {m}, CALL(select_rows(x[0], std::vector<unsigned>{2, 0, 2})), nullptr});
  all.push_back(
      {"select_cols", {m}, CALL(select_cols(x[0], std::vector<unsigned>{3, 1, 3})), nullptr});
  all.push_back(
      {"strided_select", {{{4, 5}}}, CALL(strided_select(x[0], {2, 3}, {1, 0})), nullptr});
  all.push_back({"fold_rows", {{{6, 2}}}, CALL(fold_rows(x[0], 3)), nullptr});
  all.push_back({"pick_batch_elem", {m}, CALL(pick_batch_elem(x[0], x[0].dim().bd - 1)), nullptr});
  all.push_back({"pick_batch_elems",
                 {m},
                 CALL(pick_batch_elems(x[0], std::vector<unsigned>{x[0].dim().bd - 1, 0, 0})),
                 nullptr});
  all.push_back({"concatenate", {{{2, 3}}, {{2, 3}}, {{4, 3}}}, CALL(concatenate(x)), nullptr});
  all.push_back({"concatenate along axis 1",
                 {{{2, 3}}, {{2, 3}}, {{2, 1}}},
                 CALL(concatenate(x, 1)),
                 nullptr});
  all.push_back({"concatenate_cols", {v, v}, CALL(concatenate_cols(x)), nullptr});
  all.push_back({"concatenate_to_batch", {m, m}, CALL(concatenate_to_batch(x)), nullptr});
}

void add_layers(std::vector<Case> &all) {
  const Argument image({4, 5, 2}), filters({2, 3, 2, 3}), v({5}), m({3, 5});
  all.push_back({"conv2d", {image, filters.alone()}, CALL(conv2d(x[0], x[1], {1, 2})), nullptr});
  all.push_back({"conv2d with bias",
                 {image, filters.alone(), Argument({3}).alone()},
                 CALL(conv2d(x[0], x[1], x[2], {1, 1})),
                 nullptr});
  all.push_back({"conv2d, padded",
                 {image, filters.alone()},
                 CALL(conv2d(x[0], x[1], {2, 1}, false)),
                 nullptr});
  all.push_back({"maxpooling2d", {image}, CALL(maxpooling2d(x[0], {2, 2}, {1, 2})), nullptr});
  all.push_back(
      {"maxpooling2d, padded", {image}, CALL(maxpooling2d(x[0], {3, 2}, {2, 2}, false)), nullptr});
  all.push_back({"filter1d_narrow", {m, {{3, 2, 2}}}, CALL(filter1d_narrow(x[0], x[1])), nullptr});
  all.push_back({"kmh_ngram", {m}, CALL(kmh_ngram(x[0], 2)), nullptr});
  all.push_back({"layer_norm", {v, v, v}, CALL(layer_norm(x[0], x[1], x[2])), nullptr});
  all.push_back(
      {"weight_norm", {m, Argument({1}).alone()}, CALL(weight_norm(x[0], x[1])), nullptr});
  const Argument x_t({2}), h({3}), wx({12, 2}, -1, 1), wh({12, 3}, -1, 1), b({12}, -1, 1);
  const Argument w = wx.alone(), u = wh.alone(), c = b.alone();
  all.push_back({"vanilla_lstm_gates",
                 {x_t, h.together(), w, u, c},
                 CALL(vanilla_lstm_gates(x[0], x[1], x[2], x[3], x[4])),
                 nullptr});
  all.push_back({"vanilla_lstm_gates, noise",
                 {x_t, h.together(), w, u, c},
                 CALL(vanilla_lstm_gates(x[0], x[1], x[2], x[3], x[4], .1f)),
                 nullptr});
  all.push_back({"vanilla_lstm_gates_concat",
                 {{{1}}, Argument({1}).together(), h.together(), w, u, c},
                 CALL(vanilla_lstm_gates_concat({x[0], x[1]}, x[2], x[3], x[4], x[5])),
                 nullptr});
  // Masks have no gradient.
  all.push_back({"vanilla_lstm_gates_dropout",
                 {x_t, h.together(), w, u, c},
                 [](const Arguments &x) {
                   ComputationGraph &cg = *x[0].pg;
                   return vanilla_lstm_gates_dropout(x[0], x[1], x[2], x[3], x[4],
                                                     input(cg, {2}, {0, 2}),
                                                     input(cg, {3}, {2, 0, 2}));
                 },
                 nullptr});
  all.push_back({"vanilla_lstm_gates_dropout_concat",
                 {{{1}}, Argument({1}).together(), h.together(), w, u, c},
                 [](const Arguments &x) {
                   ComputationGraph &cg = *x[0].pg;
                   const unsigned n = x[0].dim().bd;
                   return vanilla_lstm_gates_dropout_concat(
                       {x[0], x[1]}, x[2], x[3], x[4], x[5],
                       input(cg, Dim({2}, n), Numbers(1).apart(2 * n, 0, 2)),
                       input(cg, Dim({3}, n), Numbers(2).apart(3 * n, 0, 2)));
                 },
                 nullptr});
  all.push_back({"vanilla_lstm_c", {h, b.together()}, CALL(vanilla_lstm_c(x[0], x[1])), nullptr});
  all.push_back({"vanilla_lstm_h", {h, b.together()}, CALL(vanilla_lstm_h(x[0], x[1])), nullptr});
}

// Leaves without a gradient, each next to a leaf with one.
void add_leaves(std::vector<Case> &all) {
  const Argument m({3, 4});
  all.push_back({"input",
                 {m},
                 CALL(cmult(x[0], input(*x[0].pg, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}))),
                 nullptr});
  all.push_back({"input of one number", {m}, CALL(cmult(x[0], input(*x[0].pg, 1.5f))), nullptr});
  all.push_back({"sparse input",
                 {m},
                 CALL(cmult(x[0], input(*x[0].pg, {3, 4}, {2u, 7u}, {3, 4}, .5f))),
                 nullptr});
  all.push_back({"one_hot", {{{5}}}, CALL(dot_product(x[0], one_hot(*x[0].pg, 5, 3u))), nullptr});
  all.push_back({"constant", {m}, CALL(cmult(x[0], constant(*x[0].pg, {3, 4}, .7f))), nullptr});
  all.push_back({"zeros", {m}, CALL(square(x[0] + zeros(*x[0].pg, {3, 4}))), nullptr});
  all.push_back({"ones", {m}, CALL(square(x[0] + ones(*x[0].pg, {3, 4}))), nullptr});
  all.push_back(
      {"random_normal", {m}, CALL(cmult(x[0], random_normal(*x[0].pg, {3, 4}))), nullptr});
  all.push_back({"random_bernoulli",
                 {m},
                 CALL(cmult(x[0], random_bernoulli(*x[0].pg, {3, 4}, .5f, 2))),
                 nullptr});
  all.push_back(
      {"random_uniform", {m}, CALL(cmult(x[0], random_uniform(*x[0].pg, {3, 4}, -1, 1))), nullptr});
  all.push_back(
      {"random_gumbel", {m}, CALL(cmult(x[0], random_gumbel(*x[0].pg, {3, 4}))), nullptr});
}

std::vector<Case> every_case() {
  std::vector<Case> all;
  add_elementwise(all);
  add_arithmetic(all);
  add_reductions(all);
  add_losses(all);
  add_selections(all);
  add_layers(all);
  add_leaves(all);
  return all;
}

// Whether just these arguments may have batches.
bool may(const Case &c, unsigned mask) {
  for (size_t k = 0; k < c.arguments.size(); ++k) {
    const bool has = mask >> k & 1, first = mask & 1;
    const Batches when = c.arguments[k].batches;
    if ((has && when == Batches::never) || (has && !first && when == Batches::after_first) ||
        (has != first && when == Batches::with_first))
      return false;
  }
  return true;
}

// All combinations of batches for few arguments; for many, none, all, and each alone.
std::vector<Form> forms_of(const Case &c) {
  std::vector<Form> forms = {
      {"parameters", 0, false, false}, {"computed", 0, true, false}, {"repeated", 0, true, true}};
  unsigned can = 0;
  for (size_t k = 0; k < c.arguments.size(); ++k)
    can |= c.arguments[k].batches != Batches::never ? 1u << k : 0u;
  for (unsigned mask = 1; mask < 1u << c.arguments.size(); ++mask) {
    const bool single = (mask & (mask - 1)) == 0;
    if (!may(c, mask) || (c.arguments.size() > 3 && mask != can && !single))
      continue;
    std::string name = "batched";
    for (size_t k = 0; k < c.arguments.size() && mask != can; ++k)
      name += mask >> k & 1 ? " " + std::to_string(k) : "";
    forms.push_back({name, mask, false, false});
    if (mask == can)
      forms.push_back({"batched, repeated", mask, false, true});
  }
  return forms;
}

// ---- the check -----------------------------------------------------------------------

const float step = .005f;

// The loss where each element is moved by t*direction. Masks and noise are the same in each
// evaluation.
float moved(Instance &p, ComputationGraph &cg, const Expression &loss,
            const std::vector<std::vector<float>> &direction, float t) {
  std::vector<std::vector<float>> v = p.values;
  for (size_t k = 0; k < v.size(); ++k)
    for (size_t i = 0; i < v[k].size(); ++i)
      v[k][i] += t * direction[k][i];
  p.set(v);
  reset_rng(11);
  return as_scalar(cg.forward(loss));
}

// The derivative of the loss in a direction, by differences of fourth order.
float measured(Instance &p, ComputationGraph &cg, const Expression &loss,
               const std::vector<std::vector<float>> &direction) {
  const float near = moved(p, cg, loss, direction, step) - moved(p, cg, loss, direction, -step);
  const float far =
      moved(p, cg, loss, direction, 2 * step) - moved(p, cg, loss, direction, -2 * step);
  return (8 * near - far) / (12 * step);
}

void differ(const Instance &p, const std::string &what, float have, float want) {
  std::ostringstream s;
  s << p.c.name << ", " << p.form.name << ": " << what << " is " << have << ", not " << want;
  throw tests::Failure{s.str()};
}

// Directions: all elements of one argument, each up or down.
void agrees_with_differences(Instance &p, const std::vector<std::vector<float>> &gradient) {
  ComputationGraph cg;
  const Expression loss = p.loss(p.c.measured ? p.c.measured : p.c.call, cg);
  Numbers numbers(3);
  for (size_t k = 0; k < p.values.size(); ++k)
    for (int n = 0; n < 2; ++n) {
      std::vector<std::vector<float>> direction;
      for (const std::vector<float> &v : p.values)
        direction.emplace_back(v.size(), 0.f);
      float want = 0, size = 1;
      for (size_t i = 0; i < direction[k].size(); ++i) {
        direction[k][i] = numbers.sign();
        want += direction[k][i] * gradient[k][i];
        size += std::fabs(gradient[k][i]);
      }
      const float have = measured(p, cg, loss, direction);
      if (!(std::fabs(have - want) <= 1e-3f * size))
        differ(p, "along argument " + std::to_string(k) + " the gradient", want, have);
    }
}

// What an update by gradient descent with rate 1 has taken from the values.
void were_subtracted(const Instance &p, const std::vector<std::vector<float>> &gradient,
                     const std::string &by) {
  const std::vector<std::vector<float>> now = p.read(VPPS_VALUES);
  for (size_t k = 0; k < now.size(); ++k)
    for (size_t i = 0; i < now[k].size(); ++i) {
      const float have = p.values[k][i] - now[k][i], want = gradient[k][i];
      if (!(std::fabs(have - want) <= 1e-5f * (4 + std::fabs(want))))
        differ(p,
               "argument " + std::to_string(k) + ", element " + std::to_string(i) +
                   ": the gradient by " + by,
               have, want);
    }
}

struct Checker {
  Model model;
  SimpleSGDTrainer of_handle, of_calls;
  std::unique_ptr<vpps::handle> hndl;
  std::set<std::string> seen;
  size_t checked = 0;
  Checker() : of_handle(model.all, 1), of_calls(model.all, 1) {
    of_handle.clipping_enabled = of_calls.clipping_enabled = false;
  }

  void check(const Case &c, const Form &f) {
    Instance p(c, f, model);
    ++checked;
    p.set(p.values);
    reset_rng(11);
    std::vector<std::vector<float>> gradient;
    {
      ComputationGraph cg;
      const Expression loss = p.loss(c.call, cg);
      cg.backward(loss);
      gradient = p.read(VPPS_GRADIENT);
      model.all.reset_gradient();
      for (const Node *node : cg.nodes)
        seen.insert(node->name);
    }
    agrees_with_differences(p, gradient);
    for (int n = 0; n < 3; ++n) { // the second or third is foreseen
      p.set(p.values);
      reset_rng(11);
      ComputationGraph cg;
      const Expression loss = p.loss(c.call, cg);
      cg.forward(loss);
      cg.backward(loss);
      of_calls.update();
      were_subtracted(p, gradient, "three calls");
    }
    p.set(p.values);
    reset_rng(11);
    ComputationGraph cg;
    hndl->fb(model.all, cg, p.loss(c.call, cg));
    were_subtracted(p, gradient, "fb");
  }
};

// Operations of the tests below.
const std::set<std::string> elsewhere = {"ConstParameterNode", "LookupNode", "ConstLookupNode"};

} // namespace

TEST(every_function_in_every_form) {
  Checker all;
  const std::vector<Case> cases = every_case();
  for (const Case &c : cases)
    for (const Form &f : forms_of(c))
      Instance(c, f, all.model); // adds the parameters
  all.hndl.reset(new vpps::handle(all.model.all, all.of_handle));
  std::string wrong;
  for (const Case &c : cases)
    for (const Form &f : forms_of(c))
      try {
        all.check(c, f);
      } catch (const tests::Failure &failure) {
        wrong += "\n  " + failure.reason;
      } catch (const std::exception &e) {
        wrong += "\n  " + std::string(c.name) + ", " + f.name + ": threw: " + e.what();
      }
  std::cout << cases.size() << " functions, " << all.checked << " forms\n";
#define NAMED(code, NAME, name, arguments, words)                                                  \
  if (!all.seen.count(name) && !elsewhere.count(name))                                             \
    wrong += "\n  " name " has no case here";
  VPPS_OPS(NAMED)
  if (!wrong.empty())
    throw tests::Failure{wrong};
}

// Rows looked up once, twice and never; a table as a whole; the same as constants. All of it in
// closed form: the loss is linear in each place where a parameter stands.
TEST(rows_tables_and_constants) {
  ParameterCollection m;
  LookupParameter table = m.add_lookup_parameters(4, {2});
  Parameter p = m.add_parameters({2, 4});
  const std::vector<float> start = {1, 2, 3, 4, 5, 6, 7, 8};
  SimpleSGDTrainer trainer(m, 1);
  trainer.clipping_enabled = false;
  vpps::handle hndl(m, trainer);
  auto reset = [&] {
    for (unsigned row = 0; row < 4; ++row)
      table.initialize(row, {start[2 * row], start[2 * row + 1]});
    p.set_value(start);
  };
  auto loss = [&](ComputationGraph &cg) {
    std::vector<Expression> terms;
    auto add = [&](const Expression &e, float factor) {
      std::vector<float> weights(e.dim().size());
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = factor * static_cast<float>(i + 1);
      terms.push_back(sum_batches(dot_product(e, input(cg, e.dim(), weights))));
    };
    add(lookup(cg, table, 1u), 1);
    add(lookup(cg, table, std::vector<unsigned>{2, 0, 2}), 10);
    add(const_lookup(cg, table, 3u), 100);
    add(const_lookup(cg, table, std::vector<unsigned>{1, 1}), 100);
    add(parameter(cg, table), .125f);
    add(const_parameter(cg, table), 100);
    add(parameter(cg, p), 1);
    add(const_parameter(cg, p), 100);
    return sum(terms);
  };
  // Row 0 is element 1 of its batch, row 2 elements 0 and 2.
  const std::vector<float> rows = {.125f + 30, .25f + 40, .375f + 1, .5f + 2,
                                   .625f + 60, .75f + 80, .875f,     1};
  const std::vector<float> whole = {1, 2, 3, 4, 5, 6, 7, 8};
  auto expect = [&](vpps_part part, const std::string &by) {
    const std::vector<float> t = table.p.unexposed()->read(part), w = p.p.unexposed()->read(part);
    for (size_t i = 0; i < 8; ++i) {
      const float of_table = part == VPPS_GRADIENT ? t[i] : start[i] - t[i];
      const float of_p = part == VPPS_GRADIENT ? w[i] : start[i] - w[i];
      if (of_table != rows[i] || of_p != whole[i])
        throw tests::Failure{by + ", element " + std::to_string(i) + ": " +
                             std::to_string(of_table) + " and " + std::to_string(of_p)};
    }
  };
  reset();
  {
    ComputationGraph cg;
    cg.backward(loss(cg));
    expect(VPPS_GRADIENT, "backward");
    m.reset_gradient();
  }
  for (int n = 0; n < 3; ++n) {
    reset();
    ComputationGraph cg;
    const Expression l = loss(cg);
    cg.forward(l);
    cg.backward(l);
    trainer.update();
    expect(VPPS_VALUES, "three calls");
  }
  reset();
  ComputationGraph cg;
  hndl.fb(m, cg, loss(cg));
  expect(VPPS_VALUES, "fb");
}

int main(int argc, char **argv) {
  dynet::initialize(argc, argv);
  return tests::run_tests();
}
