/// \file
/// Expressions and the functions over them. Each function adds the nodes that DyNet's function of
/// that name adds, in the same order. It checks shapes at once: std::invalid_argument names the
/// operation, the reason and the shapes, and leaves the graph as it was. An expression of another
/// graph, or of an earlier one, is refused in the same way.
///
/// Shapes below: {a,b} is a matrix of a rows and b columns, xB a batch of B. "Batch broadcast"
/// means that batch sizes are equal, or 1 on one side; the result has the larger one. Gradients
/// flow to every expression argument, unless the text says otherwise.
///
/// Where a function takes a pointer, every call that evaluates the node reads anew what it points
/// to. The caller keeps that memory alive until then; a vector must keep its size.
#ifndef DYNET_EXPR_H
#define DYNET_EXPR_H

#include <initializer_list>
#include <vector>

#include "dynet/dynet.h"

namespace dynet {

/// A node of a graph: cheap to copy, owns nothing.
struct Expression {
  ComputationGraph *pg; ///< the graph, null in an empty expression
  VariableIndex i;      ///< the node's number in the graph, as in DyNet
  unsigned graph_id;    ///< the graph's id, which tells an earlier graph at the same address

  /// An empty expression.
  Expression() : pg(nullptr), i(0), graph_id(0) {}
  /// A node of a graph, by its number.
  Expression(ComputationGraph *graph, VariableIndex node)
      : pg(graph), i(node), graph_id(graph->get_id()) {}
  /// A node of the graph with an id.
  Expression(ComputationGraph *graph, VariableIndex node, unsigned id)
      : pg(graph), i(node), graph_id(id) {}

  /// Whether its graph is gone.
  bool is_stale() const {
    return get_number_of_active_graphs() != 1 || graph_id != get_current_graph_id();
  }
  /// The value: ComputationGraph::get_value. Stale: std::runtime_error.
  const Tensor &value() const;
  /// The gradient: ComputationGraph::get_gradient. Stale: std::runtime_error.
  const Tensor &gradient() const;
  /// The shape, valid until the next node is added. Stale: std::runtime_error.
  const Dim &dim() const;
  /// "CPU" or "GPU:0". Stale: std::runtime_error.
  std::string get_device_name() const;
};

/// The gradient of functions that have none: round(), ceil(), floor(), argmax().
enum GradientMode {
  zero_gradient,            ///< the gradient is 0
  straight_through_gradient ///< the gradient passes unchanged
};

// ---- leaves ----------------------------------------------------------------

///@{
/// A number, {1}. ps is read in every evaluation.
Expression input(ComputationGraph &g, real s, Device *device = default_device);
Expression input(ComputationGraph &g, const real *ps, Device *device = default_device);
///@}
///@{
/// Numbers of shape d, batch included, column-major. data has d.size() numbers or more; with fewer:
/// std::invalid_argument. pdata is read in every evaluation.
Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> &data,
                 Device *device = default_device);
Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> *pdata,
                 Device *device = default_device);
///@}
/// Shape d with data[k] at flat index ids[k], and defdata elsewhere. As many ids as data, else
/// std::invalid_argument. An id out of range is std::invalid_argument when the node is evaluated.
Expression input(ComputationGraph &g, const Dim &d, const std::vector<unsigned int> &ids,
                 const std::vector<float> &data, float defdata = 0.f,
                 Device *device = default_device);
///@{
/// A vector {d} that is 1 at idx and 0 elsewhere; with ids {d}xB, one index for each batch element.
/// These are templates, so that the compiler prefers a program's own function one_hot. Programs for
/// DyNet 2.0, which had none, define one.
template <int = 0>
Expression one_hot(ComputationGraph &g, unsigned int d, unsigned int idx,
                   Device *device = default_device);
template <int = 0>
Expression one_hot(ComputationGraph &g, unsigned int d, const std::vector<unsigned int> &ids,
                   Device *device = default_device);
