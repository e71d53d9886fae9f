// Row: softmax and its kin, each over a row of n elements at a stride, for every line of a tensor.
// One warp a row on the GPU, or all of a long one; sums run in the order of interleaved lanes on
// both devices.
#pragma once

// The elements of a row.
template <bool DENSE> struct RowView {
  typedef float Number;
  float *v;
  u32 n, stride;
  template <class Index> VP_MEMBER float get(Index i) const { return v[DENSE ? i : i * stride]; }
  VP_MEMBER float *at(u32 i) const { return v + (DENSE ? i : i * stride); }
};

#ifdef VPPS_GPU
#define EACH(i, n) for (u32 i = team.first; i < (n); i += team.step)
#define ONCE if (team.first == 0)
// Puts term(i) of each element i to a row: a thread has RUNS of them at a time, so that what they
// read is on its way at once.
template <class Row, class Term>
VP void put_each(const Team &team, const Row &to, u32 flags, const Term &term) {
  const u32 step = team.step;
  u32 i = team.first;
#pragma unroll 1
  for (; i + (RUNS - 1) * step < to.n; i += RUNS * step) {
    float v[RUNS], old[RUNS];
    UNROLL
    for (u32 j = 0; j < RUNS; j++)
      old[j] = flags & FLAG_ACC ? *to.at(i + j * step) : 0.0f;
    UNROLL
    for (u32 j = 0; j < RUNS; j++)
      v[j] = term(i + j * step);
    UNROLL
    for (u32 j = 0; j < RUNS; j++)
      put(to.at(i + j * step), flags & FLAG_ACC ? old[j] + v[j] : v[j], flags & ~(u32)FLAG_ACC);
  }
#pragma unroll 1
  for (; i < to.n; i += step)
    put(to.at(i), term(i), flags);
}
#define PUT_EACH(to, i, term) put_each(team, to, flags, [&](u32 i) { return term; })
// use(i, x.get(i)) for COUNT of the team's elements from i on, those that a row has. They are all
// on their way before the first is used.
template <u32 COUNT, class Row, class Use>
VP void some_of_row(const Team &team, const Row &x, u32 i, const Use &use) {
  const u32 step = team.step;
  float v[COUNT];
  UNROLL
  for (u32 j = 0; j < COUNT; j++)
    v[j] = i + j * step < x.n ? x.get(i + j * step) : 0.0f;
  UNROLL
  for (u32 j = 0; j < COUNT; j++)
    if (i + j * step < x.n)
      use(i + j * step, v[j]);
}
// use(i, x.get(i)) for all of the team's elements, in their order.
template <class Row, class Use>
VP void each_of_row(const Team &team, const Row &x, const Use &use) {
  enum : u32 { LONG_RUNS = 16 };
  u32 i = team.first;
  if (x.n >= LONG_ROW)
#pragma unroll 1
    for (; i < x.n; i += LONG_RUNS * team.step)
      some_of_row<LONG_RUNS>(team, x, i, use);
#pragma unroll 1
  for (; i + (RUNS - 1) * team.step < x.n; i += RUNS * team.step)
    some_of_row<RUNS>(team, x, i, use);
#pragma unroll 1
  for (; i < x.n; i += team.step)
    use(i, x.get(i));
}
// Puts term, of element i of x, which is v, to a row.
#define PUT_EACH_OF(x, v, to, i, term)                                                             \
  each_of_row(team, x, [&](u32 i, float v) { put((to).at(i), term, flags); })
// SUM_OVER(result, i, n, term), MAX_OVER likewise: result is known to all threads of the team.
// SELDOM_ ones give the same bits, take longer, and are compiled sooner.
#define SUM_OVER(result, i, n, term)                                                               \
  float result = 0.0f;                                                                             \
  _Pragma("unroll 4") EACH(i, n) result += (term);                                                 \
  result = over_team(team, result, Plus())
#define MAX_OVER(result, i, n, term)                                                               \
  float result = -3.402823466e+38f;                                                                \
  _Pragma("unroll 4") EACH(i, n) result = fmaxf(result, term);                                     \
  result = over_team(team, result, Larger())
