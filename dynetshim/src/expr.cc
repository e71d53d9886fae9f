// The expression functions: each records the nodes that DyNet's function makes, in its
// order. Shapes are checked by the recorder; what is checked here is what the wire does
// not carry, as the number of labels.
#include "dynet/expr.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "recorder.h"

namespace dynet {

namespace {

typedef const std::initializer_list<Expression> &List;
typedef const std::vector<Expression> &Vector;

template <class T> const T *given(const T *p, const char *what) {
  if (p == nullptr)
    throw std::invalid_argument(std::string(what) + ": the pointer is null");
  return p;
}

// Input words of one node: reserved first, so that appending them after the node was
// recorded cannot fail.
uint32_t inputs_at(size_t n) {
  recorder.inputs.room(n);
  recorder.patches.room(1);
  recorder.awaits_inputs = true;
  return static_cast<uint32_t>(recorder.inputs.size());
}

void copy_inputs(const void *from, size_t n) {
  if (n == 0)
    return;
  std::memcpy(recorder.inputs.room(n), from, n * sizeof(uint32_t));
  recorder.inputs.took(n);
}

Expression append(const Expression &e, const void *from, size_t n) {
  copy_inputs(from, n);
  recorder.inputs_complete(e);
  return e;
}

// The words are there but get their values in the call that evaluates the node.
void append_words_later(const Expression &e, Patch::Kind kind, const void *from, size_t n) {
  Patch p = {from, static_cast<uint32_t>(kind), e.i, static_cast<uint32_t>(recorder.inputs.size()),
             static_cast<uint32_t>(n)};
  std::memset(recorder.inputs.room(n), 0, n * sizeof(uint32_t));
  recorder.inputs.took(n);
  recorder.patches.push(p);
}

Expression append_later(const Expression &e, Patch::Kind kind, const void *from, size_t n) {
  append_words_later(e, kind, from, n);
  recorder.inputs_complete(e);
  return e;
}

// The same for lists one after the other, each of which is read anew.
Expression append_lists_later(const Expression &e,
                              const std::vector<std::vector<unsigned>> &lists) {
  for (const std::vector<unsigned> &v : lists)
    append_words_later(e, Patch::Unsigneds, &v, v.size());
  recorder.inputs_complete(e);
  return e;
}

// Index numbers of a node: one or several, copied or by pointer.
struct Indices {
  Indices(unsigned index) : one(index), values(nullptr), n(1), pointer(nullptr) {}
  Indices(const std::vector<unsigned> &v)
      : one(0), values(v.data()), n(v.size()), pointer(nullptr), several(true) {}
  Indices(const unsigned *p)
      : one(0), values(nullptr), n(1), pointer(given(p, "index")), kind(Patch::Unsigned) {}
  Indices(const std::vector<unsigned> *p)
      : one(0), values(nullptr), n(given(p, "indices")->size()), pointer(p), kind(Patch::Unsigneds),
        several(true) {}
  uint32_t at() const { return inputs_at(n); }
  Expression add(const Expression &e) const {
    return pointer ? append_later(e, kind, pointer, n) : append(e, values ? values : &one, n);
  }
  // One number for each batch element of x.
  void match(const char *what, const Expression &x) const {
    unsigned bd = recorder.batch(x);
    if (n != bd)
      throw std::invalid_argument(std::string(what) + ": got " + std::to_string(n) +
                                  (n == 1 ? " index" : " indices") + " for a batch of " +
                                  std::to_string(bd) + "; give one for each element");
  }
  unsigned one;
  const unsigned *values;
  size_t n;
  const void *pointer;
  Patch::Kind kind = Patch::Unsigned;
  bool several = false; // a vector, even if of one
};

void use(ComputationGraph &g, ParameterStorageBase *p, const Expression &e, Use::Kind kind) {
  Use u = {p, e.i, kind};
  recorder.uses.push(u);
  g.parameter_nodes.push_back(e.i);
}

template <class P> P &existing(const std::shared_ptr<P> &p, const char *what) {
  if (!p)
    throw std::invalid_argument(std::string(what) +
                                ": the parameter is empty; make it with add_parameters or "
                                "add_lookup_parameters of a ParameterCollection");
  return *p;
}

Expression constant_leaf(ComputationGraph &g, Device *device, uint32_t op, const Dim &d, float a,
                         float b = 0, uint32_t n = 1) {
  recorder.own(g);
  uint32_t attrs[2] = {float_bits(a), float_bits(b)};
  return recorder.on(device, recorder.leaf(op, recorder.intern(d), attrs, n));
}

} // namespace

// ---- leaves --------------------------------------------------------------------

Expression input(ComputationGraph &g, real s, Device *device) {
  recorder.own(g);
  uint32_t at = inputs_at(1);
  Expression e = recorder.on(
      device, recorder.leaf(VPPS_OP_SCALAR_INPUT_NODE, recorder.intern(Dim({1})), &at, 1));
  return append(e, &s, 1);
}

Expression input(ComputationGraph &g, const real *ps, Device *device) {
  recorder.own(g);
  given(ps, "input");
  uint32_t at = inputs_at(1);
  Expression e = recorder.on(
      device, recorder.leaf(VPPS_OP_SCALAR_INPUT_NODE, recorder.intern(Dim({1})), &at, 1));
  return append_later(e, Patch::Float, ps, 1);
}

Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> &data,
                 Device *device) {
  recorder.own(g);
  uint32_t dim_id = recorder.intern(d);
  size_t n = d.size();
  if (data.size() < n)
    throw std::invalid_argument("input: the dim has " + std::to_string(n) + " elements, the data " +
                                std::to_string(data.size()));
  uint32_t at = inputs_at(n);
  Expression e = recorder.on(device, recorder.leaf(VPPS_OP_INPUT_NODE, dim_id, &at, 1));
  return append(e, data.data(), n);
}

