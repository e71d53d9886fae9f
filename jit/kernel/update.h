// The end of a batch: Norm forms partial sums of squares, Clip decides from all of them
// how gradients are scaled and whether the batch is committed, Update writes parameters and what
// its rule remembers of them.
#pragma once

#ifdef VPPS_GPU
// So many loads of a thread are on their way at a time where memory is read from end to end. What
// fits into the registers is too little for several to pay.
#ifdef VPPS_DEPTH
enum : u32 { FAR = 8 };
#else
enum : u32 { FAR = 1 };
#endif
#endif

// A gradient's square may be beyond a float's range though the gradient is not. Norm squares such
// gradients once more, times 2^-96 each: their sum is finite unless one of them is not.
#define SHRUNK 1.26217745e-29f
#define GROWN 7.92281625e+28f

// Writes a Norm's two sums: s of squares, or again of shrunk ones, which are the second. Returns
// whether that has to be formed.
VP bool put_norm(float *dst, float s, bool again, u32 flags) {
  if (again) {
    put(dst + 1, s, flags);
    return false;
  }
  put(dst, s, flags);
  bool beyond = !(s - s == 0.0f);
  if (!beyond)
    put(dst + 1, s * SHRUNK * SHRUNK, flags);
  return beyond;
}

#ifdef VPPS_GPU
VP void norm(const Launch &l, const u32 *w, u32 flags, u32 count, float *scratch) {
  bool again = false;
  do {
    const float factor = again ? SHRUNK : 1.0f;
    float s = 0.0f;
    for (u32 k = 0; k < count; k++) {
      const float *g = address(l, w[NORM_SEGMENTS], 1, w[NORM_ITEMS + 2 * k]);
      u32 n = w[NORM_ITEMS + 2 * k + 1];
      for (u32 i = THREAD; i < n; i += FAR * THREADS) {
        float x[FAR];
#pragma unroll
        for (u32 j = 0; j < FAR; j++)
          x[j] = i + j * THREADS < n ? g[i + j * THREADS] : 0.0f;
#pragma unroll
        for (u32 j = 0; j < FAR; j++)
          s = __fmaf_rn(x[j] * factor, x[j] * factor, s);
      }
    }
    s = warp_sum(s);
    __syncthreads();
    if (THREAD % 32 == 0)
      scratch[THREAD / 32] = s;
    __syncthreads();
    bool beyond = false;
    if (THREAD == 0) {
      for (u32 i = 1; i < WARPS; i++)
        s += scratch[i];
      beyond = put_norm(address(l, w[NORM_SEGMENTS], 0, w[NORM_DST]), s, again, flags);
    }
    again = __syncthreads_or(beyond);
  } while (again);
}
#else
VP void add_squares(double &all, const float *g, u32 n, float factor) {
  const u32 BLOCK = 64 * LANES; // beside a sum of millions what is small would be lost
  for (u32 some; n > 0; n -= some, g += some) {
    some = n < BLOCK ? n : BLOCK;
    float lanes[LANES] = {};
    u32 i = 0;
    for (; i + LANES <= some; i += LANES)
      for (u32 j = 0; j < LANES; j++) {
        const float x = g[i + j] * factor;
        lanes[j] = __builtin_fmaf(x, x, lanes[j]);
      }
    for (u32 j = 0; i + j < some; j++) {
      const float x = g[i + j] * factor;
      lanes[j] = __builtin_fmaf(x, x, lanes[j]);
    }
    all += lane_sum(lanes);
  }
}

VP void norm(const Launch &l, const u32 *w, u32 flags, u32 count, float * /*scratch*/) {
  bool again = false;
  do {
    double all = 0.0;
    for (u32 k = 0; k < count; k++)
      add_squares(all, address(l, w[NORM_SEGMENTS], 1, w[NORM_ITEMS + 2 * k]),
                  w[NORM_ITEMS + 2 * k + 1], again ? SHRUNK : 1.0f);
    again = put_norm(address(l, w[NORM_SEGMENTS], 0, w[NORM_DST]), (float)all, again, flags);
  } while (again);
}
#endif

