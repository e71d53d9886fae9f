// Row: softmax and its kin, each over one row of n elements at a stride. One warp a row
// on the GPU, or all of a long one; sums run in the order of interleaved lanes on both devices.
#pragma once

// The elements of a row.
template <bool DENSE> struct RowView {
  float *v;
  u32 n, stride;
  VP_MEMBER float get(u32 i) const { return v[DENSE ? i : i * stride]; }
  VP_MEMBER float *at(u32 i) const { return v + (DENSE ? i : i * stride); }
};

// From so many elements on, a row has 256 lanes instead of 32, and on the GPU all threads.
enum : u32 { LONG_ROW = 2048, LONG_LANES = 256 };

#ifdef VPPS_GPU
// The threads that work on a row.
struct Team {
  u32 first, step;
  float *scratch; // of all threads
};
VP Team one_warp() { return Team{THREAD % 32, 32, nullptr}; }
#define EACH(i, n) for (u32 i = team.first; i < (n); i += team.step)
#define ONCE if (team.first == 0)

// The sum or maximum over a team, known to all of it: of all threads' values, those of neighbouring
// warps last, as the CPU adds its lanes.
template <class Join> VP float over_team(const Team &team, float v, const Join &join) {
  if (team.step == THREADS) {
    __syncthreads(); // scratch is free
    team.scratch[THREAD] = v;
    __syncthreads();
    float lanes[WARPS];
#pragma unroll
    for (u32 k = 0; k < WARPS; k++)
      lanes[k] = team.scratch[THREAD % 32 + 32 * k];
#pragma unroll
    for (u32 d = WARPS / 2; d > 0; d /= 2)
#pragma unroll
      for (u32 k = 0; k < WARPS / 2; k++)
        if (k < d)
          lanes[k] = join(lanes[k], lanes[k + d]);
    v = lanes[0];
  }
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2)
    v = join(v, __shfl_xor_sync(0xFFFFFFFFu, v, d));
  return v;
}
struct Plus {
  VP_MEMBER float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  VP_MEMBER float operator()(float a, float b) const { return fmaxf(a, b); }
};
// SUM_OVER(result, i, n, term), MAX_OVER likewise: result is known to all threads of the team.
#define SUM_OVER(result, i, n, term)                                                               \
  float result = 0.0f;                                                                             \
  _Pragma("unroll 4") EACH(i, n) result += (term);                                                 \
  result = over_team(team, result, Plus())
#define MAX_OVER(result, i, n, term)                                                               \
  float result = -3.402823466e+38f;                                                                \
  _Pragma("unroll 4") EACH(i, n) result = fmaxf(result, term);                                     \
  result = over_team(team, result, Larger())
