/* The shape rules: which arguments each operation of the wire format takes, and the
 * dim of its result. They exist once, here, as plain C: the C++ front-end calls
 * vpps_infer_dim while recording, and so does the decoder (decode.h).
 * Messages are one line and print every dim as {rows,cols} or {rows,colsXbatch}. */
#ifndef VPPS_SHAPE_H
#define VPPS_SHAPE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dims.h"
#include "ops.h"
#include "vpps.h"

/* The name of an operation, NULL if there is none with this code. */
static inline const char *vpps_op_name(uint32_t op) {
  switch (op) {
#define VPPS_OP(code, NAME, name, args, attrs)                                                     \
  case code:                                                                                       \
    return name;
    VPPS_OPS(VPPS_OP)
#undef VPPS_OP
  }
  return NULL;
}

/* Its number of arguments, -1 if that is on the wire. */
static inline int vpps_op_args(uint32_t op) {
  switch (op) {
#define VPPS_OP(code, NAME, name, args, attrs)                                                     \
  case code:                                                                                       \
    return args;
    VPPS_OPS(VPPS_OP)
#undef VPPS_OP
  }
  return 0;
}

/* Its number of attribute words. */
static inline int vpps_op_attrs(uint32_t op) {
  switch (op) {
#define VPPS_OP(code, NAME, name, args, attrs)                                                     \
  case code:                                                                                       \
    return attrs;
    VPPS_OPS(VPPS_OP)
#undef VPPS_OP
  }
  return 0;
}

/* ---- messages ----------------------------------------------------------- */

/* Appends the dim to a message that is *at characters long. */
static inline void vpps_print_dim(char *msg, size_t size, size_t *at, const vpps_dim *x) {
#define VPPS_APPEND(...)                                                                           \
  do {                                                                                             \
    if (*at < size) {                                                                              \
      int n_ = snprintf(msg + *at, size - *at, __VA_ARGS__);                                       \
      *at += n_ > 0 ? (size_t)n_ : 0;                                                              \
    }                                                                                              \
  } while (0)
  VPPS_APPEND("{");
  for (uint32_t i = 0; i < x->nd && i < VPPS_MAX_AXES; i++)
    VPPS_APPEND(i ? ",%u" : "%u", (unsigned)x->d[i]);
  if (x->bd != 1)
    VPPS_APPEND("X%u", (unsigned)x->bd);
  VPPS_APPEND("}");
}

/* "Operation: reason; got {..} {..}" with at most eight of the arguments. Returns -1. */
static inline int vpps_bad_shape(uint32_t op, const vpps_dim *const *args, uint32_t nargs,
                                 const char *reason, char *msg, size_t size) {
  const char *name = vpps_op_name(op);
  size_t length = 0, *at = &length;
  VPPS_APPEND("%s: %s", name ? name : "unknown operation", reason);
  if (nargs > 0)
    VPPS_APPEND("; got");
  for (uint32_t i = 0; i < nargs && i < 8; i++) {
    VPPS_APPEND(" ");
    vpps_print_dim(msg, size, at, args[i]);
  }
  if (nargs > 8)
    VPPS_APPEND(" and %u more", (unsigned)(nargs - 8));
  return -1;
#undef VPPS_APPEND
}

/* ---- rules of the larger operations -------------------------------------
 * Each returns the reason, or NULL when the shapes fit. */

static inline const char *vpps_dim_affine(const vpps_dim *const *x, uint32_t n, vpps_dim *dim) {
  if (n % 2 == 0)
    return "needs an odd number of arguments: a bias and pairs of factors";
  if (n == 1) {
    *dim = *x[0];
    return NULL;
  }
  uint32_t rows = vpps_rows(x[1]), cols = vpps_cols(x[2]), bd = x[0]->bd;
  for (uint32_t i = 1; i < n; i += 2) {
    if (x[i]->nd > 2 || x[i + 1]->nd > 2)
      return "the factors must be vectors or matrices";
    if (vpps_cols(x[i]) != vpps_rows(x[i + 1]))
      return "the columns of a left factor must be the rows of its right factor";
    if (vpps_rows(x[i]) != rows || vpps_cols(x[i + 1]) != cols)
      return "all products must have the same shape";
    if (!vpps_broadcast(x[i]->bd, x[i + 1]->bd))
      return "batch sizes must be equal or 1";
    bd = vpps_larger(bd, vpps_larger(x[i]->bd, x[i + 1]->bd));
  }
  for (uint32_t i = 0; i < n; i++)
    if (!vpps_broadcast(x[i]->bd, bd))
      return "batch sizes must be equal or 1";
  if (x[0]->nd > 2 || vpps_rows(x[0]) != rows || (vpps_cols(x[0]) != 1 && vpps_cols(x[0]) != cols))
    return "the bias must have the rows of the products, and one column or theirs";
  vpps_make_dim(dim, cols == 1 ? 1 : 2, rows, cols, bd);
  return NULL;
}

