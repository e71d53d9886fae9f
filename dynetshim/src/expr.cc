// The expression functions: each records the nodes that DyNet's function makes, in its
// order. Shapes are checked by the recorder; what is checked here is what the wire does
// not carry, as the number of labels. Here are leaves, arithmetic and reductions; losses and
// what chooses, moves or filters elements have files of their own.
#include "dynet/expr.h"

#include <stdexcept>
#include <string>

#include "recording.h"

namespace dynet {

namespace {

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
  return append_later(e, Patch::one_float, ps, 1);
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
  return append_later(e, Patch::floats, pdata, d.size());
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

} // namespace dynet
