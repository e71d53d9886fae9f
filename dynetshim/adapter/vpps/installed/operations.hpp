// Which operation of the wire format each of DyNet's node classes is, and how its attributes
// are read. A class that is not listed here is refused by name.
#ifndef VPPS_INSTALLED_OPERATIONS_HPP
#define VPPS_INSTALLED_OPERATIONS_HPP

#include <dynet/nodes.h>
#include <dynet/param-nodes.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <typeinfo>
#include <vector>

#include "recording.hpp"
#include "reveal.hpp"

namespace vpps {
namespace installed {

VPPS_REVEAL(SumDimension, std::vector<unsigned>, dims)
VPPS_REVEAL(SumDimension, bool, include_batch_dim)
VPPS_REVEAL(MomentDimension, std::vector<unsigned>, dims)
VPPS_REVEAL(MomentDimension, unsigned, order)
VPPS_REVEAL(MomentDimension, bool, include_batch_dim)
VPPS_REVEAL(MomentDimension, unsigned, overwrite_n)
VPPS_REVEAL(StdDimension, std::vector<unsigned>, dims)
VPPS_REVEAL(StdDimension, bool, include_batch_dim)
VPPS_REVEAL(StdDimension, unsigned, overwrite_n)
VPPS_REVEAL(LogSumExpDimension, unsigned, dimension)
VPPS_REVEAL(CumulativeSum, unsigned, d)
VPPS_REVEAL(PoissonRegressionLoss, unsigned, ty)
VPPS_REVEAL(PoissonRegressionLoss, const unsigned *, pty)

inline uint32_t axis_mask(const std::vector<unsigned> &axes) {
  uint32_t mask = 0;
  for (unsigned a : axes)
    mask |= 1u << a;
  return mask;
}

// ---- who writes what ---------------------------------------------------------

template <class N> const N &as(const dynet::Node &n) { return static_cast<const N &>(n); }

inline void write_input(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::InputNode &n = as<dynet::InputNode>(node);
  r.head(VPPS_OP_INPUT_NODE, dim_id, {r.inputs_at()});
  const size_t size = node.dim.size();
  if (n.pdata != &n.data)
    return r.later(patch::floats, n.pdata, size);
  if (n.data.size() < size)
    throw std::invalid_argument("input: the dim has " + std::to_string(size) +
                                " elements, the data " + std::to_string(n.data.size()));
  r.now(n.data.data(), size);
}

inline void write_scalar_input(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::ScalarInputNode &n = as<dynet::ScalarInputNode>(node);
  r.head(VPPS_OP_SCALAR_INPUT_NODE, dim_id, {r.inputs_at()});
  if (n.pdata == &n.data)
    r.now(n.pdata, 1);
  else
    r.later(patch::one_float, n.pdata, 1);
}

inline void write_sparse_input(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::SparseInputNode &n = as<dynet::SparseInputNode>(node);
  if (n.ids.size() != n.data.size())
    throw std::invalid_argument("input: " + std::to_string(n.ids.size()) + " ids but " +
                                std::to_string(n.data.size()) + " values");
  r.head(VPPS_OP_SPARSE_INPUT_NODE, dim_id,
         {bits(n.defdata), r.inputs_at(), static_cast<uint32_t>(n.ids.size())});
  r.now(n.ids.data(), n.ids.size());
  r.now(n.data.data(), n.data.size());
}

template <class N, uint32_t Code>
void write_parameter(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const N &n = as<N>(node);
  parameters &all = parameters::all();
  r.head(Code, dim_id, {n.params.p ? all.of(n.params.p).id : all.of(n.lparams.p).id});
}

inline void write_lookup(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::LookupNode &n = as<dynet::LookupNode>(node);
  r.head(r.trainable() ? VPPS_OP_LOOKUP_NODE : VPPS_OP_CONST_LOOKUP_NODE, dim_id,
         {parameters::all().of(n.params.p).id, r.inputs_at()});
  r.indices(n.pindex, &n.index, n.pindices, &n.indices);
}

template <class N> void write_alpha(recording &r, const dynet::Node &node, uint32_t dim_id);
#define VPPS_FLOAT_ATTRIBUTE(Class, CODE, name)                                                    \
  template <>                                                                                      \
  inline void write_alpha<dynet::Class>(recording & r, const dynet::Node &node, uint32_t dim_id) { \
    r.head(CODE, dim_id, {node.args[0], bits(as<dynet::Class>(node).name)});                       \
  }
VPPS_FLOAT_ATTRIBUTE(ConstantPlusX, VPPS_OP_CONSTANT_PLUS_X, c)
VPPS_FLOAT_ATTRIBUTE(ConstantMinusX, VPPS_OP_CONSTANT_MINUS_X, c)
VPPS_FLOAT_ATTRIBUTE(ConstScalarMultiply, VPPS_OP_CONST_SCALAR_MULTIPLY, alpha)
VPPS_FLOAT_ATTRIBUTE(SigmoidLinearUnit, VPPS_OP_SIGMOID_LINEAR_UNIT, beta)
VPPS_FLOAT_ATTRIBUTE(ScaleGradient, VPPS_OP_SCALE_GRADIENT, lambd)
#undef VPPS_FLOAT_ATTRIBUTE

inline void write_linear_unit(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::ExponentialLinearUnit &n = as<dynet::ExponentialLinearUnit>(node);
  r.head(VPPS_OP_EXPONENTIAL_LINEAR_UNIT, dim_id, {node.args[0], bits(n.lambda), bits(n.alpha)});
}
// DyNet's nodes do not keep the gradient mode: it is taken to be zero_gradient.
template <uint32_t Code>
void write_rounding(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(Code, dim_id, {node.args[0], bits(0)});
}
inline void write_gumbel(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::RandomGumbel &n = as<dynet::RandomGumbel>(node);
  r.head(VPPS_OP_RANDOM_GUMBEL, dim_id, {bits(n.mu), bits(n.beta)});
  r.will_draw();
}
inline void write_dropout(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(VPPS_OP_DROPOUT, dim_id, {node.args[0], bits(as<dynet::Dropout>(node).p)});
  r.will_draw();
}
inline void write_noise(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const float stddev = as<dynet::GaussianNoise>(node).stddev;
  r.head(VPPS_OP_GAUSSIAN_NOISE, dim_id, {node.args[0], bits(stddev)});
  r.will_draw();
}

inline void write_constant(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(VPPS_OP_CONSTANT, dim_id, {bits(as<dynet::Constant>(node).value)});
}
inline void write_normal(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::RandomNormal &n = as<dynet::RandomNormal>(node);
  r.head(VPPS_OP_RANDOM_NORMAL, dim_id, {bits(n.mean), bits(n.stddev)});
  r.will_draw();
}
inline void write_bernoulli(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::RandomBernoulli &n = as<dynet::RandomBernoulli>(node);
  r.head(VPPS_OP_RANDOM_BERNOULLI, dim_id, {bits(n.p), bits(n.scale)});
  r.will_draw();
}
inline void write_uniform(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::RandomUniform &n = as<dynet::RandomUniform>(node);
  r.head(VPPS_OP_RANDOM_UNIFORM, dim_id, {bits(n.left), bits(n.right)});
  r.will_draw();
}

inline void write_sum_dimension(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::SumDimension &n = as<dynet::SumDimension>(node);
  r.head(VPPS_OP_SUM_DIMENSION, dim_id,
         {node.args[0], axis_mask(VPPS_HIDDEN(n, SumDimension, dims)),
          VPPS_HIDDEN(n, SumDimension, include_batch_dim)});
}
inline void write_moment_dimension(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::MomentDimension &n = as<dynet::MomentDimension>(node);
  r.head(VPPS_OP_MOMENT_DIMENSION, dim_id,
         {node.args[0], axis_mask(VPPS_HIDDEN(n, MomentDimension, dims)),
          VPPS_HIDDEN(n, MomentDimension, order),
          VPPS_HIDDEN(n, MomentDimension, include_batch_dim),
          VPPS_HIDDEN(n, MomentDimension, overwrite_n)});
}
inline void write_average_columns(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(VPPS_OP_MOMENT_DIMENSION, dim_id, {node.args[0], axis_mask({1}), 1, 0, 0});
}
inline void write_transpose(recording &r, const dynet::Node &node, uint32_t dim_id) {
  uint32_t axes = 0, at = 0;
  for (unsigned d : as<dynet::Transpose>(node).dims)
    axes |= d << 4 * at++;
  r.head(VPPS_OP_TRANSPOSE, dim_id, {node.args[0], axes});
}
inline void write_concatenate(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.list(VPPS_OP_CONCATENATE, dim_id, node.args);
  r.words.push(as<dynet::Concatenate>(node).dimension);
}
inline void write_pick(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::PickElement &n = as<dynet::PickElement>(node);
  const uint32_t count = n.pval ? 1 : static_cast<uint32_t>(n.pvals->size());
  // On the wire one number stands for the whole batch; of a vector, each for one element.
  if (!n.pval && (count == 1 || r.batch(node.args[0]) != 1))
    r.match("pick", count, r.batch(node.args[0]));
  r.head(VPPS_OP_PICK_ELEMENT, dim_id, {node.args[0], n.dimension, r.inputs_at(), count});
  r.indices(n.pval, &n.val, n.pvals, &n.vals);
}
inline void write_pick_range(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::PickRange &n = as<dynet::PickRange>(node);
  r.head(VPPS_OP_PICK_RANGE, dim_id, {node.args[0], n.start, n.end, n.dim});
}
inline void write_pick_batch(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::PickBatchElements &n = as<dynet::PickBatchElements>(node);
  const uint32_t count = n.pval ? 1 : static_cast<uint32_t>(n.pvals->size());
  r.head(VPPS_OP_PICK_BATCH_ELEMENTS, dim_id, {node.args[0], r.inputs_at(), count});
  r.indices(n.pval, &n.val, n.pvals, &n.vals);
}
inline void write_softmax(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(VPPS_OP_SOFTMAX, dim_id, {node.args[0], as<dynet::Softmax>(node).dimension});
}
inline void write_neg_log_softmax(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::PickNegLogSoftmax &n = as<dynet::PickNegLogSoftmax>(node);
  r.match("pickneglogsoftmax", n.pval ? 1 : n.pvals->size(), r.batch(node.args[0]));
  r.head(VPPS_OP_PICK_NEG_LOG_SOFTMAX, dim_id, {node.args[0], r.inputs_at()});
  r.indices(n.pval, &n.val, n.pvals, &n.vals);
}
inline void write_hinge(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::Hinge &n = as<dynet::Hinge>(node);
  r.match("hinge", n.pelement ? 1 : n.pelements->size(), r.batch(node.args[0]));
  r.head(VPPS_OP_HINGE, dim_id, {node.args[0], bits(n.margin), r.inputs_at()});
  r.indices(n.pelement, &n.element, n.pelement ? nullptr : n.pelements, &n.elements);
}
inline void write_restricted(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const std::vector<unsigned> &rows = as<dynet::RestrictedLogSoftmax>(node).denom;
  r.head(VPPS_OP_RESTRICTED_LOG_SOFTMAX, dim_id,
         {node.args[0], r.inputs_at(), static_cast<uint32_t>(rows.size())});
  r.now(rows.data(), rows.size());
}
inline void write_gates(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::VanillaLSTMGates &n = as<dynet::VanillaLSTMGates>(node);
  if (n.weightnoise_std != 0)
    throw std::invalid_argument("VanillaLSTMGates: weightnoise_std must be 0 (weight noise is not "
                                "implemented)");
  r.list(n.dropout ? VPPS_OP_VANILLA_LSTM_GATES_DROPOUT : VPPS_OP_VANILLA_LSTM_GATES, dim_id,
         node.args);
  r.words.push(bits(n.forget_gate_bias));
}

inline void write_std_dimension(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::StdDimension &n = as<dynet::StdDimension>(node);
  r.head(VPPS_OP_STD_DIMENSION, dim_id,
         {node.args[0], axis_mask(VPPS_HIDDEN(n, StdDimension, dims)),
          VPPS_HIDDEN(n, StdDimension, include_batch_dim),
          VPPS_HIDDEN(n, StdDimension, overwrite_n)});
}
inline void write_log_sum_exp(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::LogSumExpDimension &n = as<dynet::LogSumExpDimension>(node);
  r.head(VPPS_OP_LOG_SUM_EXP_DIMENSION, dim_id,
         {node.args[0], VPPS_HIDDEN(n, LogSumExpDimension, dimension)});
}
inline void write_cumulative_sum(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::CumulativeSum &n = as<dynet::CumulativeSum>(node);
  r.head(VPPS_OP_CUMULATIVE_SUM, dim_id, {node.args[0], VPPS_HIDDEN(n, CumulativeSum, d)});
}
inline void write_hinge_dim(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::HingeDim &n = as<dynet::HingeDim>(node);
  uint32_t count = n.pelement ? static_cast<uint32_t>(n.pelement->size()) : 0;
  if (!n.pelement)
    for (const std::vector<unsigned> &v : *n.pelements)
      count += static_cast<uint32_t>(v.size());
  r.head(VPPS_OP_HINGE_DIM, dim_id, {node.args[0], bits(n.margin), n.d, r.inputs_at(), count});
  if (n.pelement)
    return r.indices(nullptr, &count, n.pelement, &n.element);
  for (const std::vector<unsigned> &v : *n.pelements)
    r.indices(nullptr, &count, &v, n.pelements == &n.elements ? &v : nullptr);
}
inline void write_poisson(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::PoissonRegressionLoss &n = as<dynet::PoissonRegressionLoss>(node);
  r.head(VPPS_OP_POISSON_REGRESSION_LOSS, dim_id, {node.args[0], r.inputs_at()});
  r.indices(VPPS_HIDDEN(n, PoissonRegressionLoss, pty), &VPPS_HIDDEN(n, PoissonRegressionLoss, ty),
            nullptr, nullptr);
}
inline void write_listed(recording &r, uint32_t op, uint32_t dim_id, const dynet::Node &node,
                         const std::vector<unsigned> &list, const std::vector<unsigned> &own) {
  const uint32_t count = static_cast<uint32_t>(list.size());
  r.head(op, dim_id, {node.args[0], r.inputs_at(), count});
  r.indices(nullptr, &count, &list, &own);
}
inline void write_select_rows(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::SelectRows &n = as<dynet::SelectRows>(node);
  write_listed(r, VPPS_OP_SELECT_ROWS, dim_id, node, *n.prows, n.rows);
}
inline void write_select_cols(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::SelectCols &n = as<dynet::SelectCols>(node);
  write_listed(r, VPPS_OP_SELECT_COLS, dim_id, node, *n.pcols, n.cols);
}
inline void write_sparsemax_loss(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::SparsemaxLoss &n = as<dynet::SparsemaxLoss>(node);
  write_listed(r, VPPS_OP_SPARSEMAX_LOSS, dim_id, node, *n.pq, n.q);
}
inline void write_strided_select(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::StridedSelect &n = as<dynet::StridedSelect>(node);
  const vpps_dim &d = r.dim(node.args[0]);
  r.head(VPPS_OP_STRIDED_SELECT, dim_id, {node.args[0]});
  for (size_t i = 0; i < 5; ++i) { // of an axis that is not there, and of the batch at the end
    const size_t k = i == 4 ? d.nd : i < d.nd ? i : d.nd + 1;
    const uint32_t end = i == 4 ? d.bd : i < d.nd ? d.d[i] : 1;
    r.words.push(k < n.from.size() ? static_cast<uint32_t>(n.from[k]) : 0);
    r.words.push(k < n.to.size() ? static_cast<uint32_t>(n.to[k]) : end);
    r.words.push(k < n.strides.size() ? static_cast<uint32_t>(n.strides[k]) : 1);
  }
}
inline void write_conv2d(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::Conv2D &n = as<dynet::Conv2D>(node);
  r.list(VPPS_OP_CONV2_D, dim_id, node.args);
  r.words.push(n.stride[0]);
  r.words.push(n.stride[1]);
  r.words.push(n.is_valid);
}
inline void write_max_pooling(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::MaxPooling2D &n = as<dynet::MaxPooling2D>(node);
  r.head(VPPS_OP_MAX_POOLING2_D, dim_id,
         {node.args[0], n.ksize[0], n.ksize[1], n.stride[0], n.stride[1], n.is_valid});
}
inline void write_kmax(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::KMaxPooling &n = as<dynet::KMaxPooling>(node);
  r.head(VPPS_OP_K_MAX_POOLING, dim_id, {node.args[0], n.k, n.pooled_dim});
}
inline void write_argmax(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const float slope = as<dynet::Argmax>(node).straight_through ? 1.f : 0.f;
  r.head(VPPS_OP_ARGMAX, dim_id, {node.args[0], bits(slope)});
}
inline void write_dropout_dim(recording &r, const dynet::Node &node, uint32_t dim_id) {
  const dynet::DropoutDim &n = as<dynet::DropoutDim>(node);
  r.head(VPPS_OP_DROPOUT_DIM, dim_id, {node.args[0], n.dimension, bits(n.p)});
  r.will_draw();
}
template <class N, uint32_t Code, float N::*P>
void write_dropout_of(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(Code, dim_id, {node.args[0], bits(as<N>(node).*P)});
  r.will_draw();
}
// One attribute, a whole number or a float.
template <class N, uint32_t Code, unsigned N::*P>
void write_whole(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(Code, dim_id, {node.args[0], as<N>(node).*P});
}
template <class N, uint32_t Code, float N::*P>
void write_pair(recording &r, const dynet::Node &node, uint32_t dim_id) {
  r.head(Code, dim_id, {node.args[0], node.args[1], bits(as<N>(node).*P)});
}

// ---- the table ---------------------------------------------------------------

// Classes whose words are only their arguments.
#define VPPS_PLAIN_OPERATIONS(ONE)                                                                 \
  ONE(Tanh, TANH)                                                                                  \
  ONE(LogisticSigmoid, LOGISTIC_SIGMOID)                                                           \
  ONE(Rectify, RECTIFY)                                                                            \
  ONE(Exp, EXP)                                                                                    \
  ONE(Log, LOG)                                                                                    \
  ONE(Sqrt, SQRT)                                                                                  \
  ONE(Square, SQUARE)                                                                              \
  ONE(Abs, ABS)                                                                                    \
  ONE(Negate, NEGATE)                                                                              \
  ONE(NoBackprop, NO_BACKPROP)                                                                     \
  ONE(Reshape, RESHAPE)                                                                            \
  ONE(ToDevice, RESHAPE)                                                                           \
  ONE(Sin, SIN)                                                                                    \
  ONE(Cos, COS)                                                                                    \
  ONE(Tan, TAN)                                                                                    \
  ONE(Asin, ASIN)                                                                                  \
  ONE(Acos, ACOS)                                                                                  \
  ONE(Atan, ATAN)                                                                                  \
  ONE(Sinh, SINH)                                                                                  \
  ONE(Cosh, COSH)                                                                                  \
  ONE(Asinh, ASINH)                                                                                \
  ONE(Acosh, ACOSH)                                                                                \
  ONE(Atanh, ATANH)                                                                                \
  ONE(Erf, ERF)                                                                                    \
  ONE(Cube, CUBE)                                                                                  \
  ONE(LogGamma, LOG_GAMMA)                                                                         \
  ONE(LogSigmoid, LOG_SIGMOID)                                                                     \
  ONE(SoftSign, SOFT_SIGN)                                                                         \
  ONE(LogSumExp, LOG_SUM_EXP)                                                                      \
  ONE(WeightNormalization, WEIGHT_NORMALIZATION)                                                   \
  ONE(TraceOfProduct, TRACE_OF_PRODUCT)                                                            \
  ONE(MatrixInverse, MATRIX_INVERSE)                                                               \
  ONE(LogDet, LOG_DET)                                                                             \
  ONE(InnerProduct3D_1D, INNER_PRODUCT3_D_1_D)                                                     \
  ONE(InnerProduct3D_1D_1D, INNER_PRODUCT3_D_1_D_1_D)                                              \
  ONE(CircularConvolution, CIRCULAR_CONVOLUTION)                                                   \
  ONE(CircularCorrelation, CIRCULAR_CORRELATION)                                                   \
  ONE(Filter1DNarrow, FILTER1_D_NARROW)                                                            \
  ONE(L1Distance, L1_DISTANCE)                                                                     \
  ONE(Sparsemax, SPARSEMAX)                                                                        \
  ONE(ConstrainedSoftmax, CONSTRAINED_SOFTMAX)                                                     \
  ONE(CwiseSum, CWISE_SUM)                                                                         \
  ONE(CwiseMultiply, CWISE_MULTIPLY)                                                               \
  ONE(CwiseQuotient, CWISE_QUOTIENT)                                                               \
  ONE(Pow, POW)                                                                                    \
  ONE(Min, MIN)                                                                                    \
  ONE(Max, MAX)                                                                                    \
  ONE(Sum, SUM)                                                                                    \
  ONE(Average, AVERAGE)                                                                            \
  ONE(AddVectorToAllColumns, ADD_VECTOR_TO_ALL_COLUMNS)                                            \
  ONE(SumElements, SUM_ELEMENTS)                                                                   \
  ONE(DotProduct, DOT_PRODUCT)                                                                     \
  ONE(SquaredEuclideanDistance, SQUARED_EUCLIDEAN_DISTANCE)                                        \
  ONE(SquaredNorm, SQUARED_NORM)                                                                   \
  ONE(L2Norm, L2_NORM)                                                                             \
  ONE(AffineTransform, AFFINE_TRANSFORM)                                                           \
  ONE(MatrixMultiply, MATRIX_MULTIPLY)                                                             \
  ONE(ConcatenateToBatch, CONCATENATE_TO_BATCH)                                                    \
  ONE(LogSoftmax, LOG_SOFTMAX)                                                                     \
  ONE(BinaryLogLoss, BINARY_LOG_LOSS)                                                              \
  ONE(VanillaLSTMC, VANILLA_LSTMC)                                                                 \
  ONE(VanillaLSTMH, VANILLA_LSTMH)

inline const std::vector<operation> &operations() {
  static const std::vector<operation> table = [] {
    std::vector<operation> t = {
        {&typeid(dynet::InputNode), VPPS_OP_INPUT_NODE, false, write_input},
        {&typeid(dynet::ScalarInputNode), VPPS_OP_SCALAR_INPUT_NODE, false, write_scalar_input},
        {&typeid(dynet::SparseInputNode), VPPS_OP_SPARSE_INPUT_NODE, false, write_sparse_input},
        {&typeid(dynet::Constant), VPPS_OP_CONSTANT, false, write_constant},
        {&typeid(dynet::ParameterNode), VPPS_OP_PARAMETER_NODE, false,
         write_parameter<dynet::ParameterNode, VPPS_OP_PARAMETER_NODE>},
        {&typeid(dynet::ConstParameterNode), VPPS_OP_CONST_PARAMETER_NODE, false,
         write_parameter<dynet::ConstParameterNode, VPPS_OP_CONST_PARAMETER_NODE>},
        {&typeid(dynet::LookupNode), VPPS_OP_LOOKUP_NODE, false, write_lookup},
        {&typeid(dynet::RandomNormal), VPPS_OP_RANDOM_NORMAL, false, write_normal},
        {&typeid(dynet::RandomBernoulli), VPPS_OP_RANDOM_BERNOULLI, false, write_bernoulli},
        {&typeid(dynet::RandomUniform), VPPS_OP_RANDOM_UNIFORM, false, write_uniform},
        {&typeid(dynet::ConstantPlusX), VPPS_OP_CONSTANT_PLUS_X, false,
         write_alpha<dynet::ConstantPlusX>},
        {&typeid(dynet::ConstantMinusX), VPPS_OP_CONSTANT_MINUS_X, false,
         write_alpha<dynet::ConstantMinusX>},
        {&typeid(dynet::ConstScalarMultiply), VPPS_OP_CONST_SCALAR_MULTIPLY, false,
         write_alpha<dynet::ConstScalarMultiply>},
        {&typeid(dynet::SigmoidLinearUnit), VPPS_OP_SIGMOID_LINEAR_UNIT, false,
         write_alpha<dynet::SigmoidLinearUnit>},
        {&typeid(dynet::ScaleGradient), VPPS_OP_SCALE_GRADIENT, false,
         write_alpha<dynet::ScaleGradient>},
        {&typeid(dynet::ExponentialLinearUnit), VPPS_OP_EXPONENTIAL_LINEAR_UNIT, false,
         write_linear_unit},
        {&typeid(dynet::Round), VPPS_OP_ROUND, false, write_rounding<VPPS_OP_ROUND>},
        {&typeid(dynet::Ceil), VPPS_OP_CEIL, false, write_rounding<VPPS_OP_CEIL>},
        {&typeid(dynet::Floor), VPPS_OP_FLOOR, false, write_rounding<VPPS_OP_FLOOR>},
        {&typeid(dynet::RandomGumbel), VPPS_OP_RANDOM_GUMBEL, false, write_gumbel},
        {&typeid(dynet::Dropout), VPPS_OP_DROPOUT, false, write_dropout},
        {&typeid(dynet::GaussianNoise), VPPS_OP_GAUSSIAN_NOISE, false, write_noise},
        {&typeid(dynet::SumDimension), VPPS_OP_SUM_DIMENSION, false, write_sum_dimension},
        {&typeid(dynet::MomentDimension), VPPS_OP_MOMENT_DIMENSION, false, write_moment_dimension},
        {&typeid(dynet::Transpose), VPPS_OP_TRANSPOSE, false, write_transpose},
        {&typeid(dynet::Concatenate), VPPS_OP_CONCATENATE, true, write_concatenate},
        {&typeid(dynet::PickElement), VPPS_OP_PICK_ELEMENT, false, write_pick},
        {&typeid(dynet::PickRange), VPPS_OP_PICK_RANGE, false, write_pick_range},
        {&typeid(dynet::PickBatchElements), VPPS_OP_PICK_BATCH_ELEMENTS, false, write_pick_batch},
        {&typeid(dynet::Softmax), VPPS_OP_SOFTMAX, false, write_softmax},
        {&typeid(dynet::PickNegLogSoftmax), VPPS_OP_PICK_NEG_LOG_SOFTMAX, false,
         write_neg_log_softmax},
        {&typeid(dynet::Hinge), VPPS_OP_HINGE, false, write_hinge},
        {&typeid(dynet::RestrictedLogSoftmax), VPPS_OP_RESTRICTED_LOG_SOFTMAX, false,
         write_restricted},
        {&typeid(dynet::StdDimension), VPPS_OP_STD_DIMENSION, false, write_std_dimension},
        {&typeid(dynet::LogSumExpDimension), VPPS_OP_LOG_SUM_EXP_DIMENSION, false,
         write_log_sum_exp},
        {&typeid(dynet::CumulativeSum), VPPS_OP_CUMULATIVE_SUM, false, write_cumulative_sum},
        {&typeid(dynet::MaxDimension), VPPS_OP_MAX_DIMENSION, false,
         write_whole<dynet::MaxDimension, VPPS_OP_MAX_DIMENSION,
                     &dynet::MaxDimension::reduced_dim>},
        {&typeid(dynet::MinDimension), VPPS_OP_MIN_DIMENSION, false,
         write_whole<dynet::MinDimension, VPPS_OP_MIN_DIMENSION,
                     &dynet::MinDimension::reduced_dim>},
        {&typeid(dynet::FoldRows), VPPS_OP_FOLD_ROWS, false,
         write_whole<dynet::FoldRows, VPPS_OP_FOLD_ROWS, &dynet::FoldRows::nrows>},
        {&typeid(dynet::KMHNGram), VPPS_OP_KMHN_GRAM, false,
         write_whole<dynet::KMHNGram, VPPS_OP_KMHN_GRAM, &dynet::KMHNGram::n>},
        {&typeid(dynet::HuberDistance), VPPS_OP_HUBER_DISTANCE, false,
         write_pair<dynet::HuberDistance, VPPS_OP_HUBER_DISTANCE, &dynet::HuberDistance::d>},
        {&typeid(dynet::PairwiseRankLoss), VPPS_OP_PAIRWISE_RANK_LOSS, false,
         write_pair<dynet::PairwiseRankLoss, VPPS_OP_PAIRWISE_RANK_LOSS,
                    &dynet::PairwiseRankLoss::margin>},
        {&typeid(dynet::HingeDim), VPPS_OP_HINGE_DIM, false, write_hinge_dim},
        {&typeid(dynet::PoissonRegressionLoss), VPPS_OP_POISSON_REGRESSION_LOSS, false,
         write_poisson},
        {&typeid(dynet::SparsemaxLoss), VPPS_OP_SPARSEMAX_LOSS, false, write_sparsemax_loss},
        {&typeid(dynet::SelectRows), VPPS_OP_SELECT_ROWS, false, write_select_rows},
        {&typeid(dynet::SelectCols), VPPS_OP_SELECT_COLS, false, write_select_cols},
        {&typeid(dynet::StridedSelect), VPPS_OP_STRIDED_SELECT, false, write_strided_select},
        {&typeid(dynet::Conv2D), VPPS_OP_CONV2_D, true, write_conv2d},
        {&typeid(dynet::MaxPooling2D), VPPS_OP_MAX_POOLING2_D, false, write_max_pooling},
        {&typeid(dynet::KMaxPooling), VPPS_OP_K_MAX_POOLING, false, write_kmax},
        {&typeid(dynet::Argmax), VPPS_OP_ARGMAX, false, write_argmax},
        {&typeid(dynet::DropoutDim), VPPS_OP_DROPOUT_DIM, false, write_dropout_dim},
        {&typeid(dynet::DropoutBatch), VPPS_OP_DROPOUT_BATCH, false,
         write_dropout_of<dynet::DropoutBatch, VPPS_OP_DROPOUT_BATCH, &dynet::DropoutBatch::p>},
        {&typeid(dynet::BlockDropout), VPPS_OP_BLOCK_DROPOUT, false,
         write_dropout_of<dynet::BlockDropout, VPPS_OP_BLOCK_DROPOUT,
                          &dynet::BlockDropout::dropout_probability>},
        {&typeid(dynet::VanillaLSTMGates), VPPS_OP_VANILLA_LSTM_GATES, true, write_gates},
    };
    int args[256] = {0};
#define VPPS_OP(code, NAME, name, count, attrs) args[code] = count;
    VPPS_OPS(VPPS_OP)
#undef VPPS_OP
#define VPPS_PLAIN(Class, NAME)                                                                    \
  t.push_back({&typeid(dynet::Class), VPPS_OP_##NAME, args[VPPS_OP_##NAME] < 0, nullptr});
    VPPS_PLAIN_OPERATIONS(VPPS_PLAIN)
#undef VPPS_PLAIN
    return t;
  }();
  return table;
}

// DyNet 2.1's class for what is a MomentDimension later.
inline const operation *older_operation(const std::type_info &type) {
  static const operation average = {nullptr, VPPS_OP_MOMENT_DIMENSION, false,
                                    write_average_columns};
  return std::strcmp(type.name(), "N5dynet14AverageColumnsE") == 0 ? &average : nullptr;
}

inline const operation *recording::find(const std::type_info &type) {
  size_t at = reinterpret_cast<uintptr_t>(&type) / 16 % known_size;
  for (size_t tries = 0; tries < known_size; ++tries, at = (at + 1) % known_size) {
    if (known_[at].type == &type)
      return known_[at].op;
    if (known_[at].type == nullptr)
      break;
  }
  // Not at this address before: the same class may have several, one for each library.
  for (const operation &o : operations())
    if (*o.type == type) {
      if (known_[at].type == nullptr) {
        known_[at].type = &type;
        known_[at].op = &o;
      }
      return &o;
    }
  return older_operation(type);
}

} // namespace installed
} // namespace vpps
#endif