// Every thread comes to the same decision: the partials are summed in one order.
VP void clip(const Launch &l, Processor &p, const u32 *w, u32 flags) {
  const float *partial = address(l, w[CLIP_SEGMENTS], 1, w[CLIP_PARTIALS]);
  float threshold = FLOAT_OF(w[CLIP_THRESHOLD]);
  const Team team = one_warp();
  SUM_OVER(s, i, w[CLIP_N], partial[2 * i]);
  float n = vp_sqrt(s);
  if (!(n - n == 0.0f)) {
    SUM_OVER(shrunk, i, w[CLIP_N], partial[2 * i + 1]);
    n = vp_sqrt(shrunk) * GROWN;
  }
  bool finite = n - n == 0.0f;
  if (flags & FLAG_LOSS) {
    float loss = *address(l, w[CLIP_SEGMENTS], 2, w[CLIP_LOSS]);
    finite = finite && loss - loss == 0.0f;
  }
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

// The constants of an update: scale is Clip's.
struct Constants {
  float scale, rate, p, q, r;
};

// One step of an update rule: v the value, g the gradient as it was formed, h, k and m the
// rule's states. Returns the new value.
template <u32 RULE> struct Rule;
#define STEP(NAME, ...)                                                                            \
  template <> struct Rule<RULE_##NAME> {                                                           \
    VP float of(float v, float g, float &h, float &k, float &m, const Constants &c) {              \
      (void)h, (void)k, (void)m;                                                                   \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  };

STEP(SGD, return v - g * (c.rate * c.scale);)
STEP(MOMENTUM, {
  h = c.p * h - g * (c.rate * c.scale);
  return v + c.q * h;
})
STEP(ADAGRAD, {
  g = g * c.scale;
  h = h + g * g;
  return v - c.rate * (g / vp_sqrt(h + c.p));
})
STEP(ADADELTA, {
  g = g * c.scale;
  h = c.p * h + (1.0f - c.p) * (g * g);
  float d = g * vp_sqrt(k + c.q) / vp_sqrt(h + c.q);
  k = c.p * k + (1.0f - c.p) * (d * d);
  return v - c.r * d;
})
STEP(RMSPROP, {
  g = g * c.scale;
  h = c.p * h + (1.0f - c.p) * (g * g);
  return v - c.rate * (g / vp_sqrt(h + c.q));
})
STEP(ADAM, {
  g = g * c.scale;
  h = c.p * h + (1.0f - c.p) * g;
  k = c.q * k + (1.0f - c.q) * (g * g);
  return v - c.rate * (h / (vp_sqrt(k) + c.r));
})
STEP(AMSGRAD, {
  g = g * c.scale;
  h = c.p * h + (1.0f - c.p) * g;
  k = c.q * k + (1.0f - c.q) * (g * g);
  m = m > k ? m : k;
  return v - c.rate * (h / (vp_sqrt(m) + c.r));
})
STEP(EG, { // the exponent; normalised below
  h = c.p * h - g * (c.rate * c.scale);
  return vp_log(v) + c.q * h;
})
#undef STEP

// v = exp(v - ln of the sum of exp v over its first elements).
VP void normalise(float *v, u32 n, u32 first) {
#ifdef VPPS_GPU
  __syncthreads();
#endif
  float z = log_sum_exp(one_warp(), RowView<true>{v, first, 1});
#ifdef VPPS_GPU
  __syncthreads();
#endif
#ifndef VPPS_GPU
  VP_INDEPENDENT
#endif
  for (u32 i = THREAD; i < n; i += THREADS)
    v[i] = canonical(vp_exp(v[i] - z));
}

template <u32 RULE, u32 STATES, u32 WORDS>
VP void update_items(const Launch &l, const u32 *w, u32 flags, u32 count, float scale) {
  const Constants c = {scale, FLOAT_OF(w[UPDATE_RATE]), FLOAT_OF(w[UPDATE_P]),
                       FLOAT_OF(w[UPDATE_Q]), FLOAT_OF(w[UPDATE_R])};
  bool zero = flags & FLAG_NOGRAD;
  for (u32 j = 0; j < count; j++) {
    const u32 *item = w + UPDATE_ITEMS + WORDS * j;
    float *v = address(l, w[UPDATE_SEGMENTS], 0, item[0]);
    const float *g = address(l, w[UPDATE_SEGMENTS], 1, item[1]);
    float *h = STATES > 0 ? address(l, w[UPDATE_SEGMENTS], 2, item[3]) : 0;
    float *k = STATES > 1 ? address(l, w[UPDATE_SEGMENTS], 2, item[4]) : 0;
    float *m = STATES > 2 ? address(l, w[UPDATE_SEGMENTS], 2, item[5]) : 0;
    u32 i = THREAD;
#ifdef VPPS_GPU
    if (STATES == 0 && FAR > 1)
      for (; i + (FAR - 1) * THREADS < item[2]; i += FAR * THREADS) {
        float x[FAR], y[FAR], none = 0.0f;
#pragma unroll
        for (u32 j = 0; j < FAR; j++) {
          x[j] = v[i + j * THREADS];
          y[j] = zero ? 0.0f : g[i + j * THREADS];
        }
#pragma unroll
        for (u32 j = 0; j < FAR; j++)
          v[i + j * THREADS] = canonical(Rule<RULE>::of(x[j], y[j], none, none, none, c));
      }
#else
    VP_INDEPENDENT
#endif
    for (; i < item[2]; i += THREADS) {
      float a = STATES > 0 ? h[i] : 0.0f, b = STATES > 1 ? k[i] : 0.0f;
      float e = STATES > 2 ? m[i] : 0.0f;
      v[i] = canonical(Rule<RULE>::of(v[i], zero ? 0.0f : g[i], a, b, e, c));
      if (STATES > 0)
        h[i] = a;
      if (STATES > 1)
        k[i] = b;
      if (STATES > 2)
        m[i] = e;
    }
    if (RULE == RULE_EG)
      normalise(v, item[2], item[4]);
  }
}

// Out of line: the kernel has one copy beside SGD's.
VP_SLOW void update_by(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float scale) {
  switch (fn) {
#define RULE(NAME, STATES, WORDS)                                                                  \
  case RULE_##NAME:                                                                                \
    if (RULE_##NAME != RULE_SGD)                                                                   \
      update_items<RULE_##NAME, STATES, WORDS>(l, w, flags, count, scale);                         \
    break;
    UPDATE_RULES(RULE)
#undef RULE
  }
}

VP u32 rule_words(u32 fn) {
  switch (fn) {
#define RULE(NAME, STATES, WORDS)                                                                  \
  case RULE_##NAME:                                                                                \
    return WORDS;
    UPDATE_RULES(RULE)
#undef RULE
  }
  return 0;
}
VP u32 rule_states(u32 fn) {
  switch (fn) {
#define RULE(NAME, STATES, WORDS)                                                                  \
  case RULE_##NAME:                                                                                \
    return STATES;
    UPDATE_RULES(RULE)
#undef RULE
  }
  return 0;
}

// A batch that is not committed leaves values and states as they are.
VP void update(const Launch &l, const Processor &p, const u32 *w, u32 fn, u32 flags, u32 count) {
  if (!p.commit)
    return;
  if (fn == RULE_SGD)
    update_items<RULE_SGD, 0, 3>(l, w, flags, count, p.scale);
  else
    update_by(l, w, fn, flags, count, p.scale);
}
