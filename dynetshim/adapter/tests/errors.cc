// Every operation of the table, executed by DyNet itself and through the adapter on random
// inputs: the largest difference of a value and of a gradient, relative to the largest element of
// the tensor. Fails if one is too large, or if an operation of the table has no case here.
//
//   errors             prints what is wrong
//   errors --table     prints the table of docs/COMPATIBILITY.md
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/param-init.h>
#include <dynet/tensor.h>
#include <vpps/vpps.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" // it is C
#include "shape.h"
#pragma GCC diagnostic pop

using namespace dynet;
typedef std::vector<Expression> list;
typedef std::vector<unsigned> numbers;
typedef std::vector<float> floats;

namespace {

// Arguments that are parameters, so that all have gradients.
struct arguments {
  ComputationGraph &cg;
  Parameter *p;
  LookupParameter &table;
  floats &data;                                                    // 6 numbers
  Expression v(int k = 0) { return parameter(cg, p[k]); }          // {4}, from 0 to 3
  Expression matrix(int k = 0) { return parameter(cg, p[4 + k]); } // {4,3}
  Expression square() { return parameter(cg, p[6]); }              // {4,4}
  Expression positive() { return parameter(cg, p[7]); }            // {4}, from 0.2 to 1.2
  Expression scalar() { return parameter(cg, p[8]); }              // {1}, from 0.2 to 1.2
  Expression inputs_weights() { return parameter(cg, p[9]); }      // {16,4}
  Expression states_weights() { return parameter(cg, p[10]); }     // {16,4}
  Expression gates_bias() { return parameter(cg, p[11]); }         // {16}
  Expression gates() {
    return vanilla_lstm_gates(v(0), v(1), inputs_weights(), states_weights(), gates_bias());
  }
  Expression batch() { return concatenate_to_batch({v(0), v(1), v(2)}); }
  Expression image() { return reshape(square(), {4, 4, 1}); }
  Expression cube() { return reshape(inputs_weights(), {4, 4, 4}); }
  Expression definite() { // symmetric, with no eigenvalue below 1
    return square() * transpose(square()) +
           input(cg, {4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  }
};

typedef std::function<Expression(arguments &)> operation;
#define CASE(NAME, ...)                                                                            \
  {                                                                                                \
    VPPS_OP_##NAME, [](arguments &a) -> Expression {                                               \
      (void)a;                                                                                     \
      return __VA_ARGS__;                                                                          \
    }                                                                                              \
  }

// Left out is where DyNet's own are wrong: logsumexp_dim along axis 1 of more rows than columns, a
// beta of silu, contract3d_1d without a bias, and any cotangent of poisson_loss but 1.
const std::multimap<uint32_t, operation> cases = {
    CASE(INPUT_NODE, cmult(input(a.cg, Dim({3}, 2), a.data), pick_range(a.v(), 0, 3))),
    CASE(SCALAR_INPUT_NODE, input(a.cg, a.data[0]) * a.scalar()),
    CASE(SPARSE_INPUT_NODE,
         input(a.cg, {4}, numbers({1, 3}), {a.data[0], a.data[1]}, 0.5f) + a.v()),
    CASE(CONSTANT, constant(a.cg, {4}, a.data[0]) + a.v()),
    CASE(PARAMETER_NODE, a.v()),
    CASE(PARAMETER_NODE, parameter(a.cg, a.table)),
    CASE(CONST_PARAMETER_NODE, const_parameter(a.cg, a.p[0]) + a.v(1)),
    CASE(LOOKUP_NODE, lookup(a.cg, a.table, 2u)),
    CASE(LOOKUP_NODE, lookup(a.cg, a.table, numbers({3, 1, 3}))),
    CASE(CONST_LOOKUP_NODE, const_lookup(a.cg, a.table, 2u) + a.v()),
    CASE(TANH, tanh(a.v())),
    CASE(LOGISTIC_SIGMOID, logistic(a.v())),
    CASE(RECTIFY, rectify(a.v())),
    CASE(EXP, exp(a.v())),
    CASE(LOG, log(a.positive())),
    CASE(SQRT, sqrt(a.positive())),
    CASE(SQUARE, square(a.v())),
    CASE(ABS, abs(a.v())),
    CASE(NEGATE, -a.v()),
    CASE(CONSTANT_PLUS_X, a.v() + 0.7f),
    CASE(CONSTANT_MINUS_X, 0.7f - a.v()),
    CASE(CONST_SCALAR_MULTIPLY, a.v() * 0.7f),
    CASE(NO_BACKPROP, nobackprop(a.v()) + a.v(1)),
    CASE(RESHAPE, reshape(a.square(), {2, 8})),
    CASE(CWISE_SUM, a.v() + a.v(1)),
    CASE(CWISE_SUM, a.matrix() + a.v()),
    CASE(CWISE_SUM, a.batch() + a.v()),
    CASE(CWISE_MULTIPLY, cmult(a.v(), a.v(1))),
    CASE(CWISE_MULTIPLY, cmult(a.batch(), a.v())),
    CASE(CWISE_QUOTIENT, cdiv(a.v(), a.positive())),
    CASE(POW, pow(a.positive(), a.scalar())),
    CASE(MIN, min(a.v(), a.v(1))),
    CASE(MAX, max(a.v(), a.v(1))),
    CASE(SUM, sum({a.v(), a.v(1), a.batch()})),
    CASE(AVERAGE, average({a.v(), a.v(1)})),
    CASE(ADD_VECTOR_TO_ALL_COLUMNS, colwise_add(a.matrix(), a.v())),
    CASE(SUM_ELEMENTS, sum_elems(a.matrix())),
    CASE(SUM_DIMENSION, sum_dim(a.matrix(), {1})),
    CASE(SUM_DIMENSION, sum_batches(a.batch())),
    CASE(MOMENT_DIMENSION, moment_dim(a.matrix(), {0}, 2)),
    CASE(MOMENT_DIMENSION, mean_batches(a.batch())),
    CASE(DOT_PRODUCT, dot_product(a.v(), a.v(1))),
    CASE(SQUARED_EUCLIDEAN_DISTANCE, squared_distance(a.batch(), a.v(3))),
    CASE(SQUARED_NORM, squared_norm(a.v())),
    CASE(L2_NORM, l2_norm(a.v())),
    CASE(AFFINE_TRANSFORM, affine_transform({a.v(), a.square(), a.v(1), a.square(), a.batch()})),
    CASE(MATRIX_MULTIPLY, a.square() * a.matrix()),
    CASE(TRANSPOSE, transpose(a.matrix())),
    CASE(CONCATENATE, concatenate({a.v(), a.batch()})),
    CASE(CONCATENATE, concatenate({a.matrix(), a.matrix(1)}, 1)),
    CASE(CONCATENATE_TO_BATCH, a.batch()),
    CASE(PICK_ELEMENT, pick(a.matrix(), 2u, 1)),
    CASE(PICK_ELEMENT, pick(a.batch(), numbers({3, 0, 1}))),
    CASE(PICK_RANGE, pick_range(a.matrix(), 1, 3, 1)),
    CASE(PICK_BATCH_ELEMENTS, pick_batch_elems(a.batch(), numbers({2, 2, 0}))),
    CASE(SOFTMAX, softmax(a.matrix())),
    CASE(SOFTMAX, softmax(a.matrix(), 1)),
    CASE(LOG_SOFTMAX, log_softmax(a.matrix())),
    CASE(PICK_NEG_LOG_SOFTMAX, pickneglogsoftmax(a.v(), 2u)),
    CASE(PICK_NEG_LOG_SOFTMAX, pickneglogsoftmax(a.batch(), numbers({0, 1, 3}))),
    CASE(HINGE, hinge(a.v(), 2u, 1.5f)),
    CASE(HINGE, hinge(a.batch(), numbers({0, 1, 3}))),
    CASE(BINARY_LOG_LOSS, binary_log_loss(logistic(a.v()), logistic(a.v(1)))),
    // Rows outside the restriction are -inf.
    CASE(RESTRICTED_LOG_SOFTMAX, pick_range(log_softmax(a.v(), numbers({0, 1})), 0, 2)),
    CASE(LOG_SIGMOID, log_sigmoid(a.v())),
    CASE(LOG_GAMMA, lgamma(a.positive())),
    CASE(ERF, erf(a.v())),
    CASE(CUBE, cube(a.v())),
    CASE(SOFT_SIGN, softsign(a.v())),
    CASE(EXPONENTIAL_LINEAR_UNIT, elu(a.v(), 0.7f)),
    CASE(SIGMOID_LINEAR_UNIT, silu(a.v())),
    CASE(SIN, sin(a.v())),
    CASE(COS, cos(a.v())),
    CASE(TAN, tan(a.v())),
    CASE(ASIN, asin(a.v() * 0.8f)),
    CASE(ACOS, acos(a.v() * 0.8f)),
    CASE(ATAN, atan(a.v())),
    CASE(SINH, sinh(a.v())),
    CASE(COSH, cosh(a.v())),
    CASE(ASINH, asinh(a.v())),
    CASE(ACOSH, acosh(a.positive() + 1)),
    CASE(ATANH, atanh(a.v() * 0.8f)),
    CASE(ROUND, round(a.v() * 3, straight_through_gradient)),
    CASE(CEIL, ceil(a.v() * 3, straight_through_gradient)),
    CASE(FLOOR, floor(a.v() * 3, zero_gradient) + a.v()),
    CASE(SCALE_GRADIENT, scale_gradient(a.v(), 0.3f)),
    CASE(ARGMAX, argmax(a.v(), straight_through_gradient)),
    CASE(MAX_DIMENSION, max_dim(a.matrix(), 1)),
    CASE(MIN_DIMENSION, min_dim(a.matrix())),
    CASE(K_MAX_POOLING, kmax_pooling(a.matrix(), 2)),
    CASE(CUMULATIVE_SUM, cumsum(a.matrix(), 1)),
    CASE(STD_DIMENSION, std_dim(a.matrix(), {0})),
    CASE(LOG_SUM_EXP, logsumexp({a.v(), a.v(1)})),
    CASE(LOG_SUM_EXP_DIMENSION, logsumexp_dim(a.square(), 1)),
    CASE(SPARSEMAX, sparsemax(a.v())),
    CASE(SPARSEMAX_LOSS, sparsemax_loss(a.v(), {1, 2}) + 1 /* it may be 0 */),
    CASE(CONSTRAINED_SOFTMAX, constrained_softmax(a.v(), a.positive() + 0.2f)),
    CASE(HINGE_DIM, hinge_dim(a.matrix(), numbers({0, 1, 3}), 0, 1.5f)),
    CASE(POISSON_REGRESSION_LOSS, poisson_loss(a.scalar(), 2) / 0.3f /* the cotangent */),
    CASE(PAIRWISE_RANK_LOSS,
         pairwise_rank_loss(reshape(a.v(), Dim({1}, 4)), reshape(a.v(1), Dim({1}, 4)), 0.5f)),
    CASE(L1_DISTANCE, l1_distance(a.v(), a.v(1))),
    CASE(HUBER_DISTANCE, huber_distance(a.v(), a.v(1), 0.4f)),
    CASE(SELECT_ROWS, select_rows(a.matrix(), numbers({2, 0}))),
    CASE(SELECT_COLS, select_cols(a.matrix(), numbers({2, 0}))),
    CASE(STRIDED_SELECT, strided_select(a.square(), {2, 1}, {0, 1}, {4, 3})),
    CASE(FOLD_ROWS, fold_rows(a.matrix())),
    CASE(KMHN_GRAM, kmh_ngram(a.matrix(), 2)),
    CASE(FILTER1_D_NARROW, filter1d_narrow(a.matrix(), reshape(a.square(), {4, 2, 2}))),
    CASE(CONV2_D, conv2d(a.image(), reshape(a.v(), {2, 2, 1, 1}), {1, 1})),
    CASE(CONV2_D, conv2d(a.image(), reshape(a.v(), {2, 2, 1, 1}), a.scalar(), {2, 1}, false)),
    CASE(MAX_POOLING2_D, maxpooling2d(a.image(), {2, 2}, {2, 2})),
    CASE(CIRCULAR_CONVOLUTION, circ_conv(a.v(), a.v(1))),
    CASE(CIRCULAR_CORRELATION, circ_corr(a.v(), a.v(1))),
    CASE(INNER_PRODUCT3_D_1_D, contract3d_1d(a.cube(), a.v(), a.square())),
    CASE(INNER_PRODUCT3_D_1_D_1_D, contract3d_1d_1d(a.cube(), a.v(), a.v(1))),
    CASE(MATRIX_INVERSE, inverse(a.definite())),
    CASE(LOG_DET, logdet(a.definite())),
    CASE(TRACE_OF_PRODUCT, trace_of_product(a.square(), a.definite())),
    CASE(WEIGHT_NORMALIZATION, weight_norm(a.matrix(), a.scalar())),
    CASE(VANILLA_LSTM_GATES, a.gates()),
    CASE(VANILLA_LSTMC, vanilla_lstm_c(a.v(2), a.gates())),
    CASE(VANILLA_LSTMH, vanilla_lstm_h(a.v(2), a.gates())),
    CASE(VANILLA_LSTM_GATES_DROPOUT,
         vanilla_lstm_gates_dropout(a.v(0), a.v(1), a.inputs_weights(), a.states_weights(),
                                    a.gates_bias(), constant(a.cg, {4}, 2), ones(a.cg, {4}))),
};
// Their numbers differ from DyNet's by nature; that they are those of the distribution is
// tested elsewhere.
const std::set<uint32_t> random_ones = {
    VPPS_OP_DROPOUT,       VPPS_OP_DROPOUT_DIM,    VPPS_OP_DROPOUT_BATCH,
    VPPS_OP_BLOCK_DROPOUT, VPPS_OP_GAUSSIAN_NOISE, VPPS_OP_RANDOM_NORMAL,
    VPPS_OP_RANDOM_GUMBEL, VPPS_OP_RANDOM_UNIFORM, VPPS_OP_RANDOM_BERNOULLI};

struct error {
  double value = 0, gradient = 0;
  int cases = 0;
};

double difference(const floats &got, const floats &want) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < want.size(); i++) {
    worst = std::max(worst, std::fabs(double(got[i]) - want[i]));
    largest = std::max(largest, std::fabs(double(want[i])));
    if (got[i] != got[i])
      return INFINITY;
  }
  return largest > 0 ? worst / largest : worst;
}