#else
struct Team {
  bool all; // a long row's lanes
};
VP Team one_warp() { return Team{false}; }
#define EACH(i, n) VP_INDEPENDENT for (u32 i = 0; i < (n); i++)
#define ONCE
// Compilers make vectors of the inner loop.
template <u32 COUNT, class Term> VP float sum_lanes(u32 n, const Term &term) {
  float lanes[COUNT] = {};
  u32 from = 0;
  for (; from + COUNT <= n; from += COUNT)
    for (u32 k = 0; k < COUNT; k++)
      lanes[k] += term(from + k);
  for (u32 i = from; i < n; i++)
    lanes[i - from] += term(i);
  return lane_sum(lanes, COUNT);
}
template <class Term> VP float max_lanes(u32 n, const Term &term) {
  float lanes[LANES], most = -3.402823466e+38f;
  for (u32 k = 0; k < LANES; k++)
    lanes[k] = most;
  u32 from = 0;
  for (; from + LANES <= n; from += LANES)
    for (u32 k = 0; k < LANES; k++) {
      const float t = term(from + k);
      lanes[k] = t > lanes[k] ? t : lanes[k];
    }
  for (u32 i = from; i < n; i++)
    lanes[i - from] = term(i) > lanes[i - from] ? term(i) : lanes[i - from];
  for (u32 k = 0; k < LANES; k++)
    most = lanes[k] > most ? lanes[k] : most;
  return most;
}
#define SUM_OVER(result, i, n, term)                                                               \
  const auto result##_term = [&](u32 i) { return term; };                                          \
  const float result =                                                                             \
      team.all ? sum_lanes<LONG_LANES>(n, result##_term) : sum_lanes<LANES>(n, result##_term)
#define MAX_OVER(result, i, n, term) const float result = max_lanes(n, [&](u32 i) { return term; })
#endif

template <class Row> VP float log_sum_exp(const Team &team, const Row &x) {
  MAX_OVER(m, i, x.n, x.get(i));
  SUM_OVER(s, i, x.n, vp_exp(x.get(i) - m));
  return m + vp_log(s);
}

template <bool DENSE>
VP void row_item(const Team &team, const Launch &l, const u32 *w, u32 fn, u32 flags,
                 const u32 *item) {
  typedef RowView<DENSE> Row;
  u32 n = w[ROW_N], stride = w[ROW_STRIDE];
  float margin = FLOAT_OF(w[ROW_P]);
#define ROWARG(k)                                                                                  \
  Row { address(l, w[ROW_SEGMENTS], k, item[k]), n, stride }
#define ONE(k) address(l, w[ROW_SEGMENTS], k, item[k])
  switch (fn) {
  case ROW_SOFTMAX:
  case ROW_LOG_SOFTMAX: {
    Row y = ROWARG(0), x = ROWARG(1);
    float z = log_sum_exp(team, x);
    EACH(i, n) {
      float v = x.get(i) - z;
      put(y.at(i), fn == ROW_SOFTMAX ? vp_exp(v) : v, flags);
    }
    return;
  }
  case ROW_SOFTMAX_B: { // dx = y * (dy - sum of y*dy)
    Row dx = ROWARG(0), y = ROWARG(1), dy = ROWARG(2);
    SUM_OVER(s, i, n, y.get(i) * dy.get(i));
    EACH(j, n) put(dx.at(j), y.get(j) * (dy.get(j) - s), flags);
    return;
  }
  case ROW_LOG_SOFTMAX_B: { // dx = dy - exp(y) * sum of dy
    Row dx = ROWARG(0), y = ROWARG(1), dy = ROWARG(2);
    SUM_OVER(s, i, n, dy.get(i));
    EACH(j, n) put(dx.at(j), dy.get(j) - vp_exp(y.get(j)) * s, flags);
    return;
  }
  case ROW_NEG_LOG_PICK: {
    Row x = ROWARG(1);
    float z = log_sum_exp(team, x);
    ONCE {
      put(ONE(2), z, 0);
      put(ONE(0), z - x.get(item[3]), flags);
    }
    return;
  }
  case ROW_NEG_LOG_PICK_B: { // dx = dloss * (softmax(x) - one_hot(label))
    Row dx = ROWARG(0), x = ROWARG(1);
    float z = *ONE(2), d = *ONE(3);
    EACH(i, n) {
      float v = vp_exp(x.get(i) - z) * d;
      put(dx.at(i), i == item[4] ? v - d : v, flags);
    }
    return;
  }
  case ROW_HINGE: {
    Row x = ROWARG(1);
    u32 label = item[2];
    float bound = margin - x.get(label);
    SUM_OVER(s, i, n, i == label || bound + x.get(i) <= 0.0f ? 0.0f : bound + x.get(i));
    ONCE put(ONE(0), s, flags);
    return;
  }
  case ROW_HINGE_B: {
    Row dx = ROWARG(0), x = ROWARG(1);
    u32 label = item[3];
    float d = *ONE(2), bound = margin - x.get(label);
    SUM_OVER(active, i, n, i != label && bound + x.get(i) > 0.0f ? 1.0f : 0.0f);
    EACH(j, n) {
      float v = j == label ? -active * d : (bound + x.get(j) > 0.0f ? d : 0.0f);
      put(dx.at(j), v, flags);
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

#ifdef VPPS_GPU
VP_SLOW void row(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *scratch) {
  u32 words = row_words(fn);
  const bool all = w[ROW_N] >= LONG_ROW;
  const Team team = {all ? THREAD : THREAD % 32, all ? THREADS : 32, scratch};
#pragma unroll 1
  for (u32 k = all ? 0 : THREAD / 32; k < count; k += all ? 1 : WARPS)
    row_item<false>(team, l, w, fn, flags, w + ROW_ITEMS + k * words);
}
#else
template <bool DENSE>
VP_SLOW void row_items(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  for (u32 k = 0, words = row_words(fn); k < count; k++)
    row_item<DENSE>(Team{w[ROW_N] >= LONG_ROW}, l, w, fn, flags, w + ROW_ITEMS + k * words);
}
VP void row(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float * /*scratch*/) {
  if (w[ROW_STRIDE] == 1)
    row_items<true>(l, w, fn, flags, count);
  else
    row_items<false>(l, w, fn, flags, count);
}
#endif