///@}
///@{
/// The parameter's values times the factor of the weight decay, in the parameter's shape; of a
/// table all of it, {row..., n}. An empty parameter: std::invalid_argument.
Expression parameter(ComputationGraph &g, const Parameter &p);
Expression parameter(ComputationGraph &g, const LookupParameter &lp);
///@}
///@{
/// The same without a gradient.
Expression const_parameter(ComputationGraph &g, const Parameter &p);
Expression const_parameter(ComputationGraph &g, const LookupParameter &p);
///@}
///@{
/// A row of a table, times the factor of the weight decay, in the row's shape; with a vector one
/// row for each batch element. A row number out of range is std::invalid_argument when the node is
/// evaluated. Pointers are read in every evaluation.
Expression lookup(ComputationGraph &g, const LookupParameter &p, unsigned index);
Expression lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex);
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> &indices);
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> *pindices);
///@}
///@{
/// The same without a gradient.
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, unsigned index);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> &indices);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> *pindices);
///@}
/// Zeros of shape d.
Expression zeros(ComputationGraph &g, const Dim &d, Device *device = default_device);
/// The same as zeros().
inline Expression zeroes(ComputationGraph &g, const Dim &d, Device *device = default_device) {
  return zeros(g, d, device);
}
/// Ones of shape d.
Expression ones(ComputationGraph &g, const Dim &d, Device *device = default_device);
/// Shape d, filled with val.
Expression constant(ComputationGraph &g, const Dim &d, float val, Device *device = default_device);
/// Normal random numbers of shape d, drawn whenever the node is evaluated.
Expression random_normal(ComputationGraph &g, const Dim &d, float mean = 0.f, float stddev = 1.0,
                         Device *device = default_device);
/// Shape d: scale with probability p, else 0, drawn whenever the node is evaluated.
Expression random_bernoulli(ComputationGraph &g, const Dim &d, real p, real scale = 1.0f,
                            Device *device = default_device);
/// Uniform random numbers in [left,right), drawn whenever the node is evaluated.
Expression random_uniform(ComputationGraph &g, const Dim &d, real left, real right,
                          Device *device = default_device);
/// Gumbel random numbers, mu - beta*log(-log(u)) with u uniform in (0,1), drawn whenever the node
/// is evaluated.
Expression random_gumbel(ComputationGraph &g, const Dim &d, real mu = 0.0, real beta = 1.0,
                         Device *device = default_device);

// ---- arithmetic ------------------------------------------------------------

/// -x, in the shape of x.
Expression operator-(const Expression &x);
/// x + y element by element. Each axis and the batch are equal, or 1 on one side.
Expression operator+(const Expression &x, const Expression &y);
///@{
/// A number plus each element.
Expression operator+(const Expression &x, real y);
Expression operator+(real x, const Expression &y);
///@}
/// x - y element by element: the nodes -y and x + (-y). Shapes as of x + y.
Expression operator-(const Expression &x, const Expression &y);
///@{
/// A number minus each element, or each element minus a number.
Expression operator-(real x, const Expression &y);
Expression operator-(const Expression &x, real y);
///@}
/// The matrix product: {m,k}*{k} -> {m}, {m,k}*{k,n} -> {m,n}; batch broadcast.
Expression operator*(const Expression &x, const Expression &y);
///@{
/// Each element times a number.
Expression operator*(const Expression &x, float y);
inline Expression operator*(float y, const Expression &x) { return x * y; }
///@}
/// Each element divided by a number.
inline Expression operator/(const Expression &x, float y) { return x * (1.f / y); }
/// The same as cdiv().
Expression operator/(const Expression &x, const Expression &y);
///@{
/// xs[0] + xs[1]*xs[2] + xs[3]*xs[4] + ...: an odd number of vectors or matrices, all products of
/// one shape {m,n}, xs[0] {m} or {m,n}; batch broadcast. The result is {m,n}, or {m} if n is 1.
Expression affine_transform(const std::initializer_list<Expression> &xs);
Expression affine_transform(const std::vector<Expression> &xs);
///@}
///@{
/// The sum of one or more expressions of one shape; batch broadcast.
Expression sum(const std::initializer_list<Expression> &xs);
Expression sum(const std::vector<Expression> &xs);
///@}
///@{
/// The mean of one or more expressions of one shape; batch broadcast.
Expression average(const std::initializer_list<Expression> &xs);
Expression average(const std::vector<Expression> &xs);
///@}
/// x * y element by element. Each axis and the batch are equal, or 1 on one side.
Expression cmult(const Expression &x, const Expression &y);
/// x / y element by element. Each axis and the batch of y are those of x, or 1.
Expression cdiv(const Expression &x, const Expression &y);
/// Adds a vector to every column: {r,c} + {r} -> {r,c}; batch broadcast.
Expression colwise_add(const Expression &x, const Expression &bias);
///@{
/// The sum over k of x[i,j,k]*y[k], plus b[i,j]: {i,j,k}, {k}, {i,j} -> {i,j}; batch broadcast.
Expression contract3d_1d(const Expression &x, const Expression &y);
Expression contract3d_1d(const Expression &x, const Expression &y, const Expression &b);
///@}
///@{
/// The sum over j and k of x[i,j,k]*y[k]*z[j], plus b[i]: {i,j,k}, {k}, {j}, {i} -> {i}; batch
/// broadcast.
Expression contract3d_1d_1d(const Expression &x, const Expression &y, const Expression &z);
Expression contract3d_1d_1d(const Expression &x, const Expression &y, const Expression &z,
                            const Expression &b);
