// Fill, Map, Strided, Sum and Collect: everything that works element by element. The GPU gives
// each thread elements; the CPU runs one vectorised loop per function and item.
#pragma once

// How many inputs a function has: two bits each of a table, without a jump.
VP u32 arity(u32 fn) {
#define FN(NAME, ARITY) +((FN_##NAME >> 5) == WORD ? (u64)ARITY << 2 * (FN_##NAME & 31) : 0)
#define WORD 0
  const u64 low = 0 ELEMENT_FUNCTIONS(FN);
#undef WORD
#define WORD 1
  const u64 high = 0 ELEMENT_FUNCTIONS(FN);
#undef WORD
#undef FN
  return fn < FN_COUNT ? (u32)((fn < 32 ? low : high) >> 2 * (fn & 31)) & 3u : 0;
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

// How a function is found. Several of those that cells are made of are cheap: all of them are
// computed and one is chosen, which takes less time than a branch. The seldom and long ones are out
// of line: the GPU's code would be twice as big with a copy in every loop.
enum Finding { CHOSEN, SOON, LATER, SELDOM };
VP Finding finding(u32 fn) {
  return fn == FN_COPY || fn == FN_ADD || fn == FN_MUL || fn == FN_TANH_B || fn == FN_LOGISTIC_B
             ? CHOSEN
         : fn == FN_TANH || fn == FN_LOGISTIC ? SOON
         : fn == FN_POW || fn == FN_POW_BX || fn == FN_POW_BY || fn == FN_BIN_LOG ||
                 fn == FN_BIN_LOG_B || fn == FN_MOMENT || fn == FN_MOMENT_B
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

// Whether a function is found so.
template <Finding F> VP bool found(u32 fn) {
#define FN(NAME, ARITY) | (u64)(finding(FN_##NAME) == F) << FN_##NAME
  const u64 set = 0 ELEMENT_FUNCTIONS(FN);
#undef FN
  return set >> (fn & 63u) & 1u;
}

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
  if (found<SELDOM>(fn))
    return apply_seldom(fn, a, b, c, d, p, q);
  return apply_some<LATER>(fn, a, b, c, d, p, q);
}

// The same out of line, for what has more to do than to apply.
VP_SLOW float apply_called(u32 fn, float a, float b, float c, float d, float p, float q) {
  return apply(fn, a, b, c, d, p, q);
}

// What there may be behind the sums of Affine and Collect, inline: a function of a sum, or a
// derivative of it and y.
VP bool stands_behind(u32 fn, bool derivative) {
  return derivative ? fn == FN_TANH_B || fn == FN_LOGISTIC_B || fn == FN_RELU_B
                    : fn == FN_COPY || fn == FN_TANH || fn == FN_LOGISTIC || fn == FN_RELU;
}
VP float apply_behind(u32 fn, float sum, float y) {
  switch (fn) {
#define BEHIND(FN)                                                                                 \
  case FN:                                                                                         \
    return Formula<FN>::of(sum, y, 0.0f, 0.0f, 0.0f, 0.0f);
    BEHIND(FN_TANH)
    BEHIND(FN_LOGISTIC)
    BEHIND(FN_RELU)
    BEHIND(FN_TANH_B)
    BEHIND(FN_LOGISTIC_B)
    BEHIND(FN_RELU_B)
#undef BEHIND
  }
  return sum;
}

VP void fill(const Launch &l, const Processor &p, const u32 *w, u32 flags, u32 count) {
  Range r = owned(w[FILL_N], flags, p);
  float v = FLOAT_OF(w[FILL_VALUE]); // as it is: the sentinel may be written here
  for (u32 k = 0; k < count; k++) {
    float *dst = address(l, w[FILL_SEGMENTS], 0, w[FILL_ITEMS + k]);
    for (u32 i = r.lo + THREAD; i < r.hi; i += THREADS)
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

  // Goes on by some pieces. False: there is none.
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

VP void map(const Launch &l, const Processor &p, const u32 *w, u32 fn, u32 flags, u32 count) {
  Range r = owned(w[MAP_N], flags, p);
  u32 segments = w[MAP_SEGMENTS];
  float cp = FLOAT_OF(w[MAP_P]), cq = FLOAT_OF(w[MAP_Q]);
  MapOperands m;
  m.in = arity(fn);
  m.n = r.hi - r.lo;
  m.count = count;
  m.pieces = m.n > 32 ? (m.n + 31) / 32 : 1;
  m.adds = flags & FLAG_ACC;
  m.items = w + MAP_ITEMS;
#pragma unroll
  for (u32 s = 0; s < 4; s++)
    m.base[s] = address(l, segments, s <= m.in ? s : 0, r.lo);
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
template <int FN, int ARITY, bool ADD>
VP void map_item(float *RESTRICT dst, const float *a, const float *b, const float *c,
                 const float *d, u32 n, float p, float q) {
#pragma GCC ivdep
  for (u32 i = 0; i < n; i++) {
    float v = Formula<FN>::of(a[i], ARITY > 1 ? b[i] : 0.0f, ARITY > 2 ? c[i] : 0.0f,
                              ARITY > 3 ? d[i] : 0.0f, p, q);
    dst[i] = canonical(ADD ? dst[i] + v : v);
  }
}

template <int FN, int ARITY>
VP_SLOW void map_items(const Launch &l, const Processor &p, const u32 *w, u32 flags, u32 count) {
  Range r = owned(w[MAP_N], flags, p);
  u32 n = r.hi - r.lo;
  float cp = FLOAT_OF(w[MAP_P]), cq = FLOAT_OF(w[MAP_Q]);
  for (u32 k = 0; k < count; k++) {
    const u32 *item = w + MAP_ITEMS + k * (ARITY + 1);
    const float *in[4] = {0, 0, 0, 0};
    for (int s = 0; s < ARITY; s++)
      in[s] = address(l, w[MAP_SEGMENTS], s + 1, item[s + 1]) + r.lo;
    float *dst = address(l, w[MAP_SEGMENTS], 0, item[0]) + r.lo;
    if (flags & FLAG_ACC)
      map_item<FN, ARITY, true>(dst, in[0], in[1], in[2], in[3], n, cp, cq);
    else
      map_item<FN, ARITY, false>(dst, in[0], in[1], in[2], in[3], n, cp, cq);
  }
}

VP void map(const Launch &l, const Processor &p, const u32 *w, u32 fn, u32 flags, u32 count) {
  switch (fn) {
#define FN(NAME, ARITY)                                                                            \
  case FN_##NAME:                                                                                  \
    return map_items<FN_##NAME, ARITY>(l, p, w, flags, count);
    ELEMENT_FUNCTIONS(FN)
#undef FN
  }
}
#endif

// The axes of a Strided instruction and where its words are.
struct Axes {
  u32 kept, reduced, all, slots;
  const u32 *sizes, *strides, *items;
};
VP Axes axes_of(const u32 *w, u32 fn) {
  Axes x;
  x.kept = w[STRIDED_AXES] & 255u;
  x.reduced = w[STRIDED_AXES] >> 8 & 255u;
  x.all = x.kept + x.reduced;
  x.slots = arity(fn) + 1;
  x.sizes = w + STRIDED_ITEMS;
  x.strides = x.sizes + x.all;
  x.items = x.strides + x.all * x.slots;
  return x;
}

// Adds to at[slot] the offsets of the flat index i over axes [from, to).
VP void locate(const Axes &x, u32 from, u32 to, u32 i, u32 *at) {
  for (u32 a = from; a < to; a++) {
    u32 size = x.sizes[a], c = i % size;
    i /= size;
    UNROLL
    for (u32 s = 0; s < 5; s++)
      if (s < x.slots)
        at[s] += c * x.strides[s * x.all + a];
  }
}

VP float strided_term(const Launch &l, const u32 *w, u32 fn, const u32 *at, u32 in) {
  float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  UNROLL
  for (u32 s = 0; s < 4; s++)
    if (s < in)
      v[s] = *address(l, w[STRIDED_SEGMENTS], s + 1, at[s + 1]);
  return apply_called(fn, v[0], v[1], v[2], v[3], FLOAT_OF(w[STRIDED_P]), FLOAT_OF(w[STRIDED_Q]));
}

VP u32 product_of(const u32 *sizes, u32 n) {
  u32 r = 1;
  for (u32 i = 0; i < n; i++)
    r *= sizes[i];
  return r;
}

// A reduction sums LANES interleaved partial sums, then those pairwise: the same order on
// both devices, whose natural widths differ.
#define LANES 32u

#ifdef VPPS_GPU
VP float warp_sum(float v) {
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
  return v;
}

VP_SLOW void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  Axes x = axes_of(w, fn);
  u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
  u32 step = terms == 1 ? THREADS : WARPS, first = terms == 1 ? THREAD : THREAD / 32;
  for (u32 k = first; k < outputs * count; k += step) {
    u32 item = k / outputs, at[5];
#pragma unroll
    for (u32 s = 0; s < 5; s++)
      at[s] = s < x.slots ? x.items[item * x.slots + s] : 0;
    locate(x, 0, x.kept, k - item * outputs, at);
    float *dst = address(l, w[STRIDED_SEGMENTS], 0, at[0]);
    if (terms == 1) {
      put(dst, strided_term(l, w, fn, at, x.slots - 1), flags);
      continue;
    }
    float sum = 0.0f;
    for (u32 t = THREAD % 32; t < terms; t += 32) {
      u32 here[5];
#pragma unroll
      for (u32 s = 0; s < 5; s++)
        here[s] = at[s];
      locate(x, x.kept, x.all, t, here);
      sum += strided_term(l, w, fn, here, x.slots - 1);
    }
    sum = warp_sum(sum);
    if (THREAD % 32 == 0)
      put(dst, sum, flags);
  }
}
#else
VP float lane_sum(float *v) {
  for (u32 d = LANES / 2; d > 0; d /= 2)
    for (u32 i = 0; i < d; i++)
      v[i] = v[i] + v[i + d];
  return v[0];
}

// One output of a reduction; terms counts the reduced elements.
template <int FN, int ARITY>
VP float strided_sum(const Axes &x, const float *const *base, const u32 *at, u32 terms, float p,
                     float q) {
  float lanes[LANES] = {};
  u32 here[5];
  for (u32 t = 0; t < terms; t++) {
    for (u32 s = 0; s < 5; s++)
      here[s] = at[s];
    locate(x, x.kept, x.all, t, here);
    lanes[t % LANES] += Formula<FN>::of(base[1][here[1]], ARITY > 1 ? base[2][here[2]] : 0.0f,
                                        ARITY > 2 ? base[3][here[3]] : 0.0f,
                                        ARITY > 3 ? base[4][here[4]] : 0.0f, p, q);
  }
  return lane_sum(lanes);
}

// The same where the reduced elements lie at constant strides.
template <int FN, int ARITY>
VP float strided_sum1(const Axes &x, const float *const *base, const u32 *at, u32 terms, float p,
                      float q) {
  float lanes[LANES] = {};
  const float *in[4] = {0, 0, 0, 0};
  u32 step[4] = {0, 0, 0, 0};
  for (int s = 0; s < ARITY; s++) {
    in[s] = base[s + 1] + at[s + 1];
    step[s] = x.strides[(s + 1) * x.all + x.kept];
  }
  for (u32 t0 = 0; t0 < terms; t0 += LANES) {
    u32 m = terms - t0 < LANES ? terms - t0 : LANES;
    for (u32 j = 0; j < m; j++) {
      u32 t = t0 + j;
      lanes[j] += Formula<FN>::of(in[0][t * step[0]], ARITY > 1 ? in[1][t * step[1]] : 0.0f,
                                  ARITY > 2 ? in[2][t * step[2]] : 0.0f,
                                  ARITY > 3 ? in[3][t * step[3]] : 0.0f, p, q);
    }
  }
  return lane_sum(lanes);
}

template <int FN, int ARITY>
VP_SLOW void strided_items(const Launch &l, const u32 *w, u32 flags, u32 count) {
  Axes x = axes_of(w, FN);
  u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
  float p = FLOAT_OF(w[STRIDED_P]), q = FLOAT_OF(w[STRIDED_Q]);
  const float *base[5];
  for (u32 s = 0; s < 5; s++)
    base[s] = s < x.slots ? address(l, w[STRIDED_SEGMENTS], s, 0) : 0;
  u32 inner = x.kept ? x.sizes[0] : 1; // runs along the first kept axis
  for (u32 item = 0; item < count; item++)
    for (u32 k = 0; k < outputs; k += inner) {
      u32 at[5] = {0, 0, 0, 0, 0};
      for (u32 s = 0; s < x.slots; s++)
        at[s] = x.items[item * x.slots + s];
      locate(x, 0, x.kept, k, at);
      for (u32 i = 0; i < inner; i++) {
        float *dst = (float *)base[0] + at[0];
        if (terms == 1)
          put(dst,
              Formula<FN>::of(base[1][at[1]], ARITY > 1 ? base[2][at[2]] : 0.0f,
                              ARITY > 2 ? base[3][at[3]] : 0.0f, ARITY > 3 ? base[4][at[4]] : 0.0f,
                              p, q),
              flags);
        else if (x.reduced == 1)
          put(dst, strided_sum1<FN, ARITY>(x, base, at, terms, p, q), flags);
        else
          put(dst, strided_sum<FN, ARITY>(x, base, at, terms, p, q), flags);
        if (x.kept)
          for (u32 s = 0; s < x.slots; s++)
            at[s] += x.strides[s * x.all];
      }
    }
}

VP void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  switch (fn) {
#define FN(NAME, ARITY)                                                                            \
  case FN_##NAME:                                                                                  \
    return strided_items<FN_##NAME, ARITY>(l, w, flags, count);
    ELEMENT_FUNCTIONS(FN)
#undef FN
  }
}
#endif

// The sources of a sum, count of them: the first of n addresses are runs, the others single ones.
struct Sources {
  const u32 *items;               // the addresses
  u32 runs, each, apart, inverse; // inverse: divides by each
  u32 many, count;                // many: sources in runs
  VP_MEMBER Sources(const u32 *items, u32 n, u32 in_runs, u32 each, u32 apart)
      : items(items), runs(each < 2 ? 0 : in_runs), each(each), apart(apart), inverse(0) {
    if (runs > 1) // exact for fewer than 2^32 / each
      inverse = 0xFFFFFFFFu / each + 1;
    many = runs * each;
    count = many + n - runs;
  }
  VP_MEMBER Sources(const u32 *w, u32 n) // of a Sum
      : Sources(w + SUM_ITEMS, n, w[SUM_RUNS] & 0xFFFFu, w[SUM_RUNS] >> 16, w[SUM_APART]) {}
  VP_MEMBER u32 operator()(u32 k) const {
    if (k >= many)
      return items[k - many + runs];
    u32 run = MULHI(k, inverse);
    return items[run] + (k - run * each) * apart;
  }
};

// dst = scale * sum of the sources. On the GPU few elements and many sources are shared
// out over groups of threads, whose sums meet in shared memory.
#ifdef VPPS_GPU
enum : u32 { LOADS = 8 }; // of a thread on their way

// Sums elements from.. of the sources first, first + step, ...
template <int RUN>
VP void sum_sources(float *s, const float *from, const Sources &src, u32 count, u32 first,
                    u32 step) {
#pragma unroll
  for (int j = 0; j < RUN; j++)
    s[j] = 0.0f;
#pragma unroll 1
  for (u32 k = first; k < count; k += LOADS * step) {
    float v[LOADS * RUN];
#pragma unroll
    for (u32 a = 0; a < LOADS; a++)
      if (k + a * step < count)
        read_run<RUN>(v + a * RUN, from + src(k + a * step));
      else
#pragma unroll
        for (int j = 0; j < RUN; j++)
          v[a * RUN + j] = 0.0f;
#pragma unroll
    for (u32 a = 0; a < LOADS; a++)
#pragma unroll
      for (int j = 0; j < RUN; j++)
        s[j] += v[a * RUN + j];
  }
}

template <int RUN> VP void put_sum(float *dst, const float *s, float scale, u32 flags) {
#pragma unroll
  for (int j = 0; j < RUN; j++)
    put(dst + j, scale * s[j], flags);
}

// The same for n runs of RUN elements.
template <int RUN>
VP void sum_runs(float *dst, const float *base, const Sources &src, u32 n, u32 count, float scale,
                 u32 flags, float *scratch) {
  u32 width = 1, groups = 1; // runs side by side
  while (width < n && width < THREADS)
    width *= 2;
  while (groups * width < THREADS && groups * LOADS < count)
    groups *= 2;
  float s[RUN];
  if (groups == 1) {
#pragma unroll 1
    for (u32 i = THREAD; i < n; i += THREADS) {
      sum_sources<RUN>(s, base + RUN * i, src, count, 0, 1);
      put_sum<RUN>(dst + RUN * i, s, scale, flags);
    }
    return;
  }
  u32 g = THREAD / width, e = THREAD % width;
  bool works = g < groups && e < n;
  sum_sources<RUN>(s, base + RUN * e, src, works ? count : 0, g, groups);
  __syncthreads(); // scratch is free
  if (g > 0 && works)
    write_run<RUN>(scratch + RUN * THREAD, s);
  __syncthreads();
  if (g > 0 || !works)
    return;
#pragma unroll 4
  for (u32 k = 1; k < groups; k++) {
    float other[RUN];
    read_run<RUN>(other, scratch + RUN * (e + k * width));
#pragma unroll
    for (int j = 0; j < RUN; j++)
      s[j] += other[j];
  }
  put_sum<RUN>(dst + RUN * e, s, scale, flags);
}

VP void sum(const Launch &l, const Processor &p, const u32 *w, u32 flags, u32 items,
            float *scratch) {
  Range r = owned(w[SUM_N], flags, p);
  u32 n = r.hi - r.lo;
  const float *base = address(l, w[SUM_SEGMENTS], 1, 0) + r.lo;
  float *dst = address(l, w[SUM_SEGMENTS], 0, w[SUM_DST]) + r.lo;
  const Sources src(w, items);
  const u32 count = src.count;
  float scale = FLOAT_OF(w[SUM_SCALE]);
  if (n > THREADS || count > LOADS) { // by fours, where that pays and they are aligned
    u32 places = n | (src.runs ? src.apart : 0);
    for (u32 k = THREAD % 32; k < items; k += 32)
      places |= src.items[k];
    bool fours = ((u64)base | (u64)dst) % 16 == 0 && places % 4 == 0;
    if (__all_sync(0xFFFFFFFFu, fours))
      return sum_runs<4>(dst, base, src, n / 4, count, scale, flags, scratch);
  }
  sum_runs<1>(dst, base, src, n, count, scale, flags, scratch);
}

enum : u32 { COLLECT_LOADS = 4 }; // of a thread on their way

// The sources of an item of Collect.
struct Runs {
  const u32 *runs;          // the first of each
  u32 each, apart, inverse; // inverse: divides by each
  VP_MEMBER Runs(const u32 *w, u32 many)
      : each(w[COLLECT_COUNT]), apart(w[COLLECT_APART]),
        inverse(many > 1 ? 0x80000000u / each : 0) {}
  VP_MEMBER u32 operator()(u32 k) const {
    u32 run = MULHI(2 * k + 1, inverse); // of the middle of k: exact for k * each < 2^30
    return runs[run] + (k - run * each) * apart;
  }

  // Sums runs of elements of the sources k, k + step, ... before end.
  template <int RUN>
  VP_MEMBER void sum(float *s, const float *from, u32 element, u32 k, u32 end, u32 step) const {
#pragma unroll
    for (int j = 0; j < RUN; j++)
      s[j] = 0.0f;
#pragma unroll 1
    while (k < end) {
      float v[COLLECT_LOADS * RUN];
      u32 at[COLLECT_LOADS];
      bool is[COLLECT_LOADS];
#pragma unroll
      for (u32 a = 0; a < COLLECT_LOADS; a++, k += step) {
        is[a] = k < end;
        at[a] = is[a] ? (*this)(k) + element : 0;
      }
#pragma unroll
      for (u32 a = 0; a < COLLECT_LOADS; a++) {
#pragma unroll
        for (int j = 0; j < RUN; j++)
          v[a * RUN + j] = 0.0f;
        if (is[a])
          read_run<RUN>(v + a * RUN, from + at[a]);
      }
#pragma unroll
      for (u32 a = 0; a < COLLECT_LOADS; a++)
#pragma unroll
        for (int j = 0; j < RUN; j++)
          s[j] += v[a * RUN + j];
    }
  }
};

// The exponent of the smallest power of two that is not below x > 0.
VP u32 exponent(u32 x) { return 32 - __clz(x - 1); }

// Up to 32 runs of RUN elements of each item. A team of neighbouring threads has an item, and
// groups of it, of as many threads as there are runs, some sources each. A team is as large as lets
// all of a thread's loads be on their way at once, or a warp where others are idle; of several
// warps only where each item has such a team at once. Sizes are powers of two.
template <int RUN>
VP void collect_runs(const Launch &l, u32 first, const u32 *w, const u32 *items, u32 fn, u32 n,
                     u32 flags, u32 count, float *scratch) {
  const u32 runs = fn & ~(u32)COLLECT_DERIVED, words = collect_words(fn);
  Runs src(w, runs);
  const u32 sources = runs * src.each;
  u32 width = n > 1 ? exponent(n) : 0; // exponents: threads of a group and of a team
  u32 enough = width + (sources > COLLECT_LOADS ? exponent(sources) - exponent(COLLECT_LOADS) : 0);
  u32 room = count > THREADS ? 0 : exponent(THREADS) - exponent(count);
  u32 size = enough > 5 ? max(5, min(enough, room)) : max(enough, min(5, room));
  u32 group = (THREAD & ((1u << size) - 1)) >> width, e = THREAD & ((1u << width) - 1);
  u32 item = THREAD >> size, end = e < n ? count : 0, element = first + RUN * e;
  src.runs = items + 1 + item * words;
  do {
    float s[RUN], old[RUN], y[RUN];
    u32 have = item < end ? runs_of(src.runs, runs) * src.each : 0;
    src.sum<RUN>(s, address(l, w[COLLECT_SEGMENTS], 1, 0), element, group, have,
                 1u << (size - width));
    bool mine = item < end && group == 0;
    float *to = address(l, w[COLLECT_SEGMENTS], 0, mine ? src.runs[-1] + element : 0);
#pragma unroll
    for (int j = 0; j < RUN; j++)
      old[j] = -0.0f;
    if (mine && (flags & FLAG_ACC))
      read_run<RUN>(old, to);
    if (mine && words > runs + 1)
      read_run<RUN>(y, address(l, w[COLLECT_SEGMENTS], 2, src.runs[runs] + element));
#pragma unroll 1
    for (u32 d = 1u << width; d >> size == 0 && d < 32; d *= 2)
#pragma unroll
      for (int j = 0; j < RUN; j++)
        s[j] += __shfl_xor_sync(0xFFFFFFFFu, s[j], d);
    if (size > 5) {
      __syncthreads(); // scratch is free
      if (THREAD % 32 >> width == 0)
        write_run<RUN>(scratch + RUN * THREAD, s);
      __syncthreads();
#pragma unroll 1
      for (u32 k = 32; mine && k >> size == 0; k += 32) {
        float other[RUN];
        read_run<RUN>(other, scratch + RUN * (THREAD + k));
#pragma unroll
        for (int j = 0; j < RUN; j++)
          s[j] += other[j];
      }
    }
    if (mine) {
      const float scale = FLOAT_OF(w[COLLECT_SCALE]);
#pragma unroll
      for (int j = 0; j < RUN; j++)
        s[j] *= scale;
      if (words > runs + 1)
#pragma unroll
        for (int j = 0; j < RUN; j++)
          s[j] = apply_behind(w[COLLECT_FUNCTION], s[j], y[j]);
#pragma unroll
      for (int j = 0; j < RUN; j++)
        s[j] = canonical(old[j] + s[j]);
      write_run<RUN>(to, s);
    }
    item += THREADS >> size;
    src.runs += words << (8 - size);
  } while (size <= 5 && __any_sync(0xFFFFFFFFu, item < end));
}

VP void collect(const Launch &l, const Processor &p, const u32 *w, const u32 *items, u32 fn,
                u32 flags, u32 count, float *scratch) {
  Range r = owned(w[COLLECT_N], flags, p);
  u32 segments = w[COLLECT_SEGMENTS];
  u32 places = r.lo | r.hi | (w[COLLECT_COUNT] > 1 ? w[COLLECT_APART] : 0);
  for (u32 k = THREAD % 32; k < count * collect_words(fn); k += 32)
    places |= items[k];
  bool fours = ((u64)address(l, segments, 0, 0) | (u64)address(l, segments, 1, 0) |
                (u64)address(l, segments, 2, 0)) %
                       16 ==
                   0 &&
               places % 4 == 0;
  u32 run = __all_sync(0xFFFFFFFFu, fours) ? 4 : 1;
#pragma unroll 1
  for (; r.lo < r.hi; r.lo += 32 * run) {
    u32 n = min(32u, (r.hi - r.lo) / run);
    if (run == 4)
      collect_runs<4>(l, r.lo, w, items, fn, n, flags, count, scratch);
    else
      collect_runs<1>(l, r.lo, w, items, fn, n, flags, count, scratch);
  }
}
#else
// Sums NV vectors from element i on. Vectors by hand: compilers find none where a loop runs over
// sources.
template <int NV>
VP u32 sum_vectors(float *dst, const float *base, const Sources &src, u32 i, u32 end, float scale,
                   u32 flags) {
  for (; i + NV * VW <= end; i += NV * VW) {
    V s[NV];
    for (int v = 0; v < NV; v++)
      s[v] = (V){};
    for (u32 k = 0; k < src.count; k++) {
      const float *a = base + src(k) + i;
      for (int v = 0; v < NV; v++)
        s[v] += load(a + v * VW);
    }
    for (int v = 0; v < NV; v++) {
      float *to = dst + i + v * VW;
      V x = s[v] * scale;
      store(to, canonical(flags & FLAG_ACC ? load(to) + x : x));
    }
  }
  return i;
}

// Sums the elements of a range in the order of the sources.
VP void sum_range(float *dst, const float *base, const Sources &src, Range r, float scale,
                  u32 flags) {
  u32 i = sum_vectors<8>(dst, base, src, r.lo, r.hi, scale, flags);
  i = sum_vectors<1>(dst, base, src, i, r.hi, scale, flags);
  for (; i < r.hi; i++) {
    float s = 0.0f;
    for (u32 k = 0; k < src.count; k++)
      s += base[src(k) + i];
    put(dst + i, scale * s, flags);
  }
}

VP void sum(const Launch &l, const Processor &p, const u32 *w, u32 flags, u32 items,
            float * /*scratch*/) {
  sum_range(address(l, w[SUM_SEGMENTS], 0, w[SUM_DST]), address(l, w[SUM_SEGMENTS], 1, 0),
            Sources(w, items), owned(w[SUM_N], flags, p), FLOAT_OF(w[SUM_SCALE]), flags);
}

static void collect(const Launch &l, const Processor &p, const u32 *w, const u32 *items, u32 fn,
                    u32 flags, u32 count, float * /*scratch*/) {
  const u32 runs = fn & ~(u32)COLLECT_DERIVED, words = collect_words(fn);
  Range r = owned(w[COLLECT_N], flags, p);
  for (u32 k = 0; k < count; k++, items += words) {
    const u32 have = runs_of(items + 1, runs);
    const Sources src(items + 1, have, have, w[COLLECT_COUNT], w[COLLECT_APART]);
    float *dst = address(l, w[COLLECT_SEGMENTS], 0, items[0]);
    const float *base = address(l, w[COLLECT_SEGMENTS], 1, 0);
    if (words == runs + 1) {
      sum_range(dst, base, src, r, FLOAT_OF(w[COLLECT_SCALE]), flags);
      continue;
    }
    const float *y = address(l, w[COLLECT_SEGMENTS], 2, items[1 + runs]);
    for (u32 i = r.lo; i < r.hi; i++) {
      float s = 0.0f;
      for (u32 j = 0; j < src.count; j++)
        s += base[src(j) + i];
      put(dst + i, apply_behind(w[COLLECT_FUNCTION], FLOAT_OF(w[COLLECT_SCALE]) * s, y[i]), flags);
    }
  }
}
#endif