Expression input(ComputationGraph &g, const Dim &d, const std::vector<float> *pdata,
                 Device *device) {
  recorder.own(g);
  given(pdata, "input");
  uint32_t dim_id = recorder.intern(d);
  uint32_t at = inputs_at(d.size());
  Expression e = recorder.on(device, recorder.leaf(VPPS_OP_INPUT_NODE, dim_id, &at, 1));
  return append_later(e, Patch::Floats, pdata, d.size());
}

Expression input(ComputationGraph &g, const Dim &d, const std::vector<unsigned int> &ids,
                 const std::vector<float> &data, float defdata, Device *device) {
  recorder.own(g);
  if (ids.size() != data.size())
    throw std::invalid_argument("input: " + std::to_string(ids.size()) + " ids but " +
                                std::to_string(data.size()) + " values");
  uint32_t dim_id = recorder.intern(d);
  uint32_t n = static_cast<uint32_t>(ids.size());
  uint32_t attrs[3] = {float_bits(defdata), inputs_at(2 * ids.size()), n};
  Expression e = recorder.on(device, recorder.leaf(VPPS_OP_SPARSE_INPUT_NODE, dim_id, attrs, 3));
  copy_inputs(ids.data(), n);
  return append(e, data.data(), n);
}

template <int>
Expression one_hot(ComputationGraph &g, unsigned int d, unsigned int idx, Device *device) {
  return input(g, Dim({d}), std::vector<unsigned>(1, idx), std::vector<float>(1, 1.f), 0.f, device);
}

template <int>
Expression one_hot(ComputationGraph &g, unsigned int d, const std::vector<unsigned int> &ids,
                   Device *device) {
  std::vector<unsigned> flat(ids);
  for (size_t b = 0; b < flat.size(); ++b)
    flat[b] += static_cast<unsigned>(b) * d;
  return input(g, Dim({d}, static_cast<unsigned>(ids.size())), flat,
               std::vector<float>(ids.size(), 1.f), 0.f, device);
}

template Expression one_hot<0>(ComputationGraph &, unsigned, unsigned, Device *);
template Expression one_hot<0>(ComputationGraph &, unsigned, const std::vector<unsigned> &,
                               Device *);

Expression parameter(ComputationGraph &g, const Parameter &p) {
  ParameterStorage &s = existing(p.p.unexposed(), "parameter");
  recorder.own(g);
  Expression e = recorder.on(
      s.device, recorder.leaf(VPPS_OP_PARAMETER_NODE, recorder.intern_all(s), &s.id, 1));
  use(g, &s, e, Use::Dense);
  return e;
}

Expression parameter(ComputationGraph &g, const LookupParameter &p) {
  LookupParameterStorage &s = existing(p.p.unexposed(), "parameter");
  recorder.own(g);
  Expression e = recorder.on(
      s.device, recorder.leaf(VPPS_OP_PARAMETER_NODE, recorder.intern_all(s), &s.id, 1));
  use(g, &s, e, Use::Dense);
  return e;
}

Expression const_parameter(ComputationGraph &g, const Parameter &p) {
  ParameterStorage &s = existing(p.p.unexposed(), "const_parameter");
  recorder.own(g);
  return recorder.on(s.device,
                     recorder.leaf(VPPS_OP_CONST_PARAMETER_NODE, recorder.intern_all(s), &s.id, 1));
}

Expression const_parameter(ComputationGraph &g, const LookupParameter &p) {
  LookupParameterStorage &s = existing(p.p.unexposed(), "const_parameter");
  recorder.own(g);
  return recorder.on(s.device,
                     recorder.leaf(VPPS_OP_CONST_PARAMETER_NODE, recorder.intern_all(s), &s.id, 1));
}

namespace {
Expression rows(ComputationGraph &g, const LookupParameter &p, const Indices &index,
                bool trainable) {
  LookupParameterStorage &s = existing(p.p.unexposed(), "lookup");
  recorder.own(g);
  uint32_t dim_id = recorder.intern_row(s);
  if (index.several && index.n != 1) {
    Dim d = s.dim;
    d.bd = static_cast<unsigned>(index.n);
    dim_id = recorder.intern(d);
  }
  uint32_t attrs[2] = {s.id, index.at()};
  Expression e = index.add(recorder.on(
      s.device, recorder.leaf(trainable ? VPPS_OP_LOOKUP_NODE : VPPS_OP_CONST_LOOKUP_NODE, dim_id,
                              attrs, 2)));
  if (trainable)
    use(g, &s, e, index.several ? Use::Rows : Use::Row);
  return e;
}
} // namespace

Expression lookup(ComputationGraph &g, const LookupParameter &p, unsigned index) {
  return rows(g, p, index, true);
}
Expression lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex) {
  return rows(g, p, pindex, true);
}
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> &indices) {
  return rows(g, p, indices, true);
}
Expression lookup(ComputationGraph &g, const LookupParameter &p,
                  const std::vector<unsigned> *pindices) {
  return rows(g, p, pindices, true);
}
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, unsigned index) {
  return rows(g, p, index, false);
}
Expression const_lookup(ComputationGraph &g, const LookupParameter &p, const unsigned *pindex) {
  return rows(g, p, pindex, false);
}
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> &indices) {
  return rows(g, p, indices, false);
}
Expression const_lookup(ComputationGraph &g, const LookupParameter &p,
                        const std::vector<unsigned> *pindices) {
  return rows(g, p, pindices, false);
}

