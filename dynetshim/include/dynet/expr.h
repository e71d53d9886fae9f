// Expressions and the functions over them. Each function adds the nodes that DyNet's
// does, in the same order, and checks shapes at once: std::invalid_argument names the
// operation, the reason and the shapes, and leaves the graph as it was.
//
// Shapes below: {a,b} is a matrix of a rows and b columns, xB a batch of B. "Batch
// broadcast": batch sizes are equal, or 1 on one side. Where a function takes pointers,
// what they point to is read anew by every call that evaluates the node, and must live
// until then; vectors must keep their size.
#ifndef DYNET_EXPR_H
#define DYNET_EXPR_H

#include <initializer_list>
#include <vector>

#include "dynet/dynet.h"

namespace dynet {

struct Expression {
  ComputationGraph *pg;
  VariableIndex i;
  unsigned graph_id;

  Expression() : pg(nullptr), i(0), graph_id(0) {}
  Expression(ComputationGraph *pg, VariableIndex i) : pg(pg), i(i), graph_id(pg->get_id()) {}
  Expression(ComputationGraph *pg, VariableIndex i, unsigned graph_id)
      : pg(pg), i(i), graph_id(graph_id) {}

  // Whether its graph is gone.
  bool is_stale() const {
    return get_number_of_active_graphs() != 1 || graph_id != get_current_graph_id();
  }
  // These three throw std::runtime_error when stale.
  const Tensor &value() const;
  const Tensor &gradient() const;
  const Dim &dim() const;
  std::string get_device_name() const;
};

enum GradientMode { zero_gradient, straight_through_gradient };

// ---- leaves ----------------------------------------------------------------

Expression input(ComputationGraph &g, real s, Device *device = default_device); // {1}
Expression input(ComputationGraph &g, const real *ps, Device *device = default_device);
// d.size() values; fewer: std::invalid_argument.
Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> &data,
                 Device *device = default_device);
Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> *pdata,
                 Device *device = default_device);
// data[k] at flat index ids[k], defdata elsewhere.
Expression input(ComputationGraph &g, const Dim &d, const std::vector<unsigned int> &ids,
                 const std::vector<float> &data, float defdata = 0.f,
                 Device *device = default_device);
Expression one_hot(ComputationGraph &g, unsigned int d, unsigned int idx,
                   Device *device = default_device); // {d}
Expression one_hot(ComputationGraph &g, unsigned int d, const std::vector<unsigned int> &ids,
                   Device *device = default_device); // {d}xB
Expression parameter(ComputationGraph &g, const Parameter &p);
Expression parameter(ComputationGraph &g,
                     const LookupParameter &lp); // the whole table: {row..., n}
Expression const_parameter(ComputationGraph &g, const Parameter &p);
Expression const_parameter(ComputationGraph &g, const LookupParameter &lp);
// A row, or one row per batch element. Row numbers are checked when evaluated.
Expression lookup(ComputationGraph &g, const LookupParameter &p, unsigned index);
Expression lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex);
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> &indices);
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> *pindices);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, unsigned index);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> &indices);
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> *pindices);
Expression zeros(ComputationGraph &g, const Dim &d, Device *device = default_device);
inline Expression zeroes(ComputationGraph &g, const Dim &d, Device *device = default_device) {
  return zeros(g, d, device);
}
Expression ones(ComputationGraph &g, const Dim &d, Device *device = default_device);
Expression constant(ComputationGraph &g, const Dim &d, float val, Device *device = default_device);
// Drawn anew whenever the node is evaluated.
Expression random_normal(ComputationGraph &g, const Dim &d, float mean = 0.f, float stddev = 1.0,
                         Device *device = default_device);
Expression random_bernoulli(ComputationGraph &g, const Dim &d, real p, real scale = 1.0f,
                            Device *device = default_device); // scale with probability p, else 0
Expression random_uniform(ComputationGraph &g, const Dim &d, real left, real right,
                          Device *device = default_device);