static inline const char *vpps_dim_concatenate(const vpps_dim *const *x, uint32_t n, uint32_t axis,
                                               vpps_dim *dim) {
  if (n == 0)
    return "needs at least one argument";
  if (axis >= VPPS_MAX_AXES)
    return "the axis is out of range";
  vpps_dim r;
  memset(&r, 0, sizeof r);
  uint64_t length = 0;
  r.nd = vpps_larger(x[0]->nd, axis + 1);
  r.bd = x[0]->bd;
  for (uint32_t i = 0; i < r.nd; i++)
    r.d[i] = vpps_axis(x[0], i);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t nd = vpps_larger(r.nd, x[k]->nd);
    for (uint32_t i = 0; i < nd; i++)
      if (i != axis && vpps_axis(x[k], i) != vpps_axis(&r, i))
        return "all axes but the concatenated one must be equal";
    if (!vpps_broadcast(x[k]->bd, r.bd))
      return "batch sizes must be equal or 1";
    r.bd = vpps_larger(r.bd, x[k]->bd);
    length += vpps_axis(x[k], axis);
  }
  if (length >= (1u << 31))
    return "the result is too large";
  r.d[axis] = (uint32_t)length;
  *dim = r;
  return NULL;
}

/* x..., h, Wx, Wh, b [, mask_x, mask_h] */
static inline const char *vpps_dim_gates(const vpps_dim *const *x, uint32_t n, uint32_t masks,
                                         vpps_dim *dim) {
  if (n < 5 + masks)
    return masks ? "needs the arguments x..., h, Wx, Wh, b, mask_x, mask_h"
                 : "needs the arguments x..., h, Wx, Wh, b";
  uint32_t nx = n - 4 - masks;
  const vpps_dim *h = x[nx], *wx = x[nx + 1], *wh = x[nx + 2], *b = x[nx + 3];
  uint64_t input = 0, hidden = vpps_rows(h);
  for (uint32_t i = 0; i < nx; i++) {
    if (!vpps_is_vector(x[i]))
      return "every x must be a vector";
    if (x[i]->bd != x[0]->bd)
      return "every x must have the same batch size";
    input += vpps_rows(x[i]);
  }
  if (!vpps_is_vector(h) || h->bd != x[0]->bd)
    return "h must be a vector with the batch size of x";
  if (wx->nd > 2 || wx->bd != 1 || vpps_rows(wx) != 4 * hidden || vpps_cols(wx) != input)
    return "Wx must be a matrix of 4*rows(h) rows and rows(x) columns";
  if (wh->nd > 2 || wh->bd != 1 || vpps_rows(wh) != 4 * hidden || vpps_cols(wh) != hidden)
    return "Wh must be a matrix of 4*rows(h) rows and rows(h) columns";
  if (!vpps_is_vector(b) || b->bd != 1 || vpps_rows(b) != 4 * hidden)
    return "b must be a vector of 4*rows(h) elements";
  if (masks) {
    const vpps_dim *mx = x[nx + 4], *mh = x[nx + 5];
    if (!vpps_is_vector(mx) || vpps_rows(mx) != input || (mx->bd != 1 && mx->bd != x[0]->bd))
      return "mask_x must be a vector of rows(x) elements";
    if (!vpps_is_vector(mh) || vpps_rows(mh) != hidden || (mh->bd != 1 && mh->bd != x[0]->bd))
      return "mask_h must be a vector of rows(h) elements";
  }
  vpps_make_dim(dim, 1, (uint32_t)(4 * hidden), 0, x[0]->bd);
  return NULL;
}

/* Nibble i of axes says which axis of x becomes axis i. The largest of the nibbles
 * tells how many there are, since they are a permutation. */