Expression zeros(ComputationGraph &g, const Dim &d, Device *device) {
  return constant_leaf(g, device, VPPS_OP_CONSTANT, d, 0);
}
Expression ones(ComputationGraph &g, const Dim &d, Device *device) {
  return constant_leaf(g, device, VPPS_OP_CONSTANT, d, 1);
}
Expression constant(ComputationGraph &g, const Dim &d, float val, Device *device) {
  return constant_leaf(g, device, VPPS_OP_CONSTANT, d, val);
}
Expression random_normal(ComputationGraph &g, const Dim &d, float mean, float stddev,
                         Device *device) {
  return constant_leaf(g, device, VPPS_OP_RANDOM_NORMAL, d, mean, stddev, 2);
}
Expression random_bernoulli(ComputationGraph &g, const Dim &d, real p, real scale, Device *device) {
  return constant_leaf(g, device, VPPS_OP_RANDOM_BERNOULLI, d, p, scale, 2);
}
Expression random_uniform(ComputationGraph &g, const Dim &d, real left, real right,
                          Device *device) {
  return constant_leaf(g, device, VPPS_OP_RANDOM_UNIFORM, d, left, right, 2);
}
Expression random_gumbel(ComputationGraph &g, const Dim &d, real mu, real beta, Device *device) {
  return constant_leaf(g, device, VPPS_OP_RANDOM_GUMBEL, d, mu, beta, 2);
}

// ---- arithmetic ----------------------------------------------------------------

Expression operator-(const Expression &x) { return recorder.unary(VPPS_OP_NEGATE, x); }
Expression operator+(const Expression &x, const Expression &y) {
  return recorder.elementwise(VPPS_OP_CWISE_SUM, x, y);
}
Expression operator+(real x, const Expression &y) {
  return recorder.unary(VPPS_OP_CONSTANT_PLUS_X, y, x);
}
Expression operator+(const Expression &x, real y) { return y + x; }
Expression operator-(const Expression &x, const Expression &y) {
  recorder.own(x);
  Undo undo;
  return undo.done(x + (-y));
}
Expression operator-(real x, const Expression &y) {
  return recorder.unary(VPPS_OP_CONSTANT_MINUS_X, y, x);
}
Expression operator-(const Expression &x, real y) { return -(y - x); }
Expression operator*(const Expression &x, const Expression &y) {
  Expression xy[2] = {x, y};
  return recorder.node(VPPS_OP_MATRIX_MULTIPLY, xy, 2);
}
Expression operator*(const Expression &x, float y) {
  return recorder.unary(VPPS_OP_CONST_SCALAR_MULTIPLY, x, y);
}
Expression operator/(const Expression &x, const Expression &y) { return cdiv(x, y); }

Expression affine_transform(List xs) {
  return recorder.node(VPPS_OP_AFFINE_TRANSFORM, xs.begin(), xs.size());
}
Expression affine_transform(Vector xs) {
  return recorder.node(VPPS_OP_AFFINE_TRANSFORM, xs.data(), xs.size());
}
Expression sum(List xs) { return recorder.node(VPPS_OP_SUM, xs.begin(), xs.size()); }
Expression sum(Vector xs) { return recorder.node(VPPS_OP_SUM, xs.data(), xs.size()); }
Expression average(List xs) { return recorder.node(VPPS_OP_AVERAGE, xs.begin(), xs.size()); }
Expression average(Vector xs) { return recorder.node(VPPS_OP_AVERAGE, xs.data(), xs.size()); }
Expression cmult(const Expression &x, const Expression &y) {
  return recorder.elementwise(VPPS_OP_CWISE_MULTIPLY, x, y);
}
Expression cdiv(const Expression &x, const Expression &y) {
  return recorder.elementwise(VPPS_OP_CWISE_QUOTIENT, x, y);
}

namespace {
Expression binary(uint32_t op, const Expression &x, const Expression &y) {
  Expression xy[2] = {x, y};
  return recorder.node(op, xy, 2);
}
Expression checked(uint32_t op, const Expression &x) { return recorder.node(op, &x, 1); }
} // namespace

Expression colwise_add(const Expression &x, const Expression &bias) {
  return binary(VPPS_OP_ADD_VECTOR_TO_ALL_COLUMNS, x, bias);
}
Expression contract3d_1d(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_INNER_PRODUCT3_D_1_D, x, y);
}
Expression contract3d_1d(const Expression &x, const Expression &y, const Expression &b) {
  Expression xs[3] = {x, y, b};
  return recorder.node(VPPS_OP_INNER_PRODUCT3_D_1_D, xs, 3);
}
Expression contract3d_1d_1d(const Expression &x, const Expression &y, const Expression &z) {
  Expression xs[3] = {x, y, z};
  return recorder.node(VPPS_OP_INNER_PRODUCT3_D_1_D_1_D, xs, 3);
}
Expression contract3d_1d_1d(const Expression &x, const Expression &y, const Expression &z,
                            const Expression &b) {
  Expression xs[4] = {x, y, z, b};
  return recorder.node(VPPS_OP_INNER_PRODUCT3_D_1_D_1_D, xs, 4);
}
Expression circ_conv(const Expression &u, const Expression &v) {
  return binary(VPPS_OP_CIRCULAR_CONVOLUTION, u, v);
}
Expression circ_corr(const Expression &u, const Expression &v) {
  return binary(VPPS_OP_CIRCULAR_CORRELATION, u, v);
}
Expression inverse(const Expression &x) { return checked(VPPS_OP_MATRIX_INVERSE, x); }
Expression logdet(const Expression &x) { return checked(VPPS_OP_LOG_DET, x); }
Expression trace_of_product(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_TRACE_OF_PRODUCT, x, y);
}
Expression pow(const Expression &x, const Expression &y) { return binary(VPPS_OP_POW, x, y); }
Expression min(const Expression &x, const Expression &y) { return binary(VPPS_OP_MIN, x, y); }
Expression max(const Expression &x, const Expression &y) { return binary(VPPS_OP_MAX, x, y); }
Expression max(List xs) { return recorder.node(VPPS_OP_MAX, xs.begin(), xs.size()); }
Expression max(Vector xs) { return recorder.node(VPPS_OP_MAX, xs.data(), xs.size()); }