///@}
/// Element k is the sum over i of u[i]*v[k-i], indices modulo the length: two vectors {d} -> {d}.
Expression circ_conv(const Expression &u, const Expression &v);
/// Element k is the sum over i of u[i]*v[k+i], indices modulo the length: two vectors {d} -> {d}.
Expression circ_corr(const Expression &u, const Expression &v);
/// The inverse of a square matrix: {n,n} -> {n,n}.
Expression inverse(const Expression &x);
/// The logarithm of the determinant of a square matrix: {n,n} -> {1}. NaN if it is negative.
Expression logdet(const Expression &x);
/// The trace of x*transpose(y), two matrices of one shape: {1}.
Expression trace_of_product(const Expression &x, const Expression &y);
/// Each element of x to the power of the scalar y.
Expression pow(const Expression &x, const Expression &y);
/// The smaller of each two elements; shapes and batch sizes are equal.
Expression min(const Expression &x, const Expression &y);
///@{
/// The larger of each two elements; shapes and batch sizes are equal. A list has exactly two
/// expressions.
Expression max(const Expression &x, const Expression &y);
Expression max(const std::initializer_list<Expression> &xs);
Expression max(const std::vector<Expression> &xs);
///@}

/// The square root of each element.
Expression sqrt(const Expression &x);
/// The absolute value of each element.
Expression abs(const Expression &x);
/// The hyperbolic tangent of each element.
Expression tanh(const Expression &x);
/// e to the power of each element.
Expression exp(const Expression &x);
/// The square of each element.
Expression square(const Expression &x);
/// The natural logarithm of each element.
Expression log(const Expression &x);
/// 1/(1+exp(-x)) of each element.
Expression logistic(const Expression &x);
/// max(x, 0) of each element.
Expression rectify(const Expression &x);
/// The third power of each element.
Expression cube(const Expression &x);
///@{
/// The trigonometric functions of each element, in radians.
Expression sin(const Expression &x);
Expression cos(const Expression &x);
Expression tan(const Expression &x);
///@}
///@{
/// Their inverses.
Expression asin(const Expression &x);
Expression acos(const Expression &x);
Expression atan(const Expression &x);
///@}
///@{
/// The hyperbolic functions of each element.
Expression sinh(const Expression &x);
Expression cosh(const Expression &x);
///@}
///@{
/// The inverses of the hyperbolic functions.
Expression asinh(const Expression &x);
Expression acosh(const Expression &x);
Expression atanh(const Expression &x);
///@}
/// The error function of each element.
Expression erf(const Expression &x);
/// The logarithm of the gamma function of each element.
Expression lgamma(const Expression &x);
/// log(logistic(x)) of each element, without underflow.
Expression log_sigmoid(const Expression &x);
/// x above 0, else alpha*(exp(x)-1), of each element.
Expression elu(const Expression &x, float alpha = 1.f);
/// 1.0507 times elu() with alpha = 1.6733.
Expression selu(const Expression &x);
/// x*logistic(beta*x) of each element.
Expression silu(const Expression &x, float beta = 1.f);
/// x/(1+|x|) of each element of a vector.
Expression softsign(const Expression &x);
///@{
/// The nearest whole number (halves go away from 0), the next one above, the next one below. The
/// gradient is 0, or with straight_through_gradient passes unchanged.
Expression round(const Expression &x, GradientMode gradient_mode);
Expression ceil(const Expression &x, GradientMode gradient_mode);
Expression floor(const Expression &x, GradientMode gradient_mode);
///@}