static inline const char *vpps_dim_transpose(const vpps_dim *x, uint32_t axes, vpps_dim *dim) {
  uint32_t n = 1, seen = 0, large = 0;
  for (uint32_t i = 0; i < 8; i++)
    n = vpps_larger(n, (axes >> 4 * i & 15) + 1);
  if (n > VPPS_MAX_AXES || axes >> 4 * n)
    return "the axes are not a permutation";
  for (uint32_t i = 0; i < n; i++)
    seen |= 1u << (axes >> 4 * i & 15);
  if (seen != (1u << n) - 1)
    return "the axes are not a permutation";
  for (uint32_t i = 0; i < x->nd; i++)
    large += x->d[i] != 1;
  if (x->nd != n && large > 1)
    return "needs one entry for each axis of its argument";
  vpps_dim r;
  memset(&r, 0, sizeof r);
  r.nd = n;
  r.bd = x->bd;
  for (uint32_t i = 0; i < n; i++)
    r.d[i] = vpps_axis(x, axes >> 4 * i & 15);
  if (vpps_batch_size(&r) != vpps_batch_size(x))
    return "needs one entry for each axis of its argument";
  *dim = r;
  return NULL;
}

/* The number of arguments that a rule below counts on. */
static inline const char *vpps_dim_many(uint32_t op, const vpps_dim *const *x, uint32_t n,
                                        vpps_dim *dim) {
  if (n == 0)
    return "needs at least one argument";
  vpps_dim r = *x[0];
  uint64_t batches = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (op == VPPS_OP_SUM || op == VPPS_OP_LOG_SUM_EXP ? !vpps_equal_axes(&r, x[i])
                                                       : !vpps_same_axes(&r, x[i]))
      return "all arguments must have the same shape";
    if (op != VPPS_OP_CONCATENATE_TO_BATCH && !vpps_broadcast(r.bd, x[i]->bd))
      return "batch sizes must be equal or 1";
    r.bd = vpps_larger(r.bd, x[i]->bd);
    batches += x[i]->bd;
  }
  if (op == VPPS_OP_CONCATENATE_TO_BATCH) {
    if (batches >= (1u << 31))
      return "the result is too large";
    r.bd = (uint32_t)batches;
  }
  while (op == VPPS_OP_LOG_SUM_EXP && r.nd > 1 && r.d[r.nd - 1] == 1)
    r.d[--r.nd] = 0;
  *dim = r;
  return NULL;
}

/* All batch sizes are the largest one or 1. */
static inline const char *vpps_batches(const vpps_dim *const *x, uint32_t n, uint32_t *bd) {
  *bd = 1;
  for (uint32_t i = 0; i < n; i++)
    *bd = vpps_larger(*bd, x[i]->bd);
  for (uint32_t i = 0; i < n; i++)
    if (!vpps_broadcast(x[i]->bd, *bd))
      return "batch sizes must be equal or 1";
  return NULL;
}

/* x {i,j,k}, y {k} and, if vectors is 2, z {j}; maybe a bias of the result's shape. */
static inline const char *vpps_dim_contract(const vpps_dim *const *x, uint32_t n, uint32_t vectors,
                                            vpps_dim *dim) {
  uint32_t bd;
  const char *bad = vpps_batches(x, n, &bd);
  if (n != 1 + vectors && n != 2 + vectors)
    return vectors == 1 ? "needs x, y and maybe a bias" : "needs x, y, z and maybe a bias";
  if (x[0]->nd != 3 || !vpps_is_vector(x[1]) || vpps_rows(x[1]) != x[0]->d[2])
    return "needs a tensor {i,j,k} and a vector {k}";
  if (vectors == 2 && (!vpps_is_vector(x[2]) || vpps_rows(x[2]) != x[0]->d[1]))
    return "needs a second vector {j} for a tensor {i,j,k}";
  if (bad)
    return bad;
  vpps_make_dim(dim, 3 - vectors, x[0]->d[0], x[0]->d[1], bd);
  if (n == 2 + vectors && !vpps_same_axes(x[1 + vectors], dim))
    return "the bias must have the result's shape";
  return NULL;
}

/* How many windows of k elements, s apart, there are along an axis of n. */
static inline uint32_t vpps_windows(uint32_t n, uint32_t k, uint32_t s, uint32_t valid) {
  return (valid ? n - k : n - 1) / s + 1;
}