Expression sqrt(const Expression &x) { return recorder.unary(VPPS_OP_SQRT, x); }
Expression abs(const Expression &x) { return recorder.unary(VPPS_OP_ABS, x); }
Expression tanh(const Expression &x) { return recorder.unary(VPPS_OP_TANH, x); }
Expression exp(const Expression &x) { return recorder.unary(VPPS_OP_EXP, x); }
Expression square(const Expression &x) { return recorder.unary(VPPS_OP_SQUARE, x); }
Expression log(const Expression &x) { return recorder.unary(VPPS_OP_LOG, x); }
Expression logistic(const Expression &x) { return recorder.unary(VPPS_OP_LOGISTIC_SIGMOID, x); }
Expression rectify(const Expression &x) { return recorder.unary(VPPS_OP_RECTIFY, x); }
Expression cube(const Expression &x) { return recorder.unary(VPPS_OP_CUBE, x); }
Expression sin(const Expression &x) { return recorder.unary(VPPS_OP_SIN, x); }
Expression cos(const Expression &x) { return recorder.unary(VPPS_OP_COS, x); }
Expression tan(const Expression &x) { return recorder.unary(VPPS_OP_TAN, x); }
Expression asin(const Expression &x) { return recorder.unary(VPPS_OP_ASIN, x); }
Expression acos(const Expression &x) { return recorder.unary(VPPS_OP_ACOS, x); }
Expression atan(const Expression &x) { return recorder.unary(VPPS_OP_ATAN, x); }
Expression sinh(const Expression &x) { return recorder.unary(VPPS_OP_SINH, x); }
Expression cosh(const Expression &x) { return recorder.unary(VPPS_OP_COSH, x); }
Expression asinh(const Expression &x) { return recorder.unary(VPPS_OP_ASINH, x); }
Expression acosh(const Expression &x) { return recorder.unary(VPPS_OP_ACOSH, x); }
Expression atanh(const Expression &x) { return recorder.unary(VPPS_OP_ATANH, x); }
Expression erf(const Expression &x) { return recorder.unary(VPPS_OP_ERF, x); }
Expression lgamma(const Expression &x) { return recorder.unary(VPPS_OP_LOG_GAMMA, x); }
Expression log_sigmoid(const Expression &x) { return recorder.unary(VPPS_OP_LOG_SIGMOID, x); }
Expression silu(const Expression &x, float beta) {
  return recorder.unary(VPPS_OP_SIGMOID_LINEAR_UNIT, x, beta);
}
Expression softsign(const Expression &x) { return checked(VPPS_OP_SOFT_SIGN, x); }

namespace {
Expression linear_unit(const Expression &x, float lambda, float alpha) {
  uint32_t attrs[2] = {float_bits(lambda), float_bits(alpha)};
  return recorder.node(VPPS_OP_EXPONENTIAL_LINEAR_UNIT, &x, 1, attrs, 2);
}
float slope(GradientMode mode) { return mode == straight_through_gradient ? 1.f : 0.f; }
} // namespace

Expression elu(const Expression &x, float alpha) { return linear_unit(x, 1.f, alpha); }
Expression selu(const Expression &x) {
  return linear_unit(x, 1.0507009873554805f, 1.6732632423543772f);
}
Expression round(const Expression &x, GradientMode gradient_mode) {
  return recorder.unary(VPPS_OP_ROUND, x, slope(gradient_mode));
}
Expression ceil(const Expression &x, GradientMode gradient_mode) {
  return recorder.unary(VPPS_OP_CEIL, x, slope(gradient_mode));
}
Expression floor(const Expression &x, GradientMode gradient_mode) {
  return recorder.unary(VPPS_OP_FLOOR, x, slope(gradient_mode));
}

// ---- reductions ----------------------------------------------------------------

