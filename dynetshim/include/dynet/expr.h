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

/// DyNet's choice for functions without a gradient. No function here takes it.
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
Expression one_hot(ComputationGraph &g, unsigned int d, unsigned int idx,
                   Device *device = default_device);
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
/// The mean of the columns: {r,c} -> {r}.
Expression average_cols(const Expression &x);
/// The sum of the products of x's and y's elements: {1}xB. One shape; batch broadcast.
Expression dot_product(const Expression &x, const Expression &y);
/// The sum of the squares of x's and y's differences: {1}xB. One shape; batch broadcast.
Expression squared_distance(const Expression &x, const Expression &y);
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
/// The sum of -(y log x + (1-y) log(1-x)): {1}. One shape, elements in [0,1], no batch.
Expression binary_log_loss(const Expression &x, const Expression &y);

// ---- shape and selection ---------------------------------------------------

/// x, but no gradient flows back.
Expression nobackprop(const Expression &x);
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

// ---- noise -----------------------------------------------------------------

/// x plus normal noise of mean 0, drawn whenever the node is evaluated.
Expression noise(const Expression &x, real stddev);
/// Sets each element to 0 with probability p and divides the others by 1-p; drawn whenever the node
/// is evaluated. p outside [0,1]: std::invalid_argument.
Expression dropout(const Expression &x, real p);

// ---- LSTM steps as single nodes --------------------------------------------

/// The gates of an LSTM step: Wx*x + Wh*h + b with functions applied, in four parts of H rows: i, f
/// (with 1 added first) and o logistic, g tanh. x_t {I}xB, h_tm1 {H}xB, Wx {4H,I}, Wh {4H,H}, b
/// {4H} -> {4H}xB. weightnoise_std must be 0.
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

} // namespace dynet
#endif