// ---- reductions ------------------------------------------------------------

/// The sum of a batch element's elements: {1}xB.
Expression sum_elems(const Expression &x);
/// The mean of the elements' r-th powers, r >= 1: {1}xB.
Expression moment_elems(const Expression &x, unsigned r);
/// The mean of the elements: {1}xB.
Expression mean_elems(const Expression &x);
/// The sum over the batch: the shape of x without its batch.
Expression sum_batches(const Expression &x);
/// The mean over the batch of the elements' r-th powers, r >= 1: the shape of x without its batch.
Expression moment_batches(const Expression &x, unsigned r);
/// The mean over the batch: the shape of x without its batch.
Expression mean_batches(const Expression &x);
/// The sum over the axes dims, which go away, and over the batch if b. An axis that x lacks, or
/// twice the same: std::invalid_argument.
Expression sum_dim(const Expression &x, const std::vector<unsigned> &dims, bool b = false);
/// The sum over the rows: {r,c} -> {c}.
Expression sum_rows(const Expression &x);
/// The sum over the columns: {r,c} -> {r}.
Expression sum_cols(const Expression &x);
/// The sum of r-th powers, r >= 1, over the axes dims, which go away, and over the batch if b,
/// divided by their number; n > 0 takes the place of that number.
Expression moment_dim(const Expression &x, const std::vector<unsigned> &dims, unsigned r,
                      bool b = false, unsigned n = 0);
/// moment_dim() with r = 1.
Expression mean_dim(const Expression &x, const std::vector<unsigned> &dims, bool b = false,
                    unsigned n = 0);
///@{
/// The standard deviation, divided by the number of elements: of all elements, {1}xB; over the
/// batch; over the axes dims, which go away, and over the batch if b. n > 0 takes the place of the
/// number of elements.
Expression std_elems(const Expression &x);
Expression std_batches(const Expression &x);
Expression std_dim(const Expression &x, const std::vector<unsigned> &dims, bool b = false,
                   unsigned n = 0);
///@}
/// Sums along axis d up to each element: the shape of x.
Expression cumsum(const Expression &x, unsigned d);
///@{
/// The largest or smallest element along axis d, which goes away. Of equal ones the first gets the
/// gradient.
Expression max_dim(const Expression &x, unsigned d = 0);
Expression min_dim(const Expression &x, unsigned d = 0);
///@}
/// 1 at the largest element of a vector, of equal ones the first; else 0. The gradient is 0, or
/// with straight_through_gradient passes unchanged.
Expression argmax(const Expression &x, GradientMode gradient_mode);
///@{
/// log(exp(xs[0]) + exp(xs[1]) + ...) element by element, of one or more expressions of one shape;
/// batch broadcast.
Expression logsumexp(const std::initializer_list<Expression> &xs);
Expression logsumexp(const std::vector<Expression> &xs);
///@}
/// The logarithm of the sum of exp(x) along axis d, which goes away.
Expression logsumexp_dim(const Expression &x, unsigned d);
/// The mean of the columns: {r,c} -> {r}.
Expression average_cols(const Expression &x);
/// The sum of the products of x's and y's elements: {1}xB. One shape; batch broadcast.
Expression dot_product(const Expression &x, const Expression &y);
/// The sum of the squares of x's and y's differences: {1}xB. One shape; batch broadcast.
Expression squared_distance(const Expression &x, const Expression &y);
/// The sum of the absolute values of x's and y's differences: {1}xB. One shape; batch broadcast.
Expression l1_distance(const Expression &x, const Expression &y);
/// The sum of d*d/2 where a difference d is below c, else of c*|d| - c*c/2: {1}xB. One shape; batch
/// broadcast.
Expression huber_distance(const Expression &x, const Expression &y, float c = 1.345f);
/// The sum of the elements' squares: {1}xB.
Expression squared_norm(const Expression &x);
/// The square root of the sum of the elements' squares: {1}xB.
Expression l2_norm(const Expression &x);

