// The expression functions that choose, move and filter elements, draw noise, and form LSTM cells.
#include "dynet/expr.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "recording.h"

namespace dynet {

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
