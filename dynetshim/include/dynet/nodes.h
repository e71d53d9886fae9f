/// \file
/// The classes of DyNet's nodes, such as Softmax and CwiseMultiply, of which the library executes
/// the operations. `cg.add_function<Softmax>({x.i}, 1)` is `softmax(x, 1)`, with the arguments and
/// defaults of DyNet's constructor. Other numbers of arguments are std::invalid_argument. What
/// cg.nodes lists is of these classes, so that dynamic_cast tells operations apart.
///
/// They differ from DyNet's: objects come from cg.nodes only, without the members that DyNet's have
/// for attributes, and a program derives from dynet::Node instead. The leaves, such as InputNode
/// and LookupNode, are added by the functions of expr.h.
#ifndef DYNET_NODES_H
#define DYNET_NODES_H

#include <string>
#include <utility>
#include <vector>

#include "dynet/dynet.h"

namespace dynet {

/// A node that the library executes, as cg.nodes shows it: the base of the classes below. Not
/// DyNet's.
struct RecordedNode : Node {
  std::string text; ///< what as_string writes, with marks in place of the arguments

  /// The node's shape.
  Dim dim_forward(const std::vector<Dim> &) const override { return dim; }
  /// DyNet's text for the operation.
  std::string as_string(const std::vector<std::string> &arg_names) const override;
  ///@{
  /// std::runtime_error: the graph has the value and the gradient.
  void forward_impl(const std::vector<const Tensor *> &, Tensor &) const override;
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &, unsigned,
                     Tensor &) const override;
  ///@}
  /// Yes.
  bool supports_multibatch() const override { return true; }

  /// Throws std::invalid_argument unless there are `least` to `most` arguments.
  static void expect(const char *name, const std::vector<Expression> &x, size_t least, size_t most);
};

/// \cond

// X(class, function): what add_function calls with the arguments and what else it was given.
#define DYNET_UNARY_NODES(X)                                                                       \
  X(Tanh, tanh)                                                                                    \
  X(LogisticSigmoid, logistic)                                                                     \
  X(Rectify, rectify)                                                                              \
  X(SoftSign, softsign)                                                                            \
  X(Erf, erf)                                                                                      \
  X(SigmoidLinearUnit, silu)                                                                       \
  X(Exp, exp)                                                                                      \
  X(Log, log)                                                                                      \
  X(Sqrt, sqrt)                                                                                    \
  X(Square, square)                                                                                \
  X(Cube, cube)                                                                                    \
  X(Abs, abs)                                                                                      \
  X(Negate, operator-)                                                                             \
  X(LogSigmoid, log_sigmoid)                                                                       \
  X(LogGamma, lgamma)                                                                              \
  X(Sin, sin)                                                                                      \
  X(Cos, cos)                                                                                      \
  X(Tan, tan)                                                                                      \
  X(Asin, asin)                                                                                    \
  X(Acos, acos)                                                                                    \
  X(Atan, atan)                                                                                    \
  X(Sinh, sinh)                                                                                    \
  X(Cosh, cosh)                                                                                    \
  X(Asinh, asinh)                                                                                  \
  X(Acosh, acosh)                                                                                  \
  X(Atanh, atanh)                                                                                  \
  X(ConstantPlusX, operator+)                                                                      \
  X(ConstScalarMultiply, operator*)                                                                \
  X(Dropout, dropout)                                                                              \
  X(DropoutDim, dropout_dim)                                                                       \
  X(DropoutBatch, dropout_batch)                                                                   \
  X(BlockDropout, block_dropout)                                                                   \
  X(GaussianNoise, noise)                                                                          \
  X(NoBackprop, nobackprop)                                                                        \
  X(ScaleGradient, scale_gradient)                                                                 \
  X(ToDevice, to_device)                                                                           \
  X(Reshape, reshape)                                                                              \
  X(Transpose, transpose)                                                                          \
  X(SumElements, sum_elems)                                                                        \
  X(SumDimension, sum_dim)                                                                         \
  X(MomentElements, moment_elems)                                                                  \
  X(MomentBatches, moment_batches)                                                                 \
  X(MomentDimension, moment_dim)                                                                   \
  X(StdElements, std_elems)                                                                        \
  X(StdBatches, std_batches)                                                                       \
  X(StdDimension, std_dim)                                                                         \
  X(LogSumExpDimension, logsumexp_dim)                                                             \
  X(CumulativeSum, cumsum)                                                                         \
  X(MaxDimension, max_dim)                                                                         \
  X(MinDimension, min_dim)                                                                         \
  X(SquaredNorm, squared_norm)                                                                     \
  X(L2Norm, l2_norm)                                                                               \
  X(MatrixInverse, inverse)                                                                        \
  X(LogDet, logdet)                                                                                \
  X(KMaxPooling, kmax_pooling)                                                                     \
  X(KMHNGram, kmh_ngram)                                                                           \
  X(FoldRows, fold_rows)                                                                           \
  X(MaxPooling2D, maxpooling2d)                                                                    \
  X(PickElement, pick)                                                                             \
  X(PickRange, pick_range)                                                                         \
  X(SelectRows, select_rows)                                                                       \
  X(SelectCols, select_cols)                                                                       \
  X(StridedSelect, strided_select)                                                                 \
  X(Softmax, softmax)                                                                              \
  X(LogSoftmax, log_softmax)                                                                       \
  X(RestrictedLogSoftmax, log_softmax)                                                             \
  X(Sparsemax, sparsemax)                                                                          \
  X(SparsemaxLoss, sparsemax_loss)                                                                 \
  X(PickNegLogSoftmax, pickneglogsoftmax)                                                          \
  X(Hinge, hinge)                                                                                  \
  X(HingeDim, hinge_dim)                                                                           \
  X(PoissonRegressionLoss, poisson_loss)

