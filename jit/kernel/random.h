// Random: elements drawn by counter, so that the same node gives the same bits on every
// device and schedule, and dropout's backward draws the forward's mask again.
#pragma once

VP float random_element(u32 fn, const Philox &r, float p, float q, float x) {
  switch (fn) {
  case RANDOM_NORMAL:
    return p + q * normal01(r.x[0], r.x[1]);
  case RANDOM_BERNOULLI:
    return uniform01(r.x[0]) < p ? q : 0.0f;
  case RANDOM_UNIFORM:
    return p + (q - p) * uniform01(r.x[0]);
  case RANDOM_NOISE:
    return x + p * normal01(r.x[0], r.x[1]);
  case RANDOM_GUMBEL: {
    float u = uniform01(r.x[0]);
    return p - q * vp_log(-vp_log(u > 1e-20f ? u : 1e-20f));
  }
  default:
    return uniform01(r.x[0]) < p ? 0.0f * x : x * (1.0f / (1.0f - p)); // RANDOM_DROP
  }
}

// The items of one instruction. A CPU has a copy for each function: a loop without branches is of
// vectors.
VP void random_items(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 n = w[RANDOM_N];
  const bool source = fn == RANDOM_NOISE || fn == RANDOM_DROP;
  const u32 words = source ? 3 : 2;
  const float cp = FLOAT_OF(w[RANDOM_P]), cq = FLOAT_OF(w[RANDOM_Q]);
  for (u32 k = 0; k < count; k++) {
    const u32 *item = w + RANDOM_ITEMS + k * words;
    float *dst = address(l, w[RANDOM_SEGMENTS], 0, item[0]);
    const float *src = source ? address(l, w[RANDOM_SEGMENTS], 1, item[1]) : dst;
#ifndef VPPS_GPU
    VP_INDEPENDENT
#endif
    for (u32 i = THREAD; i < n; i += THREADS) {
      Philox x = philox(w[RANDOM_FIRST] + i, item[words - 1], w[RANDOM_FORWARD], w[RANDOM_GRAPH],
                        w[RANDOM_SEED], 0u);
      put(dst + i, random_element(fn, x, cp, cq, source ? src[i] : 0.0f), flags);
    }
  }
}

#ifdef VPPS_GPU
VP_SLOW void random(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  random_items(l, w, fn, flags, count);
}
#else
template <u32 FN> VP_SLOW void random_by(const Launch &l, const u32 *w, u32 flags, u32 count) {
  if (flags & FLAG_ACC)
    random_items(l, w, FN, flags, count);
  else
    random_items(l, w, FN, 0, count);
}
VP void random(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  switch (fn) {
  case RANDOM_NORMAL:
    return random_by<RANDOM_NORMAL>(l, w, flags, count);
  case RANDOM_BERNOULLI:
    return random_by<RANDOM_BERNOULLI>(l, w, flags, count);
  case RANDOM_UNIFORM:
    return random_by<RANDOM_UNIFORM>(l, w, flags, count);
  case RANDOM_NOISE:
    return random_by<RANDOM_NOISE>(l, w, flags, count);
  case RANDOM_GUMBEL:
    return random_by<RANDOM_GUMBEL>(l, w, flags, count);
  default:
    return random_by<RANDOM_DROP>(l, w, flags, count);
  }
}
#endif