namespace {

uint32_t axis_mask(const char *what, const std::vector<unsigned> &dims) {
  uint32_t mask = 0;
  for (unsigned d : dims) {
    if (d >= DYNET_MAX_TENSOR_DIM || mask >> d & 1)
      throw std::invalid_argument(
          std::string(what) + ": axis " + std::to_string(d) +
          (d >= DYNET_MAX_TENSOR_DIM ? " is out of range" : " is named twice"));
    mask |= 1u << d;
  }
  return mask;
}

uint32_t all_axes(const Expression &x) {
  recorder.own(x);
  return (1u << recorder.dim(x.i).nd) - 1;
}

Expression sum_over(const Expression &x, uint32_t axes, bool batch) {
  uint32_t attrs[2] = {axes, batch};
  return recorder.node(VPPS_OP_SUM_DIMENSION, &x, 1, attrs, 2);
}

Expression deviation(const Expression &x, uint32_t axes, bool batch, unsigned n) {
  uint32_t attrs[3] = {axes, batch, n};
  return recorder.node(VPPS_OP_STD_DIMENSION, &x, 1, attrs, 3);
}

Expression moment(const Expression &x, uint32_t axes, unsigned order, bool batch, unsigned n) {
  uint32_t attrs[4] = {axes, order, batch, n};
  return recorder.node(VPPS_OP_MOMENT_DIMENSION, &x, 1, attrs, 4);
}

} // namespace

Expression sum_elems(const Expression &x) { return checked(VPPS_OP_SUM_ELEMENTS, x); }
Expression moment_elems(const Expression &x, unsigned r) {
  return moment(x, all_axes(x), r, false, 0);
}
Expression mean_elems(const Expression &x) { return moment_elems(x, 1); }
Expression sum_batches(const Expression &x) { return sum_over(x, 0, true); }
Expression moment_batches(const Expression &x, unsigned r) { return moment(x, 0, r, true, 0); }
Expression mean_batches(const Expression &x) { return moment_batches(x, 1); }
Expression sum_dim(const Expression &x, const std::vector<unsigned> &dims, bool b) {
  return sum_over(x, axis_mask("sum_dim", dims), b);
}
Expression sum_rows(const Expression &x) { return sum_over(x, 1, false); }
Expression sum_cols(const Expression &x) { return sum_over(x, 2, false); }
Expression moment_dim(const Expression &x, const std::vector<unsigned> &dims, unsigned r, bool b,
                      unsigned n) {
  return moment(x, axis_mask("moment_dim", dims), r, b, n);
}
Expression mean_dim(const Expression &x, const std::vector<unsigned> &dims, bool b, unsigned n) {
  return moment(x, axis_mask("mean_dim", dims), 1, b, n);
}
Expression average_cols(const Expression &x) { return moment(x, 2, 1, false, 0); }
Expression dot_product(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_DOT_PRODUCT, x, y);
}
Expression squared_distance(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_SQUARED_EUCLIDEAN_DISTANCE, x, y);
}
Expression std_elems(const Expression &x) { return deviation(x, all_axes(x), false, 0); }
Expression std_batches(const Expression &x) { return deviation(x, 0, true, 0); }
Expression std_dim(const Expression &x, const std::vector<unsigned> &dims, bool b, unsigned n) {
  return deviation(x, axis_mask("std_dim", dims), b, n);
}
Expression cumsum(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_CUMULATIVE_SUM, &x, 1, &d, 1);
}
Expression max_dim(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_MAX_DIMENSION, &x, 1, &d, 1);
}
Expression min_dim(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_MIN_DIMENSION, &x, 1, &d, 1);
}
Expression argmax(const Expression &x, GradientMode gradient_mode) {
  uint32_t attr = float_bits(slope(gradient_mode));
  return recorder.node(VPPS_OP_ARGMAX, &x, 1, &attr, 1);
}
Expression logsumexp(List xs) { return recorder.node(VPPS_OP_LOG_SUM_EXP, xs.begin(), xs.size()); }
Expression logsumexp(Vector xs) { return recorder.node(VPPS_OP_LOG_SUM_EXP, xs.data(), xs.size()); }
Expression logsumexp_dim(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_LOG_SUM_EXP_DIMENSION, &x, 1, &d, 1);
}
Expression l1_distance(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_L1_DISTANCE, x, y);
}
Expression huber_distance(const Expression &x, const Expression &y, float c) {
  Expression xy[2] = {x, y};
  uint32_t attr = float_bits(c);
  return recorder.node(VPPS_OP_HUBER_DISTANCE, xy, 2, &attr, 1);
}
Expression squared_norm(const Expression &x) { return checked(VPPS_OP_SQUARED_NORM, x); }
Expression l2_norm(const Expression &x) { return checked(VPPS_OP_L2_NORM, x); }

// ---- losses --------------------------------------------------------------------

Expression softmax(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_SOFTMAX, &x, 1, &d, 1);
}
Expression log_softmax(const Expression &x) { return checked(VPPS_OP_LOG_SOFTMAX, x); }
Expression log_softmax(const Expression &x, const std::vector<unsigned> &restriction) {
  Indices rows(restriction);
  uint32_t attrs[2] = {rows.at(), static_cast<uint32_t>(rows.n)};
  return rows.add(recorder.node(VPPS_OP_RESTRICTED_LOG_SOFTMAX, &x, 1, attrs, 2));
}

namespace {
Expression nll(const Expression &x, const Indices &v) {
  v.match("pickneglogsoftmax", x);
  uint32_t at = v.at();
  return v.add(recorder.node(VPPS_OP_PICK_NEG_LOG_SOFTMAX, &x, 1, &at, 1));
}
Expression hinge_loss(const Expression &x, const Indices &v, float m) {
  v.match("hinge", x);
  uint32_t attrs[2] = {float_bits(m), v.at()};
  return v.add(recorder.node(VPPS_OP_HINGE, &x, 1, attrs, 2));
}
} // namespace