// ---- losses ----------------------------------------------------------------

/// exp(x) divided by its sum along axis d of a vector or matrix: 0 over each column, 1 over each
/// row.
Expression softmax(const Expression &x, unsigned d = 0);
/// The logarithm of the softmax over each column of a vector or matrix.
Expression log_softmax(const Expression &x);
/// The same over the listed rows of a vector without a batch; the other rows are -inf. At least one
/// row; a row that is listed twice counts once.
Expression log_softmax(const Expression &x, const std::vector<unsigned> &restriction);
///@{
/// -log softmax(x)[v] of a vector: {1}, or {1}xB with one label for each batch element. Another
/// number of labels is std::invalid_argument; a label out of range is that when the node is
/// evaluated. Pointers are read in every evaluation.
Expression pickneglogsoftmax(const Expression &x, unsigned v);
Expression pickneglogsoftmax(const Expression &x, const unsigned *pv);
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> &v);
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> *pv);
///@}
///@{
/// The sum over i != index of max(0, m - x[index] + x[i]) of a vector: {1}, or {1}xB with one index
/// for each batch element. m >= 0. Indices as of pickneglogsoftmax().
Expression hinge(const Expression &x, unsigned index, float m = 1.0);
Expression hinge(const Expression &x, const unsigned *pindex, float m = 1.0);
Expression hinge(const Expression &x, const std::vector<unsigned> &indices, float m = 1.0);
Expression hinge(const Expression &x, const std::vector<unsigned> *pindices, float m = 1.0);
///@}
///@{
/// hinge() of each column (d = 0) or row (d = 1) of a matrix {r,c}: {c}xB or {r}xB. indices has one
/// number for each of them, for the whole batch; lists have these for each element. Indices as of
/// pickneglogsoftmax().
Expression hinge_dim(const Expression &x, const std::vector<unsigned> &indices, unsigned d = 0,
                     float m = 1.0);
Expression hinge_dim(const Expression &x, const std::vector<unsigned> *pindex, unsigned d = 0,
                     float m = 1.0);
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> &indices,
                     unsigned d = 0, float m = 1.0);
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> *pindices,
                     unsigned d = 0, float m = 1.0);
///@}
/// The nearest point to the vector x whose elements are not negative and add up to 1.
Expression sparsemax(const Expression &x);
///@{
/// The loss of sparsemax for a target that is spread evenly over some rows: {1}. A row out of range
/// is std::invalid_argument when the node is evaluated. The pointer is read in every evaluation.
Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> &target_support);
Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> *ptarget_support);
///@}
/// The softmax of the vector x with no element above that of y, whose elements add up to 1 or more.
Expression constrained_softmax(const Expression &x, const Expression &y);
/// max(0, m - x + y) element by element: two scalars or row vectors {1,n} of one shape.
Expression pairwise_rank_loss(const Expression &x, const Expression &y, real m = 1.0);
///@{
/// exp(x) - y*x + log(y!) of a scalar x: the loss of a Poisson regression with the count y. The
/// pointer is read in every evaluation.
Expression poisson_loss(const Expression &x, unsigned y);
Expression poisson_loss(const Expression &x, const unsigned *py);
///@}
/// The sum of -(y log x + (1-y) log(1-x)): {1}. One shape, elements in [0,1], no batch.
Expression binary_log_loss(const Expression &x, const Expression &y);

// ---- shape and selection ---------------------------------------------------

