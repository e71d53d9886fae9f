// Row: softmax and its kin, each over one row of n elements at a stride. One warp a row
// on the GPU; sums run in the order of LANES interleaved lanes on both devices.
#pragma once

struct RowView {
  float *v;
  u32 n, stride;
  VP_MEMBER float get(u32 i) const { return v[i * stride]; }
};

#ifdef VPPS_GPU
#define EACH(i, n) for (u32 i = THREAD % 32; i < (n); i += 32)
#define ONCE if (THREAD % 32 == 0)
VP float warp_max(float v) {
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2)
    v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, d));
  return v;
}
// SUM_OVER(result, i, n, term), MAX_OVER likewise: result is known to all lanes.
#define SUM_OVER(result, i, n, term)                                                               \
  float result = 0.0f;                                                                             \
  EACH(i, n) result += (term);                                                                     \
  result = warp_sum(result)
#define MAX_OVER(result, i, n, term)                                                               \
  float result = -3.402823466e+38f;                                                                \
  EACH(i, n) result = fmaxf(result, term);                                                         \
  result = warp_max(result)
#else
#define EACH(i, n) for (u32 i = 0; i < (n); i++)
#define ONCE
#define SUM_OVER(result, i, n, term)                                                               \
  float result##_lanes[LANES] = {};                                                                \
  EACH(i, n) result##_lanes[i % LANES] += (term);                                                  \
  float result = lane_sum(result##_lanes)
#define MAX_OVER(result, i, n, term)                                                               \
  float result = -3.402823466e+38f;                                                                \
  EACH(i, n) {                                                                                     \
    float t_ = (term);                                                                             \
    result = t_ > result ? t_ : result;                                                            \
  }
#endif

VP float log_sum_exp(const RowView &x) {
  MAX_OVER(m, i, x.n, x.get(i));
  SUM_OVER(s, i, x.n, vp_exp(x.get(i) - m));
  return m + vp_log(s);
}

VP void row_item(const Launch &l, const u32 *w, u32 fn, u32 flags, const u32 *item) {
  u32 n = w[ROW_N], stride = w[ROW_STRIDE];
  float margin = FLOAT_OF(w[ROW_P]);
#define ROWARG(k)                                                                                  \
  RowView { address(l, w[ROW_SEGMENTS], k, item[k]), n, stride }
#define ONE(k) address(l, w[ROW_SEGMENTS], k, item[k])
  switch (fn) {
  case ROW_SOFTMAX:
  case ROW_LOG_SOFTMAX: {
    RowView y = ROWARG(0), x = ROWARG(1);
    float z = log_sum_exp(x);
    EACH(i, n) {
      float v = x.get(i) - z;
      put(y.v + i * stride, fn == ROW_SOFTMAX ? vp_exp(v) : v, flags);
    }
    return;
  }
  case ROW_SOFTMAX_B: { // dx = y * (dy - sum of y*dy)
    RowView dx = ROWARG(0), y = ROWARG(1), dy = ROWARG(2);
    SUM_OVER(s, i, n, y.get(i) * dy.get(i));
    EACH(j, n) put(dx.v + j * stride, y.get(j) * (dy.get(j) - s), flags);
    return;
  }
  case ROW_LOG_SOFTMAX_B: { // dx = dy - exp(y) * sum of dy
    RowView dx = ROWARG(0), y = ROWARG(1), dy = ROWARG(2);
    SUM_OVER(s, i, n, dy.get(i));
    EACH(j, n) put(dx.v + j * stride, dy.get(j) - vp_exp(y.get(j)) * s, flags);
    return;
  }
  case ROW_NEG_LOG_PICK: {
    RowView x = ROWARG(1);
    float z = log_sum_exp(x);
    ONCE {
      put(ONE(2), z, 0);
      put(ONE(0), z - x.get(item[3]), flags);
    }
    return;
  }
  case ROW_NEG_LOG_PICK_B: { // dx = dloss * (softmax(x) - one_hot(label))
    RowView dx = ROWARG(0), x = ROWARG(1);
    float z = *ONE(2), d = *ONE(3);
    EACH(i, n) {
      float v = vp_exp(x.get(i) - z) * d;
      put(dx.v + i * stride, i == item[4] ? v - d : v, flags);
    }
    return;
  }
  case ROW_HINGE: {
    RowView x = ROWARG(1);
    u32 label = item[2];
    float bound = margin - x.get(label);
    SUM_OVER(s, i, n, i == label || bound + x.get(i) <= 0.0f ? 0.0f : bound + x.get(i));
    ONCE put(ONE(0), s, flags);
    return;
  }
  case ROW_HINGE_B: {
    RowView dx = ROWARG(0), x = ROWARG(1);
    u32 label = item[3];
    float d = *ONE(2), bound = margin - x.get(label);
    SUM_OVER(active, i, n, i != label && bound + x.get(i) > 0.0f ? 1.0f : 0.0f);
    EACH(j, n) {
      float v = j == label ? -active * d : (bound + x.get(j) > 0.0f ? d : 0.0f);
      put(dx.v + j * stride, v, flags);
    }
    return;
  }
  }
#undef ROWARG
#undef ONE
}

VP u32 row_words(u32 fn) {
  switch (fn) {
  case ROW_SOFTMAX:
    return ROWWORDS_SOFTMAX;
  case ROW_SOFTMAX_B:
    return ROWWORDS_SOFTMAX_B;
  case ROW_LOG_SOFTMAX:
    return ROWWORDS_LOG_SOFTMAX;
  case ROW_LOG_SOFTMAX_B:
    return ROWWORDS_LOG_SOFTMAX_B;
  case ROW_NEG_LOG_PICK:
    return ROWWORDS_NEG_LOG_PICK;
  case ROW_NEG_LOG_PICK_B:
    return ROWWORDS_NEG_LOG_PICK_B;
  case ROW_HINGE:
    return ROWWORDS_HINGE;
  default:
    return ROWWORDS_HINGE_B;
  }
}

VP_SLOW void row(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  u32 words = row_words(fn);
#ifdef VPPS_GPU
  for (u32 k = THREAD / 32; k < count; k += WARPS)
#else
  for (u32 k = 0; k < count; k++)
#endif
    row_item(l, w, fn, flags, w + ROW_ITEMS + k * words);
}