Expression pickneglogsoftmax(const Expression &x, unsigned v) { return nll(x, v); }
Expression pickneglogsoftmax(const Expression &x, const unsigned *pv) { return nll(x, pv); }
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> &v) {
  return nll(x, v);
}
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> *pv) {
  return nll(x, pv);
}
Expression hinge(const Expression &x, unsigned index, float m) { return hinge_loss(x, index, m); }
Expression hinge(const Expression &x, const unsigned *pindex, float m) {
  return hinge_loss(x, pindex, m);
}
Expression hinge(const Expression &x, const std::vector<unsigned> &indices, float m) {
  return hinge_loss(x, indices, m);
}
Expression hinge(const Expression &x, const std::vector<unsigned> *pindices, float m) {
  return hinge_loss(x, pindices, m);
}

namespace {
Expression hinges(const Expression &x, const Indices &v, unsigned d, float m) {
  uint32_t attrs[4] = {float_bits(m), d, v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(VPPS_OP_HINGE_DIM, &x, 1, attrs, 4));
}
uint32_t total(const std::vector<std::vector<unsigned>> &lists) {
  size_t n = 0;
  for (const std::vector<unsigned> &v : lists)
    n += v.size();
  return static_cast<uint32_t>(n);
}
} // namespace

Expression hinge_dim(const Expression &x, const std::vector<unsigned> &indices, unsigned d,
                     float m) {
  return hinges(x, indices, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<unsigned> *pindex, unsigned d,
                     float m) {
  return hinges(x, pindex, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> &indices,
                     unsigned d, float m) {
  std::vector<unsigned> all;
  for (const std::vector<unsigned> &v : indices)
    all.insert(all.end(), v.begin(), v.end());
  return hinges(x, all, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> *pindices,
                     unsigned d, float m) {
  uint32_t n = total(*given(pindices, "hinge_dim"));
  uint32_t attrs[4] = {float_bits(m), d, inputs_at(n), n};
  recorder.patches.room(pindices->size());
  Expression e = recorder.node(VPPS_OP_HINGE_DIM, &x, 1, attrs, 4);
  return append_lists_later(e, *pindices);
}
Expression sparsemax(const Expression &x) { return checked(VPPS_OP_SPARSEMAX, x); }

namespace {
// A node whose attributes are a list of index numbers and its length.
Expression listed(uint32_t op, const Expression &x, const Indices &v) {
  uint32_t attrs[2] = {v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(op, &x, 1, attrs, 2));
}
Expression poisson(const Expression &x, const Indices &y) {
  uint32_t at = y.at();
  return y.add(recorder.node(VPPS_OP_POISSON_REGRESSION_LOSS, &x, 1, &at, 1));
}
} // namespace

Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> &target_support) {
  return listed(VPPS_OP_SPARSEMAX_LOSS, x, target_support);
}
Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> *ptarget_support) {
  return listed(VPPS_OP_SPARSEMAX_LOSS, x, ptarget_support);
}
Expression constrained_softmax(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_CONSTRAINED_SOFTMAX, x, y);
}
Expression pairwise_rank_loss(const Expression &x, const Expression &y, real m) {
  Expression xy[2] = {x, y};
  uint32_t attr = float_bits(m);
  return recorder.node(VPPS_OP_PAIRWISE_RANK_LOSS, xy, 2, &attr, 1);
}
Expression poisson_loss(const Expression &x, unsigned y) { return poisson(x, y); }
Expression poisson_loss(const Expression &x, const unsigned *py) { return poisson(x, py); }
Expression binary_log_loss(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_BINARY_LOG_LOSS, x, y);
}

// ---- shape and selection -------------------------------------------------------

Expression nobackprop(const Expression &x) { return recorder.unary(VPPS_OP_NO_BACKPROP, x); }
Expression scale_gradient(const Expression &x, float lambd) {
  return recorder.unary(VPPS_OP_SCALE_GRADIENT, x, lambd);
}
Expression flip_gradient(const Expression &x) { return scale_gradient(x, -1.f); }
Expression to_device(const Expression &x, Device *device) {
  const Expression copy = reshape(x, x.dim());
  recorder.put(copy.i, device, true);
  return copy;
}

Expression reshape(const Expression &x, const Dim &d) {
  recorder.own(x);
  if (d.nd > DYNET_MAX_TENSOR_DIM)
    throw std::invalid_argument("reshape: a dim has at most 7 axes");
  return recorder.node(VPPS_OP_RESHAPE, &x.i, 1, nullptr, 0, &d);
}

Expression transpose(const Expression &x, const std::vector<unsigned> &dims) {
  if (dims.empty() || dims.size() > DYNET_MAX_TENSOR_DIM)
    throw std::invalid_argument("transpose: needs 1 to 7 axes");
  uint32_t axes = 0;
  uint32_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= dims.size() || seen >> dims[i] & 1)
      throw std::invalid_argument("transpose: the axes are not a permutation");
    seen |= 1u << dims[i];
    axes |= dims[i] << 4 * i;
  }
  return recorder.node(VPPS_OP_TRANSPOSE, &x, 1, &axes, 1);
}

namespace {
Expression pick_slice(const Expression &x, const Indices &v, unsigned d) {
  // On the wire, one number stands for the whole batch; a vector of one does not.
  if (v.several && (v.n == 1 || recorder.batch(x) != 1))
    v.match("pick", x);
  uint32_t attrs[3] = {d, v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(VPPS_OP_PICK_ELEMENT, &x, 1, attrs, 3));
}
Expression pick_elements(const Expression &x, const Indices &v) {
  uint32_t attrs[2] = {v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(VPPS_OP_PICK_BATCH_ELEMENTS, &x, 1, attrs, 2));
}
} // namespace

