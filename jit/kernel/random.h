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

VP_SLOW void random(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 n = w[RANDOM_N];
  bool source = fn == RANDOM_NOISE || fn == RANDOM_DROP;
  u32 words = source ? 3 : 2;
  float cp = FLOAT_OF(w[RANDOM_P]), cq = FLOAT_OF(w[RANDOM_Q]);
  for (u32 k = 0; k < count; k++) {
    const u32 *item = w + RANDOM_ITEMS + k * words;
    float *dst = address(l, w[RANDOM_SEGMENTS], 0, item[0]);
    const float *src = source ? address(l, w[RANDOM_SEGMENTS], 1, item[1]) : dst;
    for (u32 i = THREAD; i < n; i += THREADS) {
      Philox x = philox(w[RANDOM_FIRST] + i, item[words - 1], w[RANDOM_FORWARD], w[RANDOM_GRAPH],
                        w[RANDOM_SEED], 0u);
      put(dst + i, random_element(fn, x, cp, cq, source ? src[i] : 0.0f), flags);
    }
  }
}