/// x, but no gradient flows back.
Expression nobackprop(const Expression &x);
/// x, but the gradient that flows back is multiplied by -1.
Expression flip_gradient(const Expression &x);
/// x, but the gradient that flows back is multiplied by lambd.
Expression scale_gradient(const Expression &x, float lambd = 1.0f);
/// A copy of x on a device; null: where x is. Devices are names: a node is on that of its first
/// argument, a leaf on that of its parameter or its argument `device`. Other operations on nodes of
/// different devices are std::invalid_argument from the call that evaluates them. The engine
/// executes all nodes on the default device.
Expression to_device(const Expression &x, Device *device);
/// The same elements in shape d, which has as many. A d without a batch keeps that of x.
Expression reshape(const Expression &x, const Dim &d);
/// Axis i of the result is axis dims[i] of x: a permutation of the axes.
Expression transpose(const Expression &x, const std::vector<unsigned> &dims = {1, 0});
///@{
/// Slice v of axis d, which goes away; with a vector one v for each batch element. No such axis:
/// std::invalid_argument; no such slice: that when the node is evaluated. Pointers are read in
/// every evaluation.
Expression pick(const Expression &x, unsigned v, unsigned d = 0);
Expression pick(const Expression &x, const std::vector<unsigned> &v, unsigned d = 0);
Expression pick(const Expression &x, const unsigned *pv, unsigned d = 0);
Expression pick(const Expression &x, const std::vector<unsigned> *pv, unsigned d = 0);
///@}
/// Slices s to e-1 of axis d: the shape of x, with e-s on that axis.
Expression pick_range(const Expression &x, unsigned s, unsigned e, unsigned d = 0);
/// pick_range() over axis 0.
Expression pickrange(const Expression &x, unsigned s, unsigned e);
///@{
/// Some rows, in the order of the list: the shape of x, with that many rows. A row out of range is
/// std::invalid_argument when the node is evaluated. The pointer is read in every evaluation.
Expression select_rows(const Expression &x, const std::vector<unsigned> &rows);
Expression select_rows(const Expression &x, const std::vector<unsigned> *prows);
///@}
///@{
/// Some columns of a matrix likewise.
Expression select_cols(const Expression &x, const std::vector<unsigned> &cols);
Expression select_cols(const Expression &x, const std::vector<unsigned> *pcols);
///@}
/// Elements from, from+stride, ... before to, along each axis; the entry after the last axis is the
/// batch's. Lists may be short: strides are 1, from is 0, to is the size. At most 4 axes.
Expression strided_select(const Expression &x, const std::vector<int> &strides,
                          const std::vector<int> &from = {}, const std::vector<int> &to = {});
/// Sums of nrows neighbouring rows: {r,c} -> {r/nrows,c}.
Expression fold_rows(const Expression &x, unsigned nrows = 2);
///@{
/// One batch element: the shape of x without its batch. The pointer is read in every evaluation.
Expression pick_batch_elem(const Expression &x, unsigned v);
Expression pick_batch_elem(const Expression &x, const unsigned *pv);
///@}
///@{
/// Some batch elements, in the order of the list: a batch of that many. The pointer is read in
/// every evaluation.
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> &v);
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> *pv);
///@}
///@{
/// The batch elements of all expressions, one after the other; shapes are equal.
Expression concatenate_to_batch(const std::initializer_list<Expression> &xs);
Expression concatenate_to_batch(const std::vector<Expression> &xs);
///@}
///@{
/// One after the other along axis d. The other axes are equal; batch broadcast.
Expression concatenate(const std::initializer_list<Expression> &xs, unsigned d = 0);
Expression concatenate(const std::vector<Expression> &xs, unsigned d = 0);
///@}
///@{
/// concatenate() along axis 1.
Expression concatenate_cols(const std::initializer_list<Expression> &xs);
Expression concatenate_cols(const std::vector<Expression> &xs);
///@}

// ---- convolution, pooling, normalisation ------------------------------------

///@{
/// Filters f {fh,fw,channels,k} over x {h,w,channels} or {h,w}, with strides for both axes, plus a
/// bias b {k}. is_valid: only where the filter is inside x; else x is padded with zeros, and the
/// result is {h/stride[0],w/stride[1],k}, rounded up.
Expression conv2d(const Expression &x, const Expression &f, const std::vector<unsigned> &stride,
                  bool is_valid = true);
Expression conv2d(const Expression &x, const Expression &f, const Expression &b,
                  const std::vector<unsigned> &stride, bool is_valid = true);
///@}
/// The largest element of each window of ksize[0] x ksize[1] elements. Shapes as of conv2d().
Expression maxpooling2d(const Expression &x, const std::vector<unsigned> &ksize,
                        const std::vector<unsigned> &stride, bool is_valid = true);