Expression pick(const Expression &x, unsigned v, unsigned d) { return pick_slice(x, v, d); }
Expression pick(const Expression &x, const std::vector<unsigned> &v, unsigned d) {
  return pick_slice(x, v, d);
}
Expression pick(const Expression &x, const unsigned *pv, unsigned d) {
  return pick_slice(x, pv, d);
}
Expression pick(const Expression &x, const std::vector<unsigned> *pv, unsigned d) {
  return pick_slice(x, pv, d);
}
Expression pick_range(const Expression &x, unsigned s, unsigned e, unsigned d) {
  uint32_t attrs[3] = {s, e, d};
  return recorder.node(VPPS_OP_PICK_RANGE, &x, 1, attrs, 3);
}
Expression pickrange(const Expression &x, unsigned s, unsigned e) { return pick_range(x, s, e); }
Expression pick_batch_elem(const Expression &x, unsigned v) { return pick_elements(x, v); }
Expression pick_batch_elem(const Expression &x, const unsigned *pv) { return pick_elements(x, pv); }
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> &v) {
  return pick_elements(x, v);
}
Expression pick_batch_elems(const Expression &x, const std::vector<unsigned> *pv) {
  return pick_elements(x, pv);
}
Expression select_rows(const Expression &x, const std::vector<unsigned> &rows) {
  return listed(VPPS_OP_SELECT_ROWS, x, rows);
}
Expression select_rows(const Expression &x, const std::vector<unsigned> *prows) {
  return listed(VPPS_OP_SELECT_ROWS, x, prows);
}
Expression select_cols(const Expression &x, const std::vector<unsigned> &cols) {
  return listed(VPPS_OP_SELECT_COLS, x, cols);
}
Expression select_cols(const Expression &x, const std::vector<unsigned> *pcols) {
  return listed(VPPS_OP_SELECT_COLS, x, pcols);
}

Expression strided_select(const Expression &x, const std::vector<int> &strides,
                          const std::vector<int> &from, const std::vector<int> &to) {
  recorder.own(x);
  const Dim &d = recorder.dim(x.i);
  const size_t axes = d.nd;
  if (axes > 4)
    throw std::invalid_argument("strided_select: takes at most 4 axes");
  if (strides.size() > axes + 1 || from.size() > axes + 1 || to.size() > axes + 1)
    throw std::invalid_argument("strided_select: the lists have more entries than the expression "
                                "has axes and a batch");
  uint32_t attrs[15];
  for (size_t i = 0; i < 5; ++i) { // of an axis that is not there, and of the batch at the end
    const size_t k = i == 4 ? axes : i < axes ? i : axes + 1;
    const int first = k < from.size() ? from[k] : 0, step = k < strides.size() ? strides[k] : 1;
    const int end = k < to.size() ? to[k] : i == 4 ? int(d.bd) : i < axes ? int(d.d[i]) : 1;
    if (first < 0 || end < 0 || step < 1)
      throw std::invalid_argument("strided_select: strides must be at least 1, from and to at "
                                  "least 0");
    attrs[3 * i] = static_cast<uint32_t>(first);
    attrs[3 * i + 1] = static_cast<uint32_t>(end);
    attrs[3 * i + 2] = static_cast<uint32_t>(step);
  }
  return recorder.node(VPPS_OP_STRIDED_SELECT, &x, 1, attrs, 15);
}

Expression fold_rows(const Expression &x, unsigned nrows) {
  return recorder.node(VPPS_OP_FOLD_ROWS, &x, 1, &nrows, 1);
}
Expression concatenate_to_batch(List xs) {
  return recorder.node(VPPS_OP_CONCATENATE_TO_BATCH, xs.begin(), xs.size());
}
Expression concatenate_to_batch(Vector xs) {
  return recorder.node(VPPS_OP_CONCATENATE_TO_BATCH, xs.data(), xs.size());
}
Expression concatenate(List xs, unsigned d) {
  return recorder.node(VPPS_OP_CONCATENATE, xs.begin(), xs.size(), &d, 1);
}
Expression concatenate(Vector xs, unsigned d) {
  return recorder.node(VPPS_OP_CONCATENATE, xs.data(), xs.size(), &d, 1);
}
Expression concatenate_cols(List xs) { return concatenate(xs, 1); }
Expression concatenate_cols(Vector xs) { return concatenate(xs, 1); }

// ---- convolution, pooling, normalisation -----------------------------------------

namespace {
void two_sizes(const char *what, const std::vector<unsigned> &v) {
  if (v.size() != 2)
    throw std::invalid_argument(std::string(what) +
                                " needs two numbers, for rows and columns; got " +
                                std::to_string(v.size()));
}
} // namespace