// ---- arithmetic ------------------------------------------------------------

Expression operator-(const Expression &x);
// + , - and cmult: each axis and the batch are equal or 1 on one side.
Expression operator+(const Expression &x, const Expression &y);
Expression operator+(const Expression &x, real y);
Expression operator+(real x, const Expression &y);
Expression operator-(const Expression &x, const Expression &y);
Expression operator-(real x, const Expression &y);
Expression operator-(const Expression &x, real y);
// Matrix product {m,k}*{k} -> {m}, {m,k}*{k,n} -> {m,n}; batch broadcast.
Expression operator*(const Expression &x, const Expression &y);
Expression operator*(const Expression &x, float y);
inline Expression operator*(float y, const Expression &x) { return x * y; }
inline Expression operator/(const Expression &x, float y) { return x * (1.f / y); }
Expression operator/(const Expression &x, const Expression &y); // cdiv
// xs[0] + xs[1]*xs[2] + xs[3]*xs[4] + ...; {rows} when the result has one column.
Expression affine_transform(const std::initializer_list<Expression> &xs);
Expression affine_transform(const std::vector<Expression> &xs);
// Equal shapes, batch broadcast.
Expression sum(const std::initializer_list<Expression> &xs);
Expression sum(const std::vector<Expression> &xs);
Expression average(const std::initializer_list<Expression> &xs);
Expression average(const std::vector<Expression> &xs);
Expression cmult(const Expression &x, const Expression &y);
Expression cdiv(const Expression &x, const Expression &y);           // only y is broadcast
Expression colwise_add(const Expression &x, const Expression &bias); // {r,c} + {r}
Expression pow(const Expression &x, const Expression &y);            // y: a scalar
Expression min(const Expression &x, const Expression &y);            // equal shapes and batches
Expression max(const Expression &x, const Expression &y);
Expression max(const std::initializer_list<Expression> &xs); // exactly two
Expression max(const std::vector<Expression> &xs);

Expression sqrt(const Expression &x);
Expression abs(const Expression &x);
Expression tanh(const Expression &x);
Expression exp(const Expression &x);
Expression square(const Expression &x);
Expression log(const Expression &x);
Expression logistic(const Expression &x);
Expression rectify(const Expression &x);

// ---- reductions ------------------------------------------------------------

Expression sum_elems(const Expression &x); // {1}xB, as are the three below
Expression moment_elems(const Expression &x, unsigned r);
Expression mean_elems(const Expression &x);
Expression sum_batches(const Expression &x); // no batch, as are the two below
Expression moment_batches(const Expression &x, unsigned r);
Expression mean_batches(const Expression &x);
// Over the named axes, which go away, and the batch if b. n > 0 replaces the divisor.
Expression sum_dim(const Expression &x, const std::vector<unsigned> &dims, bool b = false);
Expression sum_rows(const Expression &x); // {r,c} -> {c}
Expression sum_cols(const Expression &x); // {r,c} -> {r}
Expression moment_dim(const Expression &x, const std::vector<unsigned> &dims, unsigned r,
                      bool b = false, unsigned n = 0);
Expression mean_dim(const Expression &x, const std::vector<unsigned> &dims, bool b = false,
                    unsigned n = 0);
Expression average_cols(const Expression &x); // {r,c} -> {r}
// {1}xB, batch broadcast.
Expression dot_product(const Expression &x, const Expression &y);
Expression squared_distance(const Expression &x, const Expression &y);
Expression squared_norm(const Expression &x);
Expression l2_norm(const Expression &x);

// ---- losses ----------------------------------------------------------------

