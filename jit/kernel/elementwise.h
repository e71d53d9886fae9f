// Fill and Map, and the functions of elements. The GPU gives each thread
// elements; the CPU runs one vectorised loop per function and item.
#pragma once

// How many inputs a function has: two bits each of a table, without a jump.
VP u32 arity(u32 fn) {
#define FN(NAME, ARITY) +((FN_##NAME >> 5) == WORD ? (u64)ARITY << 2 * (FN_##NAME & 31) : 0)
#define WORD 0
  const u64 first = 0 ELEMENT_FUNCTIONS(FN);
#undef WORD
#define WORD 1
  const u64 second = 0 ELEMENT_FUNCTIONS(FN);
#undef WORD
#define WORD 2
  const u64 third = 0 ELEMENT_FUNCTIONS(FN);
#undef WORD
#undef FN
  static_assert(FN_COUNT <= 96, "the table has three words");
  const u64 word = fn < 32 ? first : fn < 64 ? second : third;
  return fn < FN_COUNT ? (u32)(word >> 2 * (fn & 31)) & 3u : 0;
}

VP void put(float *dst, float v, u32 flags) { *dst = canonical(flags & FLAG_ACC ? *dst + v : v); }

#ifdef VPPS_GPU
// Reads N (1, 2 or 4) neighbours, aligned to their size.
template <int N> VP void read_run(float *v, const float *from) {
  if (N == 4) {
    float4 x = *(const float4 *)from;
    v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
  } else if (N == 2) {
    float2 x = *(const float2 *)from;
    v[0] = x.x, v[1] = x.y;
  } else
    v[0] = *from;
}
template <int N> VP void write_run(float *to, const float *v) {
  if (N == 4)
    *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
  else if (N == 2)
    *(float2 *)to = make_float2(v[0], v[1]);
  else
    *to = v[0];
}
#endif

#ifdef VPPS_GPU
// How a function is found. Several of those that cells are made of are cheap: all of them are
// computed and one is chosen, which takes less time than a branch. The seldom and long ones are out
// of line: the GPU's code would be twice as big with a copy in every loop.
enum Finding { CHOSEN, SOON, LATER, SELDOM };
VP Finding finding(u32 fn) {
  return fn == FN_COPY || fn == FN_ADD || fn == FN_MUL || fn == FN_TANH_B || fn == FN_LOGISTIC_B
             ? CHOSEN
         : fn == FN_TANH || fn == FN_LOGISTIC ? SOON
         : fn == FN_POW || fn == FN_POW_BX || fn == FN_POW_BY || fn == FN_BIN_LOG ||
                 fn == FN_BIN_LOG_B || fn == FN_MOMENT || fn == FN_MOMENT_B || fn >= FN_SIN
             ? SELDOM
             : LATER;
}