Expression conv2d(const Expression &x, const Expression &f, const std::vector<unsigned> &stride,
                  bool is_valid) {
  two_sizes("conv2d: stride", stride);
  Expression xs[2] = {x, f};
  uint32_t attrs[3] = {stride[0], stride[1], is_valid};
  return recorder.node(VPPS_OP_CONV2_D, xs, 2, attrs, 3);
}
Expression conv2d(const Expression &x, const Expression &f, const Expression &b,
                  const std::vector<unsigned> &stride, bool is_valid) {
  two_sizes("conv2d: stride", stride);
  Expression xs[3] = {x, f, b};
  uint32_t attrs[3] = {stride[0], stride[1], is_valid};
  return recorder.node(VPPS_OP_CONV2_D, xs, 3, attrs, 3);
}
Expression maxpooling2d(const Expression &x, const std::vector<unsigned> &ksize,
                        const std::vector<unsigned> &stride, bool is_valid) {
  two_sizes("maxpooling2d: ksize", ksize);
  two_sizes("maxpooling2d: stride", stride);
  uint32_t attrs[5] = {ksize[0], ksize[1], stride[0], stride[1], is_valid};
  return recorder.node(VPPS_OP_MAX_POOLING2_D, &x, 1, attrs, 5);
}
Expression filter1d_narrow(const Expression &x, const Expression &f) {
  return binary(VPPS_OP_FILTER1_D_NARROW, x, f);
}
Expression kmax_pooling(const Expression &x, unsigned k, unsigned d) {
  uint32_t attrs[2] = {k, d};
  return recorder.node(VPPS_OP_K_MAX_POOLING, &x, 1, attrs, 2);
}
Expression kmh_ngram(const Expression &x, unsigned n) {
  return recorder.node(VPPS_OP_KMHN_GRAM, &x, 1, &n, 1);
}
Expression layer_norm(const Expression &x, const Expression &g, const Expression &b) {
  recorder.own(x);
  Undo undo;
  Expression mean = mean_elems(x), centred = x - mean, sigma = std_elems(x);
  return undo.done(cmult(g, cdiv(centred, sigma + 1e-8f)) + b);
}
Expression weight_norm(const Expression &w, const Expression &g) {
  return binary(VPPS_OP_WEIGHT_NORMALIZATION, w, g);
}

// ---- noise ---------------------------------------------------------------------

Expression noise(const Expression &x, real stddev) {
  return recorder.unary(VPPS_OP_GAUSSIAN_NOISE, x, stddev);
}
Expression dropout(const Expression &x, real p) {
  if (!(p >= 0 && p <= 1))
    throw std::invalid_argument("dropout: the probability to drop an element must be in [0, 1]");
  return recorder.unary(VPPS_OP_DROPOUT, x, p);
}

Expression dropout_dim(const Expression &x, unsigned d, real p) {
  uint32_t attrs[2] = {d, float_bits(p)};
  return recorder.node(VPPS_OP_DROPOUT_DIM, &x, 1, attrs, 2);
}
Expression dropout_batch(const Expression &x, real p) {
  uint32_t attr = float_bits(p);
  return recorder.node(VPPS_OP_DROPOUT_BATCH, &x, 1, &attr, 1);
}
Expression block_dropout(const Expression &x, real p) {
  uint32_t attr = float_bits(p);
  return recorder.node(VPPS_OP_BLOCK_DROPOUT, &x, 1, &attr, 1);
}

// ---- LSTM ----------------------------------------------------------------------

namespace {
// rest: h, Wx, Wh, b and, with dropout, masks.
Expression gates(uint32_t op, const std::vector<Expression> &x, std::vector<Expression> rest,
                 real weightnoise_std) {
  if (!(weightnoise_std >= 0 && std::isfinite(weightnoise_std)))
    throw std::invalid_argument("vanilla_lstm_gates: weightnoise_std must be a deviation of 0 or "
                                "more");
  recorder.own(rest[0]);
  Undo undo;
  if (weightnoise_std > 0)
    for (size_t k = 1; k <= 3; ++k)
      rest[k] = noise(rest[k], weightnoise_std);
  std::vector<Expression> all(x);
  all.insert(all.end(), rest.begin(), rest.end());
  uint32_t forget_bias = float_bits(1.f);
  return undo.done(recorder.node(op, all.data(), all.size(), &forget_bias, 1));
}
} // namespace

Expression vanilla_lstm_gates_concat(Vector x_t, const Expression &h_tm1, const Expression &Wx,
                                     const Expression &Wh, const Expression &b,
                                     real weightnoise_std) {
  return gates(VPPS_OP_VANILLA_LSTM_GATES, x_t, {h_tm1, Wx, Wh, b}, weightnoise_std);
}
Expression vanilla_lstm_gates(const Expression &x_t, const Expression &h_tm1, const Expression &Wx,
                              const Expression &Wh, const Expression &b, real weightnoise_std) {
  return gates(VPPS_OP_VANILLA_LSTM_GATES, {x_t}, {h_tm1, Wx, Wh, b}, weightnoise_std);
}
Expression vanilla_lstm_gates_dropout_concat(Vector x_t, const Expression &h_tm1,
                                             const Expression &Wx, const Expression &Wh,
                                             const Expression &b, const Expression &dropout_mask_x,
                                             const Expression &dropout_mask_h,
                                             real weightnoise_std) {
  return gates(VPPS_OP_VANILLA_LSTM_GATES_DROPOUT, x_t,
               {h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h}, weightnoise_std);
}
Expression vanilla_lstm_gates_dropout(const Expression &x_t, const Expression &h_tm1,
                                      const Expression &Wx, const Expression &Wh,
                                      const Expression &b, const Expression &dropout_mask_x,
                                      const Expression &dropout_mask_h, real weightnoise_std) {
  return gates(VPPS_OP_VANILLA_LSTM_GATES_DROPOUT, {x_t},
               {h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h}, weightnoise_std);
}
Expression vanilla_lstm_c(const Expression &c_tm1, const Expression &gates_t) {
  return binary(VPPS_OP_VANILLA_LSTMC, c_tm1, gates_t);
}
Expression vanilla_lstm_h(const Expression &c_t, const Expression &gates_t) {
  return binary(VPPS_OP_VANILLA_LSTMH, c_t, gates_t);
}

} // namespace dynet