/* The first two axes of what windows of kh x kw elements over x make. */
static inline const char *vpps_dim_windows(const vpps_dim *x, const uint32_t *k, const uint32_t *s,
                                           uint32_t valid, vpps_dim *dim) {
  if (x->nd != 2 && x->nd != 3)
    return "needs an argument {h,w} or {h,w,c}";
  if (valid > 1 || s[0] == 0 || s[1] == 0 || k[0] == 0 || k[1] == 0)
    return "strides and window sizes must be at least 1";
  if (valid && (k[0] > x->d[0] || k[1] > x->d[1]))
    return "the window must not be larger than the argument (is_valid)";
  *dim = *x;
  for (uint32_t i = 0; i < 2; i++)
    dim->d[i] = vpps_windows(x->d[i], k[i], s[i], valid);
  const uint32_t sizes[5] = {k[0], k[1], dim->d[0], dim->d[1], vpps_axis(x, 2)};
  uint64_t elements = x->bd;
  for (uint32_t i = 0; i < 5; i++)
    if ((elements *= sizes[i]) >= (1u << 31))
      return "its windows have 2147483648 elements or more together: take smaller ones";
  return NULL;
}

static inline const char *vpps_dim_conv2d(const vpps_dim *const *x, uint32_t n,
                                          const uint32_t *attrs, vpps_dim *dim) {
  if (n != 2 && n != 3)
    return "needs x, filters and maybe a bias";
  if (x[1]->nd != 4 || x[1]->bd != 1)
    return "the filters must be {h,w,channels,filters}, without a batch";
  if (x[1]->d[2] != vpps_axis(x[0], 2))
    return "the filters must have the channels of the argument";
  if (n == 3 && (x[2]->nd != 1 || x[2]->d[0] != x[1]->d[3] || x[2]->bd != 1))
    return "the bias must be a vector with one element for each filter";
  const char *bad = vpps_dim_windows(x[0], x[1]->d, attrs, attrs[2], dim);
  dim->nd = 3;
  dim->d[2] = x[1]->d[3];
  return bad;
}

static inline const char *vpps_dim_strided_select(const vpps_dim *x, const uint32_t *a,
                                                  vpps_dim *dim) {
  if (x->nd > 4)
    return "takes at most 4 axes";
  *dim = *x;
  for (uint32_t i = 0; i < 5; i++, a += 3) {
    uint32_t size = i == 4 ? x->bd : vpps_axis(x, i);
    if (a[2] == 0 || a[2] >= (1u << 31))
      return "strides must be at least 1";
    if (a[0] >= a[1] || a[1] > size)
      return "needs from < to <= the size of the axis";
    uint32_t left = (a[1] - a[0] - 1) / a[2] + 1;
    if (i == 4)
      dim->bd = left;
    else if (i < x->nd)
      dim->d[i] = left;
  }
  return NULL;
}

/* ---- the table ---------------------------------------------------------- */

/* Checks the arguments' dims and attribute words of one node and gives its dim. For
 * leaves and Reshape, *dim holds the wanted dim on entry. Returns 0, or -1 with one
 * line of reason in msg. */
