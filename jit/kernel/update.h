// The end of a batch: Norm forms partial sums of squares, Clip decides from all of them
// how gradients are scaled and whether the batch is committed, Update writes parameters.
#pragma once

#ifdef VPPS_GPU
VP void norm(const Launch &l, const u32 *w, u32 flags, u32 count, float *scratch) {
  float s = 0.0f;
  for (u32 k = 0; k < count; k++) {
    const float *g = address(l, w[NORM_SEGMENTS], 1, w[NORM_ITEMS + 2 * k]);
    u32 n = w[NORM_ITEMS + 2 * k + 1];
    for (u32 i = THREAD; i < n; i += THREADS)
      s = __fmaf_rn(g[i], g[i], s);
  }
  s = warp_sum(s);
  __syncthreads();
  if (THREAD % 32 == 0)
    scratch[THREAD / 32] = s;
  __syncthreads();
  if (THREAD == 0) {
    for (u32 i = 1; i < WARPS; i++)
      s += scratch[i];
    put(address(l, w[NORM_SEGMENTS], 0, w[NORM_DST]), s, flags);
  }
  __syncthreads();
}
#else
VP void norm(const Launch &l, const u32 *w, u32 flags, u32 count) {
  float lanes[LANES] = {};
  for (u32 k = 0; k < count; k++) {
    const float *g = address(l, w[NORM_SEGMENTS], 1, w[NORM_ITEMS + 2 * k]);
    u32 n = w[NORM_ITEMS + 2 * k + 1];
    for (; n >= LANES; n -= LANES, g += LANES) // a pointer: sums of indices might wrap
      for (u32 j = 0; j < LANES; j++)
        lanes[j] = __builtin_fmaf(g[j], g[j], lanes[j]);
    for (u32 j = 0; j < n; j++)
      lanes[j] = __builtin_fmaf(g[j], g[j], lanes[j]);
  }
  put(address(l, w[NORM_SEGMENTS], 0, w[NORM_DST]), lane_sum(lanes), flags);
}
#endif

// Every thread comes to the same decision: the partials are summed in one order.
VP void clip(const Launch &l, Processor &p, const u32 *w, u32 flags) {
  const float *partial = address(l, w[CLIP_SEGMENTS], 1, w[CLIP_PARTIALS]);
  float threshold = FLOAT_OF(w[CLIP_THRESHOLD]);
  SUM_OVER(s, i, w[CLIP_N], partial[i]);
  float n = vp_sqrt(s);
  bool finite = n - n == 0.0f;
  p.commit = finite;
  p.scale = n > threshold ? threshold / n : 1.0f;
  if ((flags & FLAG_LAST) && THREAD == 0) {
    float *result = address(l, w[CLIP_SEGMENTS], 0, w[CLIP_RESULT]);
    result[0] = n;
    result[1] = p.scale;
    result[2] = finite ? 1.0f : 0.0f;
    result[3] = n > threshold ? 1.0f : 0.0f;
    if (!finite)
      l.status[0] = l.batch;
  }
}

VP void update(const Launch &l, const Processor &p, const u32 *w, u32 count) {
  if (!p.commit)
    return;
  float rate = FLOAT_OF(w[UPDATE_RATE]) * p.scale;
  for (u32 k = 0; k < count; k++) {
    const u32 *item = w + UPDATE_ITEMS + 3 * k;
    float *v = address(l, w[UPDATE_SEGMENTS], 0, item[0]);
    const float *g = address(l, w[UPDATE_SEGMENTS], 1, item[1]);
#ifndef VPPS_GPU
#pragma GCC ivdep
#endif
    for (u32 i = THREAD; i < item[2]; i += THREADS)
      v[i] = canonical(v[i] - g[i] * rate);
  }
}