VP_SLOW float seldom_sum(const Team team, float v) { return over_team(team, v, Plus()); }
VP_SLOW float seldom_max(const Team team, float v) { return over_team(team, v, Larger()); }
#define SELDOM_SUM_OVER(result, i, n, term)                                                        \
  float result = 0.0f;                                                                             \
  ROLLED EACH(i, n) result += (term);                                                              \
  result = seldom_sum(team, result)
#define SELDOM_MAX_OVER(result, i, n, term)                                                        \
  float result = -3.402823466e+38f;                                                                \
  ROLLED EACH(i, n) result = fmaxf(result, term);                                                  \
  result = seldom_max(team, result)
#else
struct Team {
  bool all;               // a long row's lanes
  float *const *gathered; // by operand: its row, copied from memory (rows_cpu.h); nullptr: none is
};
VP Team one_warp() { return Team{false, nullptr}; }
VP u32 least_of_team(const Team & /*team*/, u32 v) { return v; }
#define EACH(i, n) VP_INDEPENDENT for (u32 i = 0; i < (n); i++)
#define ONCE
#define PUT_EACH(to, i, term) EACH(i, (to).n) put((to).at(i), term, flags)
#define PUT_EACH_OF(x, v, to, i, term)                                                             \
  EACH(i, (to).n) {                                                                                \
    const auto v = (x).get(i);                                                                     \
    put((to).at(i), term, flags);                                                                  \
  }