static inline int vpps_infer_dim(uint32_t op, const vpps_dim *const *args, uint32_t nargs,
                                 const uint32_t *attrs, vpps_dim *dim, char *msg, size_t size) {
  const vpps_dim *x = nargs > 0 ? args[0] : NULL, *y = nargs > 1 ? args[1] : NULL;
  const char *bad = NULL;
  int wanted_args = vpps_op_args(op);
  if (vpps_op_name(op) == NULL || (wanted_args >= 0 && (uint32_t)wanted_args != nargs))
    return vpps_bad_shape(op, args, nargs, "wrong number of arguments", msg, size);
  if ((wanted_args == 0 || op == VPPS_OP_RESHAPE) && !vpps_dim_sane(dim))
    return vpps_bad_shape(op, args, nargs,
                          "the dim needs at most 7 axes, sizes of at least 1 and fewer than 2^31 "
                          "elements in all",
                          msg, size);

  switch (op) {
  case VPPS_OP_SCALAR_INPUT_NODE:
    if (dim->bd != 1 || dim->nd > 1 || vpps_dim_size(dim) != 1)
      bad = "the dim must be {1}";
    break;
  case VPPS_OP_INPUT_NODE:
  case VPPS_OP_SPARSE_INPUT_NODE:
  case VPPS_OP_CONSTANT:
  case VPPS_OP_RANDOM_NORMAL:
  case VPPS_OP_RANDOM_BERNOULLI:
  case VPPS_OP_RANDOM_UNIFORM:
  case VPPS_OP_RANDOM_GUMBEL:
  case VPPS_OP_LOOKUP_NODE:
  case VPPS_OP_CONST_LOOKUP_NODE:
    break;
  case VPPS_OP_PARAMETER_NODE:
  case VPPS_OP_CONST_PARAMETER_NODE:
    if (dim->bd != 1)
      bad = "a parameter has no batch";
    break;

#define VPPS_SAME(NAME) case VPPS_OP_##NAME:
    VPPS_SAME_DIM(VPPS_SAME)
    *dim = *x;
    break;
  case VPPS_OP_SOFT_SIGN:
    if (!vpps_is_vector(x))
      bad = "needs a vector";
    *dim = *x;
    break;
  case VPPS_OP_DROPOUT_DIM:
    if (attrs[0] >= x->nd)
      bad = "the axis is out of range";
  /* fall through */
  case VPPS_OP_DROPOUT:
  case VPPS_OP_DROPOUT_BATCH:
  case VPPS_OP_BLOCK_DROPOUT: {
    float p;
    memcpy(&p, &attrs[op == VPPS_OP_DROPOUT_DIM], sizeof p);
    if (!(p >= 0 && p <= 1))
      bad = "the probability to drop an element must be in [0, 1]";
    *dim = *x;
    break;
  }
  case VPPS_OP_RESHAPE:
    if (vpps_dim_size(dim) == vpps_dim_size(x))
      break;
    if (dim->bd == 1 && vpps_batch_size(dim) == vpps_batch_size(x))
      dim->bd = x->bd;
    else {
      char reason[160] = "the new shape ";
      size_t at = strlen(reason);
      vpps_print_dim(reason, sizeof reason, &at, dim);
      if (at < sizeof reason)
        snprintf(reason + at, sizeof reason - at, " must have as many elements as the argument");
      return vpps_bad_shape(op, args, nargs, reason, msg, size);
    }
    break;

  case VPPS_OP_CWISE_SUM:
  case VPPS_OP_CWISE_MULTIPLY: {
    vpps_dim r;
    memset(&r, 0, sizeof r);
    r.nd = vpps_larger(x->nd, y->nd);
    r.bd = vpps_larger(x->bd, y->bd);
    for (uint32_t i = 0; i < r.nd; i++) {
      uint32_t a = vpps_axis(x, i), b = vpps_axis(y, i);
      if (!vpps_broadcast(a, b))
        bad = "on each axis the sizes must be equal or one of them 1";
      r.d[i] = vpps_larger(a, b);
    }
    if (!vpps_broadcast(x->bd, y->bd))
      bad = "batch sizes must be equal or 1";
    *dim = r;
    break;
  }
  case VPPS_OP_CWISE_QUOTIENT: {
    vpps_dim r = *x;
    uint32_t nd = vpps_larger(x->nd, y->nd);
    for (uint32_t i = 0; i < nd; i++)
      if (vpps_axis(y, i) != vpps_axis(x, i) && vpps_axis(y, i) != 1)
        bad = "on each axis the divisor must have the size of the dividend or 1";
    if (y->bd != x->bd && y->bd != 1)
      bad = "the divisor's batch size must be the dividend's or 1";
    for (uint32_t i = x->nd; i < nd; i++)
      r.d[r.nd++] = 1;
    *dim = r;
    break;
  }
  case VPPS_OP_POW: {
    vpps_dim r = *x;
    if (vpps_dim_size(y) != 1)
      bad = "the exponent must be a scalar";
    while (r.nd > 1 && r.d[r.nd - 1] == 1)
      r.d[--r.nd] = 0;
    *dim = r;
    break;
  }
  case VPPS_OP_MIN:
  case VPPS_OP_MAX:
    if (!vpps_same_dim(x, y))
      bad = "both arguments must have the same shape and batch size";
    *dim = *x;
    break;
  case VPPS_OP_SUM:
  case VPPS_OP_AVERAGE:
  case VPPS_OP_LOG_SUM_EXP:
  case VPPS_OP_CONCATENATE_TO_BATCH:
    bad = vpps_dim_many(op, args, nargs, dim);
    break;
  case VPPS_OP_ADD_VECTOR_TO_ALL_COLUMNS:
    if (x->nd != 2 || !vpps_is_vector(y) || vpps_rows(x) != vpps_rows(y))
      bad = "needs a matrix and a vector with as many rows";
    if (!vpps_broadcast(x->bd, y->bd))
      bad = "batch sizes must be equal or 1";
    *dim = *x;
    dim->bd = vpps_larger(dim->bd, y->bd);
    break;
  case VPPS_OP_SUM_ELEMENTS:
  case VPPS_OP_SQUARED_NORM:
  case VPPS_OP_L2_NORM:
    vpps_make_dim(dim, 1, 1, 0, x->bd);
    break;
  case VPPS_OP_SUM_DIMENSION:
  case VPPS_OP_MOMENT_DIMENSION: {
    uint32_t mask = attrs[0], batch = attrs[op == VPPS_OP_SUM_DIMENSION ? 1 : 2];
    if (mask >> x->nd)
      bad = "an axis to reduce is out of range";
    else if (batch > 1)
      bad = "the batch flag must be 0 or 1";
    else if (mask == 0 && batch == 0)
      bad = "nothing to reduce: name an axis or the batch";
    else if (op == VPPS_OP_MOMENT_DIMENSION && attrs[1] == 0)
      bad = "the order must be at least 1";
    else {
      vpps_drop_axes(x, mask, dim);
      if (batch)
        dim->bd = 1;
    }
    break;
  }
  case VPPS_OP_STD_DIMENSION:
    if (attrs[0] >> x->nd)
      bad = "an axis to reduce is out of range";
    else if (x->nd > 3)
      bad = "takes at most 3 axes";
    else if (attrs[1] > 1)
      bad = "the batch flag must be 0 or 1";
    else if (attrs[0] == 0 && attrs[1] == 0)
      bad = "nothing to reduce: name an axis or the batch";
    else {
      vpps_drop_axes(x, attrs[0], dim);
      if (attrs[1])
        dim->bd = 1;
    }
    break;
  case VPPS_OP_CUMULATIVE_SUM:
    if (attrs[0] > x->nd || attrs[0] >= VPPS_MAX_AXES)
      bad = "the axis is out of range";
    *dim = *x;
    break;
  case VPPS_OP_LOG_SUM_EXP_DIMENSION:
  case VPPS_OP_MAX_DIMENSION:
  case VPPS_OP_MIN_DIMENSION:
    if (attrs[0] >= x->nd)
      bad = "the axis is out of range";
    else
      vpps_drop_axes(x, 1u << attrs[0], dim);
    break;
  case VPPS_OP_K_MAX_POOLING:
    *dim = *x;
    if (attrs[1] >= x->nd)
      bad = "the axis is out of range";
    else if (attrs[0] == 0 || attrs[0] > x->d[attrs[1]])
      bad = "k must be at least 1 and at most the size of the axis";
    else
      dim->d[attrs[1]] = attrs[0];
    break;
  case VPPS_OP_ARGMAX:
  case VPPS_OP_SPARSEMAX:
    if (!vpps_is_vector(x))
      bad = "needs a vector";
    *dim = *x;
    break;
  case VPPS_OP_FOLD_ROWS:
    if (x->nd > 2)
      bad = "needs a vector or matrix";
    else if (attrs[0] == 0 || vpps_rows(x) % attrs[0] != 0)
      bad = "the number of rows must be a multiple of what is folded";
    else
      vpps_make_dim(dim, 2, vpps_rows(x) / attrs[0], vpps_cols(x), x->bd);
    break;
  case VPPS_OP_WEIGHT_NORMALIZATION:
    if (vpps_dim_size(y) != 1)
      bad = "the gain must be a scalar";
    *dim = *x;
    break;

  case VPPS_OP_DOT_PRODUCT:
  case VPPS_OP_SQUARED_EUCLIDEAN_DISTANCE:
  case VPPS_OP_L1_DISTANCE:
  case VPPS_OP_HUBER_DISTANCE:
    if (!vpps_same_axes(x, y) && !(op != VPPS_OP_DOT_PRODUCT && vpps_is_vector(x) &&
                                   vpps_is_vector(y) && vpps_rows(x) == vpps_rows(y)))
      bad = "both arguments must have the same shape";
    if (!vpps_broadcast(x->bd, y->bd))
      bad = "batch sizes must be equal or 1";
    vpps_make_dim(dim, 1, 1, 0, vpps_larger(x->bd, y->bd));
    break;

  case VPPS_OP_AFFINE_TRANSFORM:
    bad = vpps_dim_affine(args, nargs, dim);
    break;
  case VPPS_OP_MATRIX_MULTIPLY:
    if (x->nd > 2 || y->nd > 2)
      bad = "needs vectors or matrices";
    else if (vpps_cols(x) != vpps_rows(y))
      bad = "the left columns must be the right rows";
    else if (!vpps_broadcast(x->bd, y->bd))
      bad = "batch sizes must be equal or 1";
    vpps_make_dim(dim, y->nd > 1 ? 2 : 1, vpps_rows(x), vpps_cols(y), vpps_larger(x->bd, y->bd));
    break;
  case VPPS_OP_TRANSPOSE:
    bad = vpps_dim_transpose(x, attrs[0], dim);
    break;

  case VPPS_OP_TRACE_OF_PRODUCT:
    if (!vpps_same_dim(x, y) || x->nd > 2)
      bad = "needs two matrices of the same shape";
    vpps_make_dim(dim, 1, 1, 0, x->bd);
    break;
  case VPPS_OP_MATRIX_INVERSE:
  case VPPS_OP_LOG_DET:
    if (x->nd > 2 || vpps_rows(x) != vpps_cols(x))
      bad = "needs a square matrix";
    *dim = *x;
    if (op == VPPS_OP_LOG_DET)
      vpps_make_dim(dim, 1, 1, 0, x->bd);
    break;
  case VPPS_OP_INNER_PRODUCT3_D_1_D:
    bad = vpps_dim_contract(args, nargs, 1, dim);
    break;
  case VPPS_OP_INNER_PRODUCT3_D_1_D_1_D:
    bad = vpps_dim_contract(args, nargs, 2, dim);
    break;
  case VPPS_OP_CIRCULAR_CONVOLUTION:
  case VPPS_OP_CIRCULAR_CORRELATION:
    if (x->nd != 1 || !vpps_same_dim(x, y))
      bad = "needs two vectors of the same length";
    *dim = *x;
    break;
  case VPPS_OP_FILTER1_D_NARROW:
    if (x->nd != 2 || y->nd < 2 || y->nd > 3 || x->d[0] != y->d[0])
      bad = "needs a matrix {r,c} and filters {r,m} or {r,m,k}";
    else if (y->d[1] > x->d[1])
      bad = "the filter must not be wider than the matrix";
    else if (!vpps_broadcast(x->bd, y->bd))
      bad = "batch sizes must be equal or 1";
    else
      vpps_make_dim(dim, 2, vpps_axis(y, 2), x->d[1] - y->d[1] + 1, vpps_larger(x->bd, y->bd));
    break;
  case VPPS_OP_KMHN_GRAM:
    if (x->nd != 2)
      bad = "needs a matrix";
    else if (attrs[0] == 0 || attrs[0] > x->d[1])
      bad = "n must be at least 1 and at most the number of columns";
    else
      vpps_make_dim(dim, 2, x->d[0], x->d[1] - attrs[0] + 1, x->bd);
    break;
  case VPPS_OP_CONV2_D:
    bad = vpps_dim_conv2d(args, nargs, attrs, dim);
    break;
  case VPPS_OP_MAX_POOLING2_D:
    bad = vpps_dim_windows(x, attrs, attrs + 2, attrs[4], dim);
    break;

  case VPPS_OP_SELECT_ROWS:
    if (x->nd == 0)
      bad = "needs an argument with rows";
    else if (attrs[1] == 0 || attrs[1] >= (1u << 31))
      bad = "needs at least one row";
    *dim = *x;
    dim->d[0] = attrs[1];
    break;
  case VPPS_OP_SELECT_COLS:
    if (x->nd != 2)
      bad = "needs a matrix";
    else if (attrs[1] == 0 || attrs[1] >= (1u << 31))
      bad = "needs at least one column";
    *dim = *x;
    dim->d[1] = attrs[1];
    break;
  case VPPS_OP_STRIDED_SELECT:
    bad = vpps_dim_strided_select(x, attrs, dim);
    break;

  case VPPS_OP_CONCATENATE:
    bad = vpps_dim_concatenate(args, nargs, attrs[0], dim);
    break;
  case VPPS_OP_PICK_ELEMENT: {
    uint32_t axis = attrs[0], n = attrs[2];
    if (axis >= x->nd)
      bad = "the axis is out of range";
    else if (n == 0 || n >= (1u << 31) || (n != 1 && !vpps_broadcast(n, x->bd)))
      bad = "needs one index, or one for each batch element";
    else {
      vpps_drop_axes(x, 1u << axis, dim);
      dim->bd = vpps_larger(x->bd, n);
    }
    break;
  }
  case VPPS_OP_PICK_RANGE: {
    uint32_t start = attrs[0], end = attrs[1], axis = attrs[2];
    if (axis >= x->nd)
      bad = "the axis is out of range";
    else if (start >= end || end > x->d[axis])
      bad = "needs start < end <= the size of the axis";
    else {
      *dim = *x;
      dim->d[axis] = end - start;
    }
    break;
  }
  case VPPS_OP_PICK_BATCH_ELEMENTS:
    if (attrs[1] == 0 || attrs[1] >= (1u << 31))
      bad = "needs at least one batch element";
    *dim = *x;
    dim->bd = attrs[1];
    break;

  case VPPS_OP_SOFTMAX:
    if (x->nd > 2 || attrs[0] >= x->nd)
      bad = "needs a vector or matrix, and one of its axes";
    *dim = *x;
    break;
  case VPPS_OP_LOG_SOFTMAX:
    if (x->nd > 2)
      bad = "needs a vector or matrix";
    *dim = *x;
    break;
  case VPPS_OP_RESTRICTED_LOG_SOFTMAX:
    if (!vpps_is_vector(x) || x->bd != 1)
      bad = "needs a vector without a batch";
    else if (attrs[1] == 0 || attrs[1] >= (1u << 31))
      bad = "needs at least one row";
    *dim = *x;
    break;
  case VPPS_OP_HINGE: {
    float margin;
    memcpy(&margin, &attrs[0], sizeof margin);
    if (!(margin >= 0))
      bad = "the margin must not be negative";
  }
  /* fall through */
  case VPPS_OP_PICK_NEG_LOG_SOFTMAX:
    if (!vpps_is_vector(x))
      bad = "needs a vector";
    vpps_make_dim(dim, 1, 1, 0, x->bd);
    break;
  case VPPS_OP_PAIRWISE_RANK_LOSS:
    if (!vpps_same_dim(x, y) || vpps_rows(x) != 1 || x->nd == 0 || x->nd > 2)
      bad = "needs two row vectors of the same shape";
    *dim = *x;
    break;
  case VPPS_OP_POISSON_REGRESSION_LOSS:
    if (vpps_dim_size(x) != 1)
      bad = "needs a scalar";
    *dim = *x;
    break;
  case VPPS_OP_HINGE_DIM: {
    float margin;
    memcpy(&margin, &attrs[0], sizeof margin);
    if (!(margin >= 0))
      bad = "the margin must not be negative";
    else if (x->nd != 2 || attrs[1] > 1)
      bad = "needs a matrix, and axis 0 or 1";
    else if (attrs[3] != x->d[attrs[1] ^ 1] && attrs[3] != (uint64_t)x->d[attrs[1] ^ 1] * x->bd)
      bad = "needs one index for each column (axis 0) or row (axis 1), or these for each batch "
            "element";
    else
      vpps_make_dim(dim, 1, x->d[attrs[1] ^ 1], 0, x->bd);
    break;
  }
  case VPPS_OP_SPARSEMAX_LOSS:
    if (!vpps_is_vector(x))
      bad = "needs a vector";
    else if (attrs[1] == 0 || attrs[1] >= (1u << 31))
      bad = "needs at least one row in the support";
    vpps_make_dim(dim, 1, 1, 0, x->bd);
    break;
  case VPPS_OP_CONSTRAINED_SOFTMAX:
    if (!vpps_is_vector(x) || !vpps_is_vector(y) || vpps_rows(x) != vpps_rows(y) || x->bd != y->bd)
      bad = "needs two vectors of the same length and batch size";
    *dim = *x;
    break;
  case VPPS_OP_BINARY_LOG_LOSS:
    if (!vpps_same_axes(x, y) &&
        !(vpps_is_vector(x) && vpps_is_vector(y) && vpps_rows(x) == vpps_rows(y)))
      bad = "both arguments must have the same shape";
    else if (x->bd != 1 || y->bd != 1)
      bad = "takes no batch; apply it to the elements of the batch";
    vpps_make_dim(dim, 1, 1, 0, 1);
    break;

  case VPPS_OP_VANILLA_LSTM_GATES:
    bad = vpps_dim_gates(args, nargs, 0, dim);
    break;
  case VPPS_OP_VANILLA_LSTM_GATES_DROPOUT:
    bad = vpps_dim_gates(args, nargs, 2, dim);
    break;
  case VPPS_OP_VANILLA_LSTMC:
  case VPPS_OP_VANILLA_LSTMH:
    if (!vpps_is_vector(x) || !vpps_is_vector(y) || (uint64_t)vpps_rows(x) * 4 != vpps_rows(y))
      bad = "needs a cell vector and a gate vector four times as long";
    else if (x->bd != y->bd)
      bad = "batch sizes must be equal";
    vpps_make_dim(dim, 1, vpps_rows(x), 0, x->bd);
    break;
  default:
    bad = "no shape rule";
  }
  if (bad == NULL && !vpps_dim_sane(dim))
    bad = "the result is empty or too large (2^31 elements and more)";
  return bad == NULL ? 0 : vpps_bad_shape(op, args, nargs, bad, msg, size);
}

#undef VPPS_SAME

#endif