/// Filters f {r,m,k} or {r,m} over the columns of x {r,c}: {k,c-m+1}.
Expression filter1d_narrow(const Expression &x, const Expression &f);
/// The k largest elements along axis d, in their order.
Expression kmax_pooling(const Expression &x, unsigned k, unsigned d = 1);
/// Sums of n neighbouring columns: {r,c} -> {r,c-n+1}.
Expression kmh_ngram(const Expression &x, unsigned n);
/// g*(x - mean)/(standard deviation + 1e-8) + b over the elements of x.
Expression layer_norm(const Expression &x, const Expression &g, const Expression &b);
/// The scalar g times w, divided by the norm of w.
Expression weight_norm(const Expression &w, const Expression &g);

// ---- noise -----------------------------------------------------------------

/// x plus normal noise of mean 0, drawn whenever the node is evaluated.
Expression noise(const Expression &x, real stddev);
/// Sets each element to 0 with probability p and divides the others by 1-p; drawn whenever the node
/// is evaluated. p outside [0,1]: std::invalid_argument.
Expression dropout(const Expression &x, real p);
///@{
/// dropout() of whole lines along axis d, of whole batch elements, and of the whole expression.
Expression dropout_dim(const Expression &x, unsigned d, real p);
Expression dropout_batch(const Expression &x, real p);
Expression block_dropout(const Expression &x, real p);
///@}

// ---- LSTM steps as single nodes --------------------------------------------

/// The gates of an LSTM step: Wx*x + Wh*h + b with functions applied, in four parts of H rows: i, f
/// (with 1 added first) and o logistic, g tanh. x_t {I}xB, h_tm1 {H}xB, Wx {4H,I}, Wh {4H,H}, b
/// {4H} -> {4H}xB. weightnoise_std: noise() of this deviation is added to Wx, Wh and b first.
Expression vanilla_lstm_gates(const Expression &x_t, const Expression &h_tm1, const Expression &Wx,
                              const Expression &Wh, const Expression &b,
                              real weightnoise_std = 0.f);
/// The same for an x in several vectors, I rows in all.
Expression vanilla_lstm_gates_concat(const std::vector<Expression> &x_t, const Expression &h_tm1,
                                     const Expression &Wx, const Expression &Wh,
                                     const Expression &b, real weightnoise_std = 0.f);
/// The gates with x and h multiplied by masks {I} and {H} first, which have a batch or none.
Expression vanilla_lstm_gates_dropout(const Expression &x_t, const Expression &h_tm1,
                                      const Expression &Wx, const Expression &Wh,
                                      const Expression &b, const Expression &dropout_mask_x,
                                      const Expression &dropout_mask_h, real weightnoise_std = 0.f);
/// The same for an x in several vectors.
Expression vanilla_lstm_gates_dropout_concat(const std::vector<Expression> &x_t,
                                             const Expression &h_tm1, const Expression &Wx,
                                             const Expression &Wh, const Expression &b,
                                             const Expression &dropout_mask_x,
                                             const Expression &dropout_mask_h,
                                             real weightnoise_std = 0.f);
/// The cell after a step, f*c + i*g: c_tm1 {H}xB, gates_t {4H}xB -> {H}xB.
Expression vanilla_lstm_c(const Expression &c_tm1, const Expression &gates_t);
/// The output of a step, o*tanh(c): c_t {H}xB, gates_t {4H}xB -> {H}xB.
Expression vanilla_lstm_h(const Expression &c_t, const Expression &gates_t);

namespace detail {
/// Adds a node of class F, with the arguments xs and what else add_function<F>() takes. None:
/// std::invalid_argument. DyNet's generated bindings call it.
template <typename F, typename T, typename... Side> Expression f(const T &xs, const Side &...side) {
  if (xs.size() == 0)
    throw std::invalid_argument("detail::f: a node needs at least one argument");
  std::vector<VariableIndex> arguments;
  for (const Expression &x : xs)
    arguments.push_back(x.i);
  ComputationGraph *const graph = xs.begin()->pg;
  return Expression(graph, graph->add_function<F>(arguments, side...));
}
} // namespace detail

} // namespace dynet
#endif