// A row of so few elements has a lane for each at most.
enum : u32 { SHORT_ROW = 8 };
// Compilers make vectors of the inner loop. A sum of 32-bit numbers might wrap, so they would
// gather the elements one by one. A number is a float, or a vector of those of several rows.
template <u32 COUNT, class Number, class Term> VP Number sum_lanes(size_t n, const Term &term) {
  if (n <= SHORT_ROW) { // zeros in the other lanes change nothing
    Number some[SHORT_ROW] = {};
    u32 used = 1;
    for (size_t i = 0; i < n; i++)
      some[i] += term(i);
    while (used < n)
      used *= 2;
    return lane_sum(some, used);
  }
  Number lanes[COUNT] = {};
  size_t from = 0;
  for (; from + COUNT <= n; from += COUNT)
    for (size_t k = 0; k < COUNT; k++)
      lanes[k] += term(from + k);
  for (size_t i = from; i < n; i++)
    lanes[i - from] += term(i);
  return lane_sum(lanes, COUNT);
}
template <class Number, class Term> VP Number max_lanes(size_t n, const Term &term) {
  Number lanes[LANES], most = Number{} - 3.402823466e+38f;
  if (n <= SHORT_ROW) {
    for (size_t i = 0; i < n; i++)
      most = term(i) > most ? term(i) : most;
    return most;
  }
  for (size_t k = 0; k < LANES; k++)
    lanes[k] = most;
  size_t from = 0;
  for (; from + LANES <= n; from += LANES)
    for (size_t k = 0; k < LANES; k++) {
      const Number t = term(from + k);
      lanes[k] = t > lanes[k] ? t : lanes[k];
    }
  for (size_t i = from; i < n; i++)
    lanes[i - from] = term(i) > lanes[i - from] ? term(i) : lanes[i - from];
  for (size_t d = LANES / 2; d > 0; d /= 2)
    for (size_t k = 0; k < d; k++)
      lanes[k] = lanes[k + d] > lanes[k] ? lanes[k + d] : lanes[k];
  return lanes[0];
}
#define SUM_OVER(result, i, n, term)                                                               \
  const auto result##_term = [&](size_t i) { return term; };                                       \
  typedef decltype(result##_term(0)) result##_Number;                                              \
  const result##_Number result = team.all                                                          \
                                     ? sum_lanes<LONG_LANES, result##_Number>(n, result##_term)    \
                                     : sum_lanes<LANES, result##_Number>(n, result##_term)
#define MAX_OVER(result, i, n, term)                                                               \
  const auto result##_term = [&](size_t i) { return term; };                                       \
  const auto result = max_lanes<decltype(result##_term(0))>(n, result##_term)
#define SELDOM_SUM_OVER SUM_OVER
#define SELDOM_MAX_OVER MAX_OVER
#endif

#ifdef VPPS_GPU
template <class Row> VP float log_sum_exp(const Team &team, const Row &x) {
  float most = -3.402823466e+38f, s = 0.0f;
  each_of_row(team, x, [&](u32 /*i*/, float v) { most = fmaxf(most, v); });
  const float m = over_team(team, most, Larger());
  each_of_row(team, x, [&](u32 /*i*/, float v) { s += vp_exp(v - m); });
  return m + vp_log(over_team(team, s, Plus()));
}
#else
template <class Team, class Row>
VP typename Row::Number log_sum_exp(const Team &team, const Row &x) {
  MAX_OVER(m, i, x.n, x.get(i));
  SUM_OVER(s, i, x.n, vp_exp(x.get(i) - m));
  return m + vp_log(s);
}
#endif

// The largest of sign*x among the elements that come after (value, at) in descending order, where
// of equal ones the first comes first; value and at become its own.
template <class Row>
VP void next_largest(const Team &team, const Row &x, float sign, float *value, u32 *at) {
  float v = *value;
  u32 p = *at, best = 0xFFFFFFFFu;
  MAX_OVER(m, i, x.n,
           sign * x.get(i) < v || (sign * x.get(i) == v && i >= p + 1) ? sign * x.get(i)
                                                                       : -3.402823466e+38f);
  EACH(i, x.n) {
    float t = sign * x.get(i);
    if (t == m && (t < v || i >= p + 1) && i < best)
      best = i;
  }
  *at = least_of_team(team, best);
  *value = m;
}

// Whether element i is among the largest, of which (value, at) is the last.
template <class Row> VP bool chosen(const Row &x, float sign, float value, u32 at, u32 i) {
  float t = sign * x.get(i);
  return t > value || (t == value && i <= at);
}

// The threshold of sparsemax: elements above it are in the support. m is the largest element.
template <class Row> VP float sparsemax_threshold(const Team &team, const Row &x, float m) {
  float tau = -3.402823466e+38f, last = 0.0f;
  for (u32 k = 0; k <= x.n; k++) {
    SELDOM_SUM_OVER(inside, i, x.n, x.get(i) - m > tau ? 1.0f : 0.0f);
    if (inside == last || inside == 0.0f)
      break;
    SELDOM_SUM_OVER(s, i, x.n, x.get(i) - m > tau ? x.get(i) - m : 0.0f);
    last = inside;
    tau = (s - 1.0f) / inside;
  }
  return tau;
}

// y[i] becomes the sum of x up to i, or from i on. Sums of 32 elements, each over the lanes below,
// are added up.
#ifdef VPPS_GPU
template <class Row>
VP void cumulate(const Team &team, const Row &y, const Row &x, bool from_end, u32 flags) {
  float before = 0.0f;
  const u32 lane = THREAD % 32;
#pragma unroll 1
  for (u32 block = 0; block < x.n; block += team.step) {
    const u32 i = block + team.first, at = from_end ? x.n - 1 - i : i;
    float v = i < x.n ? x.get(at) : 0.0f;
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
      const float below = __shfl_up_sync(0xFFFFFFFFu, v, d);
      v = lane >= d ? v + below : v;
    }
    float after = before + __shfl_sync(0xFFFFFFFFu, v, 31);
    if (team.step == THREADS) { // before and after are those of the warp and of all
      __syncthreads();          // scratch is free
      if (lane == 31)
        team.scratch[THREAD / 32] = v;
      __syncthreads();
      after = before;
      for (u32 k = 0; k < WARPS; k++) {
        before = k == THREAD / 32 ? after : before;
        after += team.scratch[k];
      }
    }
    if (i < x.n)
      put(y.at(at), before + v, flags);
    before = after;
  }
}
#else
template <class Row>
VP void cumulate(const Team & /*team*/, const Row &y, const Row &x, bool from_end, u32 flags) {
  float before = 0.0f;
  for (u32 block = 0; block < x.n; block += LANES) {
    const u32 n = x.n - block < LANES ? x.n - block : LANES;
    float v[LANES] = {};
    for (u32 i = 0; i < n; i++)
      v[i] = x.get(from_end ? x.n - 1 - block - i : block + i);
    for (u32 d = 1; d < LANES; d *= 2)
      for (u32 i = LANES - 1; i >= d; i--)
        v[i] += v[i - d];
    for (u32 i = 0; i < n; i++)
      put(y.at(from_end ? x.n - 1 - block - i : block + i), before + v[i], flags);
    before += v[LANES - 1];
  }
}
#endif

// Of the k largest elements in their order: to[j] becomes the j-th, or, backward, its place in to
// from[j]. (value, at) is the last of them in descending order.
template <class Row>
VP void pass_chosen(const Team &team, const Row &x, float sign, float value, u32 last, u32 k,
                    bool backward, float *to, const float *from, u32 flags) {
#ifdef VPPS_GPU
  if (team.first >= 32)
    return;
  u32 before = 0;
#pragma unroll 1
  for (u32 block = 0; block < x.n; block += 32) {
    const u32 i = block + team.first;
    const bool is = i < x.n && chosen(x, sign, value, last, i);
    const u32 all = __ballot_sync(0xFFFFFFFFu, is),
              j = before + __popc(all & ((1u << team.first) - 1u));
    before += __popc(all);
    if (backward ? i < x.n : is && j < k)
      put(to + (backward ? i : j) * x.stride,
          !backward     ? x.get(i)
          : is && j < k ? from[j * x.stride]
                        : 0.0f,
          flags);
  }
#else
  (void)team;
  u32 j = 0;
  for (u32 i = 0; i < x.n; i++) {
    bool is = j < k && chosen(x, sign, value, last, i);
    if (backward)
      put(to + i * x.stride, is ? from[j * x.stride] : 0.0f, flags);
    else if (is)
      put(to + j * x.stride, x.get(i), flags);
    j += is ? 1 : 0;
  }
#endif
}

// Gauss and Jordan: y becomes the inverse of the m x m matrix x, t is scratch. Returns ln of the
// determinant, NaN if that is negative.
VP float invert(float *y, float *t, const float *x, u32 m) {
  ROLLED
  for (u32 i = 0; i < m * m; i++) {
    t[i] = x[i];
    y[i] = i % (m + 1) == 0 ? 1.0f : 0.0f;
  }
  float log_det = 0.0f;
  bool negative = false;
  for (u32 c = 0; c < m; c++) {
    u32 pivot = c;
    for (u32 r = c + 1; r < m; r++)
      pivot = vp_abs(t[r + m * c]) > vp_abs(t[pivot + m * c]) ? r : pivot;
    negative = negative != ((pivot != c) != (t[pivot + m * c] < 0.0f));
    log_det += vp_log(vp_abs(t[pivot + m * c]));
    const float inverse = 1.0f / t[pivot + m * c];
    ROLLED
    for (u32 k = 0; k < m; k++) {
      float a = t[pivot + m * k], b = y[pivot + m * k];
      t[pivot + m * k] = t[c + m * k];
      y[pivot + m * k] = y[c + m * k];
      t[c + m * k] = a * inverse;
      y[c + m * k] = b * inverse;
    }
    for (u32 r = 0; r < m; r++) {
      const float factor = t[r + m * c];
      if (r != c && factor != 0.0f)
        for (u32 k = 0; k < m; k++) {
          t[r + m * k] -= factor * t[c + m * k];
          y[r + m * k] -= factor * y[c + m * k];
        }
    }
  }
  ROLLED
  for (u32 i = 0; i < m * m; i++) {
    t[i] = canonical(t[i]);
    y[i] = canonical(y[i]);
  }
  return negative ? FLOAT_OF(0x7FC00000u) : log_det;
}

// Where line number i begins, if lines have n elements.
VP u32 line_at(u32 i, u32 n, u32 stride) { return i / stride * stride * n + i % stride; }

// Where a line of operand k begins, of n elements.
VP float *line_of(const Team &team, const Launch &l, const u32 *w, const u32 *item, u32 k, u32 line,
                  u32 n) {
#ifndef VPPS_GPU
  if (team.gathered)
    return team.gathered[k];
#endif
  return address(l, w[ROW_SEGMENTS], k, item[k]) + line_at(line, n, w[ROW_STRIDE]);
}
// The distance of a row's elements.
VP u32 stride_of(const Team &team, const u32 *w) {
#ifndef VPPS_GPU
  if (team.gathered)
    return 1;
#endif
  return w[ROW_STRIDE];
}

#define ROWARG(k)                                                                                  \
  Row { line_of(team, l, w, item, k, line, n), n, stride }
#define PART(k, n) line_of(team, l, w, item, k, line, n)
#define ONE(k) (address(l, w[ROW_SEGMENTS], k, item[k]) + line)
// Whether word k of the items says where there is a label for each line. Else it is a label itself.
VP bool has_labels(const u32 *w, u32 k) { return (w[ROW_SEGMENTS] >> (4 * k) & 15u) == SEG_INPUT; }
VP u32 label_of(const Launch &l, const u32 *w, const u32 *item, u32 k, u32 line) {
  return has_labels(w, k) ? BITS_OF(address(l, w[ROW_SEGMENTS], k, item[k])[line]) : item[k];
}
#define LABEL(k) label_of(l, w, item, k, line)
// The seldom functions, out of line.
VP_SLOW void seldom_row_item(const Team team, const Launch &l, const u32 *w, u32 fn, u32 flags,
                             const u32 *item, u32 line) {
  typedef RowView<false> Row;
  u32 n = w[ROW_N], stride = stride_of(team, w);
  float margin = FLOAT_OF(w[ROW_P]);
  switch (fn) {
  case ROW_CUM_SUM:
    cumulate(team, ROWARG(0), ROWARG(1), margin == 1.0f, flags);
    return;
  case ROW_ARG_MAX: {
    Row y = ROWARG(0), x = ROWARG(1);
    float value = FLOAT_OF(0x7F800000u);
    u32 largest = 0xFFFFFFFFu;
    next_largest(team, x, 1.0f, &value, &largest);
    ROLLED EACH(i, n) put(y.at(i), i == largest ? 1.0f : 0.0f, flags);
    return;
  }
  case ROW_SPARSEMAX: {
    Row y = ROWARG(0), x = ROWARG(1);
    SELDOM_MAX_OVER(m, i, n, x.get(i));
    float tau = sparsemax_threshold(team, x, m);
    ROLLED EACH(j, n) {
      float v = x.get(j) - m - tau;
      put(y.at(j), v > 0.0f ? v : (v == v ? 0.0f : v), flags);
    }
    return;
  }
  case ROW_SPARSEMAX_B: { // inside the support dx = dy - its mean there
    Row dx = ROWARG(0), y = ROWARG(1), dy = ROWARG(2);
    SELDOM_SUM_OVER(inside, i, n, y.get(i) > 0.0f ? 1.0f : 0.0f);
    SELDOM_SUM_OVER(s, j, n, y.get(j) > 0.0f ? dy.get(j) : 0.0f);
    ROLLED EACH(k, n) put(dx.at(k), y.get(k) > 0.0f ? dy.get(k) - s / inside : 0.0f, flags);
    return;
  }
  case ROW_CONSTRAINED_SOFTMAX: { // y = min(u, scale * exp(x)), the scale raised until y is full
    Row y = ROWARG(0), x = ROWARG(1), u = ROWARG(2);
    SELDOM_MAX_OVER(m, i, n, x.get(i));
    SELDOM_SUM_OVER(all, j, n, vp_exp(x.get(j) - m));
    float scale = 1.0f / all, last = 0.0f;
    for (u32 k = 0; k <= n; k++) {
      SELDOM_SUM_OVER(bound, i1, n, vp_exp(x.get(i1) - m) * scale > u.get(i1) ? 1.0f : 0.0f);
      if (bound == last)
        break;
      last = bound;
      SELDOM_SUM_OVER(mass, i2, n, vp_exp(x.get(i2) - m) * scale > u.get(i2) ? u.get(i2) : 0.0f);
      SELDOM_SUM_OVER(rest, i3, n,
                      vp_exp(x.get(i3) - m) * scale > u.get(i3) ? 0.0f : vp_exp(x.get(i3) - m));
      if (rest == 0.0f)
        break;
      scale = (1.0f - mass) / rest;
    }
    ROLLED EACH(k, n) {
      float v = vp_exp(x.get(k) - m) * scale;
      put(y.at(k), v > u.get(k) ? u.get(k) : v, flags);
    }
    return;
  }
  case ROW_CONSTRAINED_SOFTMAX_B: {
    Row dx = ROWARG(0), y = ROWARG(1), u = ROWARG(2), dy = ROWARG(3);
    SELDOM_SUM_OVER(mass, i, n, y.get(i) < u.get(i) ? 0.0f : u.get(i));
    SELDOM_SUM_OVER(s, j, n, y.get(j) < u.get(j) ? y.get(j) * dy.get(j) : 0.0f);
    float mean = s == 0.0f ? 0.0f : s / (1.0f - mass);
    ROLLED EACH(k, n) {
      bool free = y.get(k) < u.get(k);
      float d = dy.get(k) - mean;
      put(dx.at(k), free == (margin == 1.0f) ? 0.0f : (free ? y.get(k) * d : d), flags);
    }
    return;
  }
  case ROW_INVERT: {
    ONCE {
      float d = invert(ONE(1), ONE(2), ONE(3), item[4] + 1);
      put(ONE(0), d, flags);
    }
    return;
  }
  }
}

// Where the rows and the numbers of a line are.
template <bool DENSE> struct ItemLine {
  typedef RowView<DENSE> Row;
  const Team &team;
  const Launch &l;
  const u32 *w, *item;
  u32 line;
  VP_MEMBER Row row(u32 k) const {
    const u32 n = w[ROW_N], stride = stride_of(team, w);
    return ROWARG(k);
  }
  VP_MEMBER float *one(u32 k) const { return ONE(k); }
  VP_MEMBER float picked(const Row &x, u32 k) const { return x.get(LABEL(k)); }
};

// The functions that a CPU applies to several lines at a time. They are cases, as a condition
// before the switch takes two more registers of the interpreter's.
#define CASES_OF_SOFTMAX                                                                           \
  case ROW_SOFTMAX:                                                                                \
  case ROW_SOFTMAX_B:                                                                              \
  case ROW_LOG_SOFTMAX:                                                                            \
  case ROW_LOG_SOFTMAX_B:                                                                          \
  case ROW_NEG_LOG_PICK:                                                                           \
  case ROW_LOG_SUM_EXP:                                                                            \
  case ROW_LOG_SUM_EXP_B:
template <class Line> VP void softmax_item(const Line &at, u32 fn, u32 flags) {
  typedef typename Line::Row Row;
  typedef typename Row::Number Number;
  const auto &team = at.team;
  const u32 n = at.w[ROW_N];
  switch (fn) {
  case ROW_SOFTMAX:
  case ROW_LOG_SOFTMAX:
  case ROW_NEG_LOG_PICK:
  case ROW_LOG_SUM_EXP: {
    const Row x = at.row(1);
    const Number z = log_sum_exp(team, x);
    if (fn == ROW_NEG_LOG_PICK) {
      ONCE {
        put(at.one(2), z, 0);
        put(at.one(0), z - at.picked(x, 3), flags);
      }
      return;
    }
    if (fn == ROW_LOG_SUM_EXP) {
      ONCE put(at.one(0), z, flags);
      return;
    }
    const Row y = at.row(0);
    PUT_EACH_OF(x, v, y, i, fn == ROW_SOFTMAX ? vp_exp(v - z) : v - z);
    return;
  }
  case ROW_SOFTMAX_B: { // dx = y * (dy - sum of y*dy)
    const Row dx = at.row(0), y = at.row(1), dy = at.row(2);
    SUM_OVER(s, i, n, y.get(i) * dy.get(i));
    PUT_EACH(dx, j, y.get(j) * (dy.get(j) - s));
    return;
  }
  case ROW_LOG_SOFTMAX_B: { // dx = dy - exp(y) * sum of dy
    const Row dx = at.row(0), y = at.row(1), dy = at.row(2);
    SUM_OVER(s, i, n, dy.get(i));
    PUT_EACH(dx, j, dy.get(j) - vp_exp(y.get(j)) * s);
    return;
  }
  case ROW_LOG_SUM_EXP_B: { // dx = dy * softmax(x)
    const Row dx = at.row(0), x = at.row(1);
    const Number z = *at.one(2), d = *at.one(3);
    PUT_EACH_OF(x, v, dx, i, d * vp_exp(v - z));
    return;
  }
  }
}

template <bool DENSE>
VP void row_item(const Team &team, const Launch &l, const u32 *w, u32 fn, u32 flags,
                 const u32 *item, u32 line) {
  typedef RowView<DENSE> Row;
  u32 n = w[ROW_N], stride = stride_of(team, w);
  float margin = FLOAT_OF(w[ROW_P]);
  switch (fn) {
    CASES_OF_SOFTMAX
    return softmax_item(ItemLine<DENSE>{team, l, w, item, line}, fn, flags);
  case ROW_NEG_LOG_PICK_B: { // dx = dloss * (softmax(x) - one_hot(label))
    Row dx = ROWARG(0), x = ROWARG(1);
    float z = *ONE(2), d = *ONE(3);
    const u32 label = LABEL(4);
    PUT_EACH_OF(x, v, dx, i, vp_exp(v - z) * d - (i == label ? d : 0.0f));
    return;
  }
  case ROW_HINGE: {
    Row x = ROWARG(1);
    const u32 label = LABEL(2);
    float bound = margin - x.get(label);
    SUM_OVER(s, i, n, i == label || bound + x.get(i) <= 0.0f ? 0.0f : bound + x.get(i));
    ONCE put(ONE(0), s, flags);
    return;
  }
  case ROW_HINGE_B: {
    Row dx = ROWARG(0), x = ROWARG(1);
    const u32 label = LABEL(3);
    float d = *ONE(2), bound = margin - x.get(label);
    SUM_OVER(active, i, n, i != label && bound + x.get(i) > 0.0f ? 1.0f : 0.0f);
    PUT_EACH(dx, j, j == label ? -active * d : (bound + x.get(j) > 0.0f ? d : 0.0f));
    return;
  }
  case ROW_PICK: {
    ONCE put(ONE(0), *ROWARG(1).at(LABEL(2)), flags);
    return;
  }
  case ROW_PICK_B: {
    Row dx = ROWARG(0);
    const u32 label = LABEL(2);
    const float d = *ONE(1);
    if (flags & FLAG_ACC) {
      ONCE put(dx.at(label), d, flags);
      return;
    }
    PUT_EACH(dx, i, i == label ? d : 0.0f);
    return;
  }
  case ROW_K_MAX:
  case ROW_K_MAX_B: {
    bool backward = fn == ROW_K_MAX_B;
    Row x = ROWARG(1);
    float value = FLOAT_OF(0x7F800000u), sign = margin;
    u32 at = 0xFFFFFFFFu, k = item[backward ? 3 : 2] + 1;
    for (u32 j = 0; j < k; j++)
      next_largest(team, x, sign, &value, &at);
    float *to = PART(0, backward ? n : k), *from = backward ? PART(2, k) : x.v;
    if (k == 1) {
      if (backward)
        EACH(i, n) put(to + i * stride, i == at ? *from : 0.0f, flags);
      else
        ONCE put(to, x.get(at < n ? at : 0), flags);
      return;
    }
    pass_chosen(team, x, sign, value, at, k, backward, to, from, flags);
    return;
  }
  default:
    return seldom_row_item(team, l, w, fn, flags, item, line);
  }
#undef ROWARG
#undef PART
#undef ONE
#undef LABEL
}

VP u32 row_words(u32 fn) {
#define ROW(NAME, ROWS, SCALARS, PARTS, LABEL, WORDS)                                              \
  if (fn == ROW_##NAME)                                                                            \
    return WORDS;
  ROW_FUNCTIONS(ROW)
#undef ROW
  return 1;
}

#ifdef VPPS_GPU
// Lanes of a warp that have no line left go with the others, without elements.
VP_SLOW void row(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *scratch) {
  u32 width = w[ROW_N] >= LONG_ROW ? THREADS : 32;
  if (fn <= ROW_LOG_SUM_EXP_B) // the others need a warp
    while (width > 2 && w[ROW_N] <= width / 2)
      width /= 2;
  const u32 lines = w[ROW_LINES], end = count * lines, teams = width < 32 ? 32 / width : 1;
#pragma unroll 1
  for (u32 k = THREAD / width; (k & ~(teams - 1)) < end; k += THREADS / width) {
    const u32 at = min(k, end - 1);
    const Team team = {k < end ? THREAD % width : LONG_ROW, width, scratch};
    row_item<false>(team, l, w, fn, flags, w + ROW_ITEMS + at / lines * row_words(fn), at % lines);
  }
}
#else
#include "rows_cpu.h"
#endif
