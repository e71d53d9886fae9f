/* Reading and making the dims of nodes. The "axes" of a dim are its d[0..nd), an axis that is not
 * there counts as 1; bd is the batch size. */
#ifndef VPPS_DIMS_H
#define VPPS_DIMS_H

#include <stdint.h>

#include "vpps.h"

#define VPPS_MAX_AXES 7u

/* ---- reading dims ------------------------------------------------------- */

static inline uint32_t vpps_axis(const vpps_dim *x, uint32_t i) { return i < x->nd ? x->d[i] : 1; }
static inline uint32_t vpps_rows(const vpps_dim *x) { return vpps_axis(x, 0); }
static inline uint32_t vpps_cols(const vpps_dim *x) { return vpps_axis(x, 1); }

/* Elements of one batch element. */
static inline uint64_t vpps_batch_size(const vpps_dim *x) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < x->nd; i++)
    n *= x->d[i];
  return n;
}

static inline uint64_t vpps_dim_size(const vpps_dim *x) { return vpps_batch_size(x) * x->bd; }

/* Sizes are positive and the whole has fewer than 2^31 elements. */
static inline int vpps_dim_sane(const vpps_dim *x) {
  uint64_t n = x->bd;
  if (x->nd > VPPS_MAX_AXES || n == 0 || n >= (1u << 31))
    return 0;
  for (uint32_t i = 0; i < x->nd; i++) {
    n *= x->d[i];
    if (n == 0 || n >= (1u << 31))
      return 0;
  }
  return 1;
}

/* The same axes, their number included; the batch may differ. */
static inline int vpps_same_axes(const vpps_dim *x, const vpps_dim *y) {
  if (x->nd != y->nd)
    return 0;
  for (uint32_t i = 0; i < x->nd; i++)
    if (x->d[i] != y->d[i])
      return 0;
  return 1;
}

/* The same axes but for trailing ones. */
static inline int vpps_equal_axes(const vpps_dim *x, const vpps_dim *y) {
  uint32_t nd = x->nd > y->nd ? x->nd : y->nd;
  for (uint32_t i = 0; i < nd; i++)
    if (vpps_axis(x, i) != vpps_axis(y, i))
      return 0;
  return 1;
}

static inline int vpps_same_dim(const vpps_dim *x, const vpps_dim *y) {
  return x->bd == y->bd && vpps_same_axes(x, y);
}

static inline int vpps_is_vector(const vpps_dim *x) {
  for (uint32_t i = 1; i < x->nd; i++)
    if (x->d[i] != 1)
      return 0;
  return 1;
}

/* Equal, or one of them is 1. */
static inline int vpps_broadcast(uint32_t x, uint32_t y) { return x == y || x == 1 || y == 1; }
static inline uint32_t vpps_larger(uint32_t x, uint32_t y) { return x > y ? x : y; }

/* ---- making dims -------------------------------------------------------- */

static inline void vpps_make_dim(vpps_dim *to, uint32_t nd, uint32_t d0, uint32_t d1, uint32_t bd) {
  memset(to, 0, sizeof *to);
  to->nd = nd;
  to->bd = bd;
  to->d[0] = d0;
  if (nd > 1)
    to->d[1] = d1;
}

/* Takes the axes of the mask away; when none is left, {1} is. */
static inline void vpps_drop_axes(const vpps_dim *x, uint32_t mask, vpps_dim *to) {
  vpps_dim r;
  memset(&r, 0, sizeof r);
  r.bd = x->bd;
  for (uint32_t i = 0; i < x->nd; i++)
    if (!(mask >> i & 1))
      r.d[r.nd++] = x->d[i];
  if (r.nd == 0)
    r.d[r.nd++] = 1;
  *to = r;
}

#endif