Expression softmax(const Expression &x, unsigned d = 0); // 0: columns, 1: rows
Expression log_softmax(const Expression &x);
// Over the listed rows of a vector only; the others are -inf.
Expression log_softmax(const Expression &x, const std::vector<unsigned> &restriction);
// -log softmax(x)[v] of a vector: {1}, or {1}xB with one label per batch element.
Expression pickneglogsoftmax(const Expression &x, unsigned v);
Expression pickneglogsoftmax(const Expression &x, const unsigned *pv);
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> &v);
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> *pv);
Expression hinge(const Expression &x, unsigned index, float m = 1.0);
Expression hinge(const Expression &x, const unsigned *pindex, float m = 1.0);
Expression hinge(const Expression &x, const std::vector<unsigned> &indices, float m = 1.0);
Expression hinge(const Expression &x, const std::vector<unsigned> *pindices, float m = 1.0);
Expression binary_log_loss(const Expression &x, const Expression &y); // no batch

// ---- shape and selection ---------------------------------------------------

Expression nobackprop(const Expression &x);
Expression reshape(const Expression &x, const Dim &d); // d without a batch keeps x's
Expression transpose(const Expression &x, const std::vector<unsigned> &dims = {1, 0});
// Slice v of axis d, which goes away; a vector has one v per batch element.
Expression pick(const Expression &x, unsigned v, unsigned d = 0);
Expression pick(const Expression &x, const std::vector<unsigned> &v, unsigned d = 0);
Expression pick(const Expression &x, const unsigned *pv, unsigned d = 0);
Expression pick(const Expression &x, const std::vector<unsigned> *pv, unsigned d = 0);
Expression pick_range(const Expression &x, unsigned s, unsigned e, unsigned d = 0); // [s,e)
Expression pickrange(const Expression &x, unsigned s, unsigned e);
Expression pick_batch_elem(const Expression &x, unsigned v);
Expression pick_batch_elem(const Expression &x, const unsigned *pv);
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> &v);
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> *pv);
Expression concatenate_to_batch(const std::initializer_list<Expression> &xs);
Expression concatenate_to_batch(const std::vector<Expression> &xs);
// Side by side along axis d; the other axes are equal, batch broadcast.
Expression concatenate(const std::initializer_list<Expression> &xs, unsigned d = 0);
Expression concatenate(const std::vector<Expression> &xs, unsigned d = 0);
Expression concatenate_cols(const std::initializer_list<Expression> &xs);
Expression concatenate_cols(const std::vector<Expression> &xs);

// ---- noise -----------------------------------------------------------------

Expression noise(const Expression &x, real stddev);
Expression dropout(const Expression &x, real p); // p: the probability to drop

// ---- LSTM steps as single nodes --------------------------------------------
// x {I}xB, h {H}xB, Wx {4H,I}, Wh {4H,H}, b {4H} -> gates {4H}xB: i, f (+1 inside), o
// logistic, g tanh. weightnoise_std must be 0.

Expression vanilla_lstm_gates(const Expression &x_t, const Expression &h_tm1, const Expression &Wx,
                              const Expression &Wh, const Expression &b,
                              real weightnoise_std = 0.f);
Expression vanilla_lstm_gates_concat(const std::vector<Expression> &x_t, const Expression &h_tm1,
                                     const Expression &Wx, const Expression &Wh,
                                     const Expression &b, real weightnoise_std = 0.f);
// Masks {I} and {H}, with a batch or without, multiply x and h first.
Expression vanilla_lstm_gates_dropout(const Expression &x_t, const Expression &h_tm1,
                                      const Expression &Wx, const Expression &Wh,
                                      const Expression &b, const Expression &dropout_mask_x,
                                      const Expression &dropout_mask_h, real weightnoise_std = 0.f);
Expression vanilla_lstm_gates_dropout_concat(const std::vector<Expression> &x_t,
                                             const Expression &h_tm1, const Expression &Wx,
                                             const Expression &Wh, const Expression &b,
                                             const Expression &dropout_mask_x,
                                             const Expression &dropout_mask_h,
                                             real weightnoise_std = 0.f);
Expression vanilla_lstm_c(const Expression &c_tm1, const Expression &gates_t); // {H}xB
Expression vanilla_lstm_h(const Expression &c_t, const Expression &gates_t);   // {H}xB

} // namespace dynet
#endif