#define DYNET_BINARY_NODES(X)                                                                      \
  X(CwiseSum, operator+)                                                                           \
  X(CwiseMultiply, cmult)                                                                          \
  X(CwiseQuotient, cdiv)                                                                           \
  X(Pow, pow)                                                                                      \
  X(Min, min)                                                                                      \
  X(AddVectorToAllColumns, colwise_add)                                                            \
  X(MatrixMultiply, operator*)                                                                     \
  X(TraceOfProduct, trace_of_product)                                                              \
  X(CircularConvolution, circ_conv)                                                                \
  X(CircularCorrelation, circ_corr)                                                                \
  X(Filter1DNarrow, filter1d_narrow)                                                               \
  X(WeightNormalization, weight_norm)                                                              \
  X(DotProduct, dot_product)                                                                       \
  X(SquaredEuclideanDistance, squared_distance)                                                    \
  X(L1Distance, l1_distance)                                                                       \
  X(HuberDistance, huber_distance)                                                                 \
  X(PairwiseRankLoss, pairwise_rank_loss)                                                          \
  X(BinaryLogLoss, binary_log_loss)                                                                \
  X(ConstrainedSoftmax, constrained_softmax)                                                       \
  X(VanillaLSTMC, vanilla_lstm_c)                                                                  \
  X(VanillaLSTMH, vanilla_lstm_h)

#define DYNET_LIST_NODES(X)                                                                        \
  X(Sum, sum)                                                                                      \
  X(Average, average)                                                                              \
  X(Max, max)                                                                                      \
  X(LogSumExp, logsumexp)                                                                          \
  X(AffineTransform, affine_transform)                                                             \
  X(Concatenate, concatenate)                                                                      \
  X(ConcatenateToBatch, concatenate_to_batch)

// X(class): those that are defined below one by one, and leaves.
#define DYNET_OTHER_NODES(X)                                                                       \
  X(Identity)                                                                                      \
  X(ConstantMinusX)                                                                                \
  X(ExponentialLinearUnit)                                                                         \
  X(Round)                                                                                         \
  X(Ceil)                                                                                          \
  X(Floor)                                                                                         \
  X(Argmax)                                                                                        \
  X(PickBatchElements)                                                                             \
  X(InnerProduct3D_1D)                                                                             \
  X(InnerProduct3D_1D_1D)                                                                          \
  X(Conv2D)                                                                                        \
  X(VanillaLSTMGates)
#define DYNET_LEAF_NODES(X)                                                                        \
  X(InputNode)                                                                                     \
  X(ScalarInputNode)                                                                               \
  X(SparseInputNode)                                                                               \
  X(Constant)                                                                                      \
  X(ParameterNode)                                                                                 \
  X(ConstParameterNode)                                                                            \
  X(LookupNode)                                                                                    \
  X(RandomNormal)                                                                                  \
  X(RandomBernoulli)                                                                               \
  X(RandomUniform)                                                                                 \
  X(RandomGumbel)

#define DYNET_CLASS(Class, least, most, call)                                                      \
  struct Class final : RecordedNode {                                                              \
    template <class... Side>                                                                       \
    static VariableIndex add(const std::vector<Expression> &x, Side &&...side) {                   \
      expect(#Class, x, least, most);                                                              \
      return (call).i;                                                                             \
    }                                                                                              \
  };
#define DYNET_UNARY(Class, function)                                                               \
  DYNET_CLASS(Class, 1, 1, dynet::function(x[0], std::forward<Side>(side)...))
#define DYNET_BINARY(Class, function)                                                              \
  DYNET_CLASS(Class, 2, 2, dynet::function(x[0], x[1], std::forward<Side>(side)...))
#define DYNET_LIST(Class, function)                                                                \
  DYNET_CLASS(Class, 1, size_t(-1), dynet::function(x, std::forward<Side>(side)...))
#define DYNET_LEAF(Class)                                                                          \
  struct Class final : RecordedNode {};
DYNET_UNARY_NODES(DYNET_UNARY)
DYNET_BINARY_NODES(DYNET_BINARY)
DYNET_LIST_NODES(DYNET_LIST)
DYNET_LEAF_NODES(DYNET_LEAF)
#undef DYNET_LEAF
#undef DYNET_LIST
#undef DYNET_BINARY
#undef DYNET_UNARY
#undef DYNET_CLASS

struct Identity final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x);
};
struct ConstantMinusX final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, real c);
};
struct ExponentialLinearUnit final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, float lambda = 1, float alpha = 1);
};
// As in DyNet, whose nodes do not keep the mode of the gradient.
struct Round final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, bool straight_through = false);
};
struct Ceil final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, bool straight_through = false);
};
struct Floor final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, bool straight_through = false);
};
struct Argmax final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, unsigned d,
                           bool straight_through = false);
};
struct PickBatchElements final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, unsigned v);
  static VariableIndex add(const std::vector<Expression> &x, const unsigned *pv);
  static VariableIndex add(const std::vector<Expression> &x, const std::vector<unsigned> &v);
  static VariableIndex add(const std::vector<Expression> &x, const std::vector<unsigned> *pv);
};
struct InnerProduct3D_1D final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x);
};
struct InnerProduct3D_1D_1D final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x);
};
struct Conv2D final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, const std::vector<unsigned> &stride,
                           bool is_valid = true);
};
struct VanillaLSTMGates final : RecordedNode {
  static VariableIndex add(const std::vector<Expression> &x, bool dropout, real weightnoise_std);
};
/// \endcond

} // namespace dynet
#endif