template <Finding F>
VP float apply_some(u32 fn, float a, float b, float c, float d, float p, float q) {
  switch (fn) {
#define FN(NAME, ARITY)                                                                            \
  case FN_##NAME:                                                                                  \
    if (finding(FN_##NAME) != F)                                                                   \
      break;                                                                                       \
    return Formula<FN_##NAME>::of(a, b, c, d, p, q);
    ELEMENT_FUNCTIONS(FN)
#undef FN
  }
  return 0.0f;
}

VP_SLOW float apply_seldom(u32 fn, float a, float b, float c, float d, float p, float q) {
  return apply_some<SELDOM>(fn, a, b, c, d, p, q);
}

// Whether a function is found so. Those from FN_SIN on are all alike.
template <Finding F> VP bool found(u32 fn) {
#define FN(NAME, ARITY)                                                                            \
  | (FN_##NAME < FN_SIN && finding(FN_##NAME) == F ? 1ull << (FN_##NAME & 63) : 0)
  const u64 set = 0 ELEMENT_FUNCTIONS(FN);
#undef FN
  static_assert(FN_SIN < 64, "the set has one word");
  return fn < FN_SIN ? set >> fn & 1u : F == SELDOM;
}

// A function that is not found seldom.
VP float apply(u32 fn, float a, float b, float c, float d, float p, float q) {
  float v = 0.0f;
#define FN(NAME, ARITY)                                                                            \
  if (finding(FN_##NAME) == CHOSEN)                                                                \
    v = fn == FN_##NAME ? Formula<FN_##NAME>::of(a, b, c, d, p, q) : v;
  ELEMENT_FUNCTIONS(FN)
#undef FN
  if (found<CHOSEN>(fn))
    return v;
  if (found<SOON>(fn))
    return apply_some<SOON>(fn, a, b, c, d, p, q);
  return apply_some<LATER>(fn, a, b, c, d, p, q);
}

// The same out of line, for what has more to do than to apply.
VP_SLOW float apply_called(u32 fn, float a, float b, float c, float d, float p, float q) {
  return apply(fn, a, b, c, d, p, q);
}
#endif

// What there may be behind the sums of Product and Sum, inline: a function of a sum, or a
// derivative of it and y.
VP bool stands_behind(u32 fn, bool derivative) {
  return derivative ? fn == FN_TANH_B || fn == FN_LOGISTIC_B || fn == FN_RELU_B
                    : fn == FN_COPY || fn == FN_TANH || fn == FN_LOGISTIC || fn == FN_RELU;
}
#define BEHIND_SUMS(FN)                                                                            \
  FN(FN_TANH) FN(FN_LOGISTIC) FN(FN_RELU) FN(FN_TANH_B) FN(FN_LOGISTIC_B) FN(FN_RELU_B)
VP float apply_behind(u32 fn, float sum, float y) {
  switch (fn) {
#define FN(NAME)                                                                                   \
  case NAME:                                                                                       \
    return Formula<NAME>::of(sum, y, 0.0f, 0.0f, 0.0f, 0.0f);
    BEHIND_SUMS(FN)
#undef FN
  }
  return sum;
}

// The same out of line, for routines of which every matrix has a copy.
VP_SLOW float apply_behind_called(u32 fn, float sum, float y) { return apply_behind(fn, sum, y); }
VP float behind_product(u32 fn, float sum) {
  return fn == FN_COPY ? sum : apply_behind_called(fn, sum, 0.0f);
}
#ifdef VPPS_GPU
// Of four sums at once: one need not wait for the other.
VP_SLOW float4 apply_behind_four(u32 fn, float4 sums, float4 y) {
  switch (fn) {
#define FN(NAME)                                                                                   \
  case NAME:                                                                                       \
    return make_float4(Formula<NAME>::of(sums.x, y.x, 0.0f, 0.0f, 0.0f, 0.0f),                     \
                       Formula<NAME>::of(sums.y, y.y, 0.0f, 0.0f, 0.0f, 0.0f),                     \
                       Formula<NAME>::of(sums.z, y.z, 0.0f, 0.0f, 0.0f, 0.0f),                     \
                       Formula<NAME>::of(sums.w, y.w, 0.0f, 0.0f, 0.0f, 0.0f));
    BEHIND_SUMS(FN)
#undef FN
  }
  return sums;
}
// Of a run of N, 1 or 4.
template <int N> VP void apply_behind_run(u32 fn, float *sums, const float *y) {
  if (N == 4) {
    constexpr int A = N > 1 ? 1 : 0, B = N > 2 ? 2 : 0, C = N > 3 ? 3 : 0;
    const float4 v = apply_behind_four(fn, make_float4(sums[0], sums[A], sums[B], sums[C]),
                                       make_float4(y[0], y[A], y[B], y[C]));
    sums[0] = v.x, sums[A] = v.y, sums[B] = v.z, sums[C] = v.w;
  } else
    sums[0] = apply_behind_called(fn, sums[0], y[0]);
}
#endif

#ifndef VPPS_GPU
template <int FN> VP_SLOW void apply_one_to_rows(float *y, u32 rows, const u32 *items, u32 count) {
  for (u32 e = 0; e < count; e++) {
    float *at = y + items[2 * e];
    for (u32 r = 0; r < rows; r++)
      at[r] = canonical(Formula<FN>::of(at[r], 0.0f, 0.0f, 0.0f, 0.0f, 0.0f));
  }
}

// The function behind sums, of what a product's items have in some rows.
VP void apply_to_rows(u32 fn, float *y, u32 rows, const u32 *items, u32 count) {
  if (fn == FN_TANH)
    apply_one_to_rows<FN_TANH>(y, rows, items, count);
  if (fn == FN_LOGISTIC)
    apply_one_to_rows<FN_LOGISTIC>(y, rows, items, count);
  if (fn == FN_RELU)
    apply_one_to_rows<FN_RELU>(y, rows, items, count);
}
#endif

VP void fill(const Launch &l, const u32 *w, u32 count) {
  const u32 n = w[FILL_N];
  float v = FLOAT_OF(w[FILL_VALUE]);
  for (u32 k = 0; k < count; k++) {
    float *dst = address(l, w[FILL_SEGMENTS], 0, w[FILL_ITEMS + k]);
    for (u32 i = THREAD; i < n; i += THREADS)
      dst[i] = v;
  }
}

#ifdef VPPS_GPU
// Warps take pieces of 32 elements, over all items. Most instructions are one piece for each warp,
// so what comes before it counts: no division, no branch of which the compiler does not know that
// all lanes take it, one copy of the formulas.
struct MapPiece {
  u32 item, rest; // of the item's pieces, rest is it
  float *dst;
  bool inside; // the lane has an element of it
  float v[3], old;
};

struct MapOperands {
  u32 in, n, count, pieces; // pieces of an item
  bool adds;
  const u32 *items;
  float *base[4];

  // Goes on by some pieces. False: none is left.
  VP_MEMBER bool go(MapPiece &x, u32 by) const {
    x.rest += by;
    if (count == 1) // the shortest way
      return 32 * x.rest < n;
    if (pieces == 1) {
      x.item += x.rest;
      x.rest = 0;
    } else {
      while (x.rest >= pieces) {
        x.rest -= pieces;
        x.item++;
      }
    }
    return x.item < count && n > 0;
  }
  VP_MEMBER void load(MapPiece &x) const {
    u32 i = x.rest * 32 + THREAD % 32;
    x.inside = i < n;
    i = x.inside ? i : 0;
    const u32 *a = items + x.item * (in + 1);
    x.dst = base[0] + a[0] + i;
#pragma unroll
    for (u32 s = 0; s < 3; s++)
      if (s < in)
        x.v[s] = base[s + 1][a[s + 1] + i];
    if (adds)
      x.old = *x.dst;
  }
};

// The functions found seldom take many registers, so that their loop may have few.
VP_SLOW void map_seldom(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 n = w[MAP_N], in = arity(fn), segments = w[MAP_SEGMENTS];
#pragma unroll 1
  for (u32 k = THREAD; k < n * count; k += THREADS) {
    const u32 *item = w + MAP_ITEMS + k / n * (in + 1);
    const u32 i = k % n;
    float v[3] = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (u32 s = 0; s < 3; s++)
      if (s < in)
        v[s] = *address(l, segments, s + 1, item[s + 1] + i);
    put(address(l, segments, 0, item[0] + i),
        apply_seldom(fn, v[0], v[1], v[2], 0.0f, FLOAT_OF(w[MAP_P]), FLOAT_OF(w[MAP_Q])), flags);
  }
}

// A function of N times its operands, in place of the first. The most frequent ones are in line: a
// call takes longer than they do.
template <u32 N> VP void apply_run(u32 fn, float (*v)[3], float p, float q) {
  if (fn == FN_COPY || fn == FN_SCALE || fn == FN_ADD || fn == FN_MUL) {
    UNROLL
    for (u32 j = 0; j < N; j++) {
      const float a = v[j][0], b = v[j][1];
      v[j][0] = fn == FN_COPY    ? Formula<FN_COPY>::of(a, b, 0.0f, 0.0f, p, q)
                : fn == FN_SCALE ? Formula<FN_SCALE>::of(a, b, 0.0f, 0.0f, p, q)
                : fn == FN_ADD   ? Formula<FN_ADD>::of(a, b, 0.0f, 0.0f, p, q)
                                 : Formula<FN_MUL>::of(a, b, 0.0f, 0.0f, p, q);
    }
    return;
  }
  UNROLL
  for (u32 j = 0; j < N; j++)
    v[j][0] = found<SELDOM>(fn) ? apply_seldom(fn, v[j][0], v[j][1], v[j][2], 0.0f, p, q)
                                : apply_called(fn, v[j][0], v[j][1], v[j][2], 0.0f, p, q);
}

// Results of a function, of which each lane of a warp has every 32nd. Operands have steps.
struct Run {
  u32 fn, flags, in, last; // the last result: one that is not there reads as this
  float p, q;
  float *to;
  const float *from[3];
  u32 step[4]; // of the result and the operands, in bytes

  VP_MEMBER static const float &element(const float *first, u32 i, u32 step) {
    return *(const float *)((const char *)first + (u64)i * step);
  }

  // N results of a lane, from i on. What they read is on its way at once.
  template <u32 N> VP_MEMBER void put_some(u32 i) const {
    u32 at[N];
    float v[N][3], old[N];
    UNROLL
    for (u32 j = 0; j < N; j++)
      at[j] = min(i + 32 * j, last);
    UNROLL
    for (u32 s = 0; s < 3; s++)
      UNROLL
    for (u32 j = 0; j < N; j++)
      v[j][s] = s < in ? element(from[s], at[j], step[s + 1]) : 0.0f;
    UNROLL
    for (u32 j = 0; j < N; j++)
      old[j] = flags & FLAG_ACC ? element(to, at[j], step[0]) : 0.0f;
    apply_run<N>(fn, v, p, q);
    UNROLL
    for (u32 j = 0; j < N; j++)
      if (i + 32 * j <= last)
        put((float *)&element(to, at[j], step[0]), flags & FLAG_ACC ? old[j] + v[j][0] : v[j][0],
            flags & ~(u32)FLAG_ACC);
  }
};

// How many results or terms a thread has at a time: what they read is on its way at once.
#define RUNS 4

// Warps take pieces of 32 * RUNS elements of an item.
VP_SLOW void map_long(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 n = w[MAP_N], segments = w[MAP_SEGMENTS], pieces = (n + 32 * RUNS - 1) / (32 * RUNS);
  Run r = {fn, flags, arity(fn),   n - 1, FLOAT_OF(w[MAP_P]), FLOAT_OF(w[MAP_Q]),
           0,  {},    {4, 4, 4, 4}};
#pragma unroll 1
  for (u32 k = THREAD / 32; k < pieces * count; k += WARPS) {
    const u32 e = k / pieces, *item = w + MAP_ITEMS + e * (r.in + 1);
    r.to = address(l, segments, 0, item[0]);
    UNROLL
    for (u32 s = 0; s < 3; s++)
      r.from[s] = s < r.in ? address(l, segments, s + 1, item[s + 1]) : r.to;
    r.put_some<RUNS>(32 * RUNS * (k - e * pieces) + THREAD % 32);
  }
}

VP void map(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  if (w[MAP_N] >= 32 * RUNS * WARPS)
    return map_long(l, w, fn, flags, count);
  if (found<SELDOM>(fn))
    return map_seldom(l, w, fn, flags, count);
  u32 segments = w[MAP_SEGMENTS];
  float cp = FLOAT_OF(w[MAP_P]), cq = FLOAT_OF(w[MAP_Q]);
  MapOperands m;
  m.in = arity(fn);
  m.n = w[MAP_N];
  m.count = count;
  m.pieces = m.n > 32 ? (m.n + 31) / 32 : 1;
  m.adds = flags & FLAG_ACC;
  m.items = w + MAP_ITEMS;
#pragma unroll
  for (u32 s = 0; s < 4; s++)
    m.base[s] = address(l, segments, s <= m.in ? s : 0, 0);
  const MapPiece nothing = {0, 0, 0, false, {0.0f, 0.0f, 0.0f}, -0.0f};
  MapPiece x = nothing;
  if (!m.go(x, THREAD / 32))
    return;
  for (;;) {
    MapPiece y = nothing;
    m.load(x);
    y.item = x.item;
    y.rest = x.rest;
    const bool two = m.go(y, WARPS);
    if (two)
      m.load(y);
#pragma unroll 1
    for (bool last = !two;; last = true, x = y) {
      float v = apply(fn, x.v[0], x.v[1], x.v[2], 0.0f, cp, cq);
      if (x.inside)
        *x.dst = canonical(x.old + v);
      if (last)
        break;
    }
    if (!two || !m.go(x, WARPS))
      return;
  }
}
#else
// A function of runs: of n neighbours of each operand, put to dst or added to it.
typedef void (*Mapped)(float *dst, const float *const *in, u32 n, float p, float q);

template <int FN, int ARITY, bool ADD>
VP_SLOW void map_run(float *RESTRICT dst, const float *const *in, u32 n, float p, float q) {
  const float *a = in[0], *b = in[ARITY > 1 ? 1 : 0], *c = in[ARITY > 2 ? 2 : 0];
  VP_INDEPENDENT
  for (u32 i = 0; i < n; i++) {
    float v = Formula<FN>::of(a[i], ARITY > 1 ? b[i] : 0.0f, ARITY > 2 ? c[i] : 0.0f, 0.0f, p, q);
    dst[i] = canonical(ADD ? dst[i] + v : v);
  }
}

VP Mapped mapped(u32 fn, bool add) {
  switch (fn) {
#define FN(NAME, ARITY)                                                                            \
  case FN_##NAME:                                                                                  \
    return add ? (Mapped)map_run<FN_##NAME, ARITY, true> : map_run<FN_##NAME, ARITY, false>;
    ELEMENT_FUNCTIONS(FN)
#undef FN
  }
  return nullptr; // no script has it: the verifier sees to that
}

VP_SLOW void map(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 operands = arity(fn), n = w[MAP_N];
  const Mapped run = mapped(fn, flags & FLAG_ACC);
  for (u32 k = 0; k < count; k++) {
    const u32 *item = w + MAP_ITEMS + k * (operands + 1);
    const float *in[3];
    for (u32 s = 0; s < operands; s++)
      in[s] = address(l, w[MAP_SEGMENTS], s + 1, item[s + 1]);
    run(address(l, w[MAP_SEGMENTS], 0, item[0]), in, n, FLOAT_OF(w[MAP_P]), FLOAT_OF(w[MAP_Q]));
  }
}
#endif
