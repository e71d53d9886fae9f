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
#undef VPPS_FLOAT_ATTRIBUTE

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