class measurement {
public:
  measurement() {
    for (int k = 0; k < 12; k++)
      p_[k] = m_.add_parameters(k < 4 || k == 7 ? Dim({4})
                                : k < 6         ? Dim({4, 3})
                                : k == 6        ? Dim({4, 4})
                                : k == 8        ? Dim({1})
                                : k == 11       ? Dim({16})
                                                : Dim({16, 4}));
    table_ = m_.add_lookup_parameters(5, {4});
  }

  void add(const operation &f, error &e) {
    for (int round = 0; round < 20; round++) {
      for (int k = 0; k < 12; k++)
        TensorTools::randomize_uniform(p_[k].p->values, k == 7 || k == 8 ? 0.2f : -1.f, 1.2f);
      TensorTools::randomize_uniform(table_.p->all_values);
      vpps::push(m_);
      for (float &x : data_)
        x = rand01();
      const std::vector<floats> want = run(f, false), got = run(f, true);
      e.value = std::max(e.value, difference(got[0], want[0]));
      for (size_t k = 1; k < want.size(); k++)
        e.gradient = std::max(e.gradient, difference(got[k], want[k]));
    }
    e.cases++;
  }

private:
  // The value, then all gradients.
  std::vector<floats> run(const operation &f, bool accelerated) {
    m_.reset_gradient();
    ComputationGraph cg;
    if (accelerated)
      vpps::accelerate(cg);
    arguments a = {cg, p_, table_, data_};
    const Expression y = f(a);
    floats cotangent(y.dim().size());
    for (size_t i = 0; i < cotangent.size(); i++)
      cotangent[i] = 0.3f + 0.1f * float(i % 7);
    const Expression loss = sum_batches(dot_product(y, input(cg, y.dim(), cotangent)));
    cg.forward(loss);
    std::vector<floats> all(1, as_vector(y.value()));
    cg.backward(loss);
    for (Parameter &p : p_)
      all.push_back(as_vector(p.p->g));
    all.push_back(as_vector(table_.p->all_grads));
    return all;
  }

  ParameterCollection m_;
  Parameter p_[12];
  LookupParameter table_;
  floats data_ = floats(6);
};

} // namespace

int main(int argc, char **argv) {
  const bool table = argc > 1 && std::strcmp(argv[1], "--table") == 0;
  initialize(argc, argv);
  measurement m;
  int failed = 0;
  if (table)
    std::printf("| operation | value | gradient |\n| --- | --- | --- |\n");
  std::map<uint32_t, error> errors;
  for (const auto &c : cases)
    m.add(c.second, errors[c.first]);
  for (uint32_t code = 1; code < 256; code++) {
    const char *name = vpps_op_name(code);
    if (name == nullptr)
      continue;
    if (random_ones.count(code)) {
      if (table)
        std::printf("| %s | random | random |\n", name);
      continue;
    }
    const error &e = errors[code];
    if (e.cases == 0) {
      std::fprintf(stderr, "%s has no case: add one\n", name);
      failed++;
    } else if (!(e.value < 1e-5) || !(e.gradient < 1e-4)) {
      std::fprintf(stderr, "%s: value off by %g, gradient by %g\n", name, e.value, e.gradient);
      failed++;
    }
    if (table && e.cases)
      std::printf("| %s | %.1e | %.1e |\n", name, e.value, e.gradient);
  }
  return failed != 0;
}
