// Fill, Map and Strided: everything that works element by element. The GPU gives each thread
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

// What there may be behind the sums of Product, Affine and Collect, inline: a function of a sum, or
// a derivative of it and y.
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

// The same out of line, for what there is a copy of for every matrix.
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
template <int FN>
VP_SLOW void apply_one_to_rows(float *y, u32 rows, const u32 *items, u32 words, u32 count) {
  for (u32 e = 0; e < count; e++) {
    float *at = y + items[words * e];
    for (u32 r = 0; r < rows; r++)
      at[r] = canonical(Formula<FN>::of(at[r], 0.0f, 0.0f, 0.0f, 0.0f, 0.0f));
  }
}

// The function behind sums, of what items have in some rows.
VP void apply_to_rows(u32 fn, float *y, u32 rows, const u32 *items, u32 words, u32 count) {
  if (fn == FN_TANH)
    apply_one_to_rows<FN_TANH>(y, rows, items, words, count);
  if (fn == FN_LOGISTIC)
    apply_one_to_rows<FN_LOGISTIC>(y, rows, items, words, count);
  if (fn == FN_RELU)
    apply_one_to_rows<FN_RELU>(y, rows, items, words, count);
}
#endif

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

#ifdef VPPS_PARTS
// Copies of long vectors, as a library's operands are: a warp has an item at a time, of which 2 KB
// are on their way.
enum : u32 { LONG_COPY = 256 };
VP_SLOW void copy_vectors(const Launch &l, const u32 *w, u32 count) {
  constexpr u32 EACH = 4, TURN = 32 * 4 * EACH;
  const u32 n = w[MAP_N], lane = THREAD % 32;
  for (u32 e = THREAD / 32; e < count; e += WARPS) {
    const u32 *item = w + MAP_ITEMS + 2 * e;
    float *to = address(l, w[MAP_SEGMENTS], 0, item[0]);
    const float *from = address(l, w[MAP_SEGMENTS], 1, item[1]);
    u32 done = ((u64)to | (u64)from) % 16 == 0 ? n / TURN * TURN : 0;
#pragma unroll 1
    for (u32 k = 4 * lane; k < done; k += TURN) {
      float v[4 * EACH];
#pragma unroll
      for (u32 j = 0; j < EACH; j++)
        read_run<4>(v + 4 * j, from + k + 128 * j);
#pragma unroll
      for (u32 j = 0; j < 4 * EACH; j++)
        v[j] = canonical(v[j]);
#pragma unroll
      for (u32 j = 0; j < EACH; j++)
        write_run<4>(to + k + 128 * j, v + 4 * j);
    }
#pragma unroll 4
    for (u32 k = done + lane; k < n; k += 32)
      to[k] = canonical(from[k]);
  }
}
#endif

// The functions found seldom take many registers, so that their loop may have few.
VP_SLOW void map_seldom(const Launch &l, const Processor &p, const u32 *w, u32 fn, u32 flags,
                        u32 count) {
  const Range r = owned(w[MAP_N], flags, p);
  const u32 n = r.hi - r.lo, in = arity(fn), segments = w[MAP_SEGMENTS];
#pragma unroll 1
  for (u32 k = THREAD; k < n * count; k += THREADS) {
    const u32 *item = w + MAP_ITEMS + k / n * (in + 1);
    const u32 i = r.lo + k % n;
    float v[3] = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (u32 s = 0; s < 3; s++)
      if (s < in)
        v[s] = *address(l, segments, s + 1, item[s + 1] + i);
    put(address(l, segments, 0, item[0] + i),
        apply_seldom(fn, v[0], v[1], v[2], 0.0f, FLOAT_OF(w[MAP_P]), FLOAT_OF(w[MAP_Q])), flags);
  }
}

VP void map(const Launch &l, const Processor &p, const u32 *w, u32 fn, u32 flags, u32 count) {
  if (found<SELDOM>(fn))
    return map_seldom(l, p, w, fn, flags, count);
#ifdef VPPS_PARTS
  if (fn == FN_COPY && w[MAP_N] >= LONG_COPY && !(flags & (FLAG_ACC | FLAG_OWN)))
    return copy_vectors(l, w, count);
#endif
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
  VP_INDEPENDENT
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
#ifdef VPPS_GPU
#pragma unroll 1 // unrolled it takes 10 more registers of the interpreter's
#endif
  for (u32 a = from; a < to; a++) {
    u32 size = x.sizes[a], c = i % size;
    i /= size;
    UNROLL
    for (u32 s = 0; s < 5; s++)
      if (s < x.slots)
        at[s] += c * x.strides[s * x.all + a];
  }
}

template <bool SELDOM_ONES>
VP float strided_term(const Launch &l, const u32 *w, u32 fn, const u32 *at, u32 in) {
  float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  UNROLL
  for (u32 s = 0; s < 4; s++)
    if (s < in)
      v[s] = *address(l, w[STRIDED_SEGMENTS], s + 1, at[s + 1]);
  const float p = FLOAT_OF(w[STRIDED_P]), q = FLOAT_OF(w[STRIDED_Q]);
  return SELDOM_ONES ? apply_seldom(fn, v[0], v[1], v[2], v[3], p, q)
                     : apply_called(fn, v[0], v[1], v[2], v[3], p, q);
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

// Without a reduction a thread has an output, with one a warp.
VP_SLOW void strided_seldom(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 k = terms == 1 ? THREAD : THREAD / 32; k < outputs * count;
       k += terms == 1 ? THREADS : WARPS) {
    float sum = terms == 1 ? -0.0f : 0.0f;
#pragma unroll 1
    for (u32 t = terms == 1 ? 0 : THREAD % 32; t < terms; t += 32) {
      u32 at[5];
#pragma unroll
      for (u32 s = 0; s < 5; s++)
        at[s] = s < x.slots ? x.items[k / outputs * x.slots + s] : 0;
      locate(x, 0, x.kept, k % outputs, at);
      locate(x, x.kept, x.all, t, at);
      sum += strided_term<true>(l, w, fn, at, x.slots - 1);
    }
    if (terms > 1)
      sum = warp_sum(sum);
    u32 to[5] = {x.items[k / outputs * x.slots], 0, 0, 0, 0};
    locate(x, 0, x.kept, k % outputs, to);
    if (terms == 1 || THREAD % 32 == 0)
      put(address(l, w[STRIDED_SEGMENTS], 0, to[0]), sum, flags);
  }
}

// The same for all other functions. If neighbouring outputs have neighbouring terms, a lane has an
// output and a warp every eighth term, so that loads of a warp are of one run. A sum has the same
// order either way.
VP_SLOW void strided_often(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count,
                           float *scratch) {
  Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
  bool across = terms > 1 && x.kept > 0 && x.sizes[0] >= 16 && x.strides[0] == 1;
  for (u32 s = 1; s < x.slots; s++)
    across = across && x.strides[s * x.all] <= 1;
  const u32 step = terms == 1 ? THREADS : across ? 32 : WARPS;
  const u32 end = across ? (outputs * count + 31) / 32 * 32 : outputs * count;
#pragma unroll 1
  for (u32 k = terms == 1 ? THREAD : across ? THREAD % 32 : THREAD / 32; k < end; k += step) {
    const u32 output = min(k, outputs * count - 1), item = output / outputs;
    u32 at[5];
#pragma unroll
    for (u32 s = 0; s < 5; s++)
      at[s] = s < x.slots ? x.items[item * x.slots + s] : 0;
    locate(x, 0, x.kept, output - item * outputs, at);
    float *dst = address(l, w[STRIDED_SEGMENTS], 0, at[0]);
    if (terms == 1) {
      put(dst, strided_term<false>(l, w, fn, at, x.slots - 1), flags);
      continue;
    }
    float all = 0.0f, half = 0.0f; // of the terms from j on, and of those and the last before
#pragma unroll 1
    for (u32 j = 0; j < (across ? 32 : 8); j += 8) {
      float sum = 0.0f;
      u32 t = across ? THREAD / 32 + ((j & 8) << 1 | (j & 16) >> 1) : THREAD % 32; // 0, 16, 8, 24
#pragma unroll 1
      for (; t < terms; t += 32) {
        u32 here[5];
#pragma unroll
        for (u32 s = 0; s < 5; s++)
          here[s] = at[s];
        locate(x, x.kept, x.all, t, here);
        sum += strided_term<false>(l, w, fn, here, x.slots - 1);
      }
      half = j & 8 ? half + sum : sum;
      if (j == 8)
        all = half;
    }
    all += half;
    if (!across) {
      all = warp_sum(all);
      if (THREAD % 32 == 0)
        put(dst, all, flags);
      continue;
    }
    __syncthreads(); // scratch is free
    scratch[THREAD] = all;
    __syncthreads();
    if (THREAD < 32 && k == output) {
      const float *v = scratch + THREAD;
      put(dst, ((v[0] + v[128]) + (v[64] + v[192])) + ((v[32] + v[160]) + (v[96] + v[224])), flags);
    }
  }
}

VP void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *scratch) {
  if (found<SELDOM>(fn))
    return strided_seldom(l, w, fn, flags, count);
  strided_often(l, w, fn, flags, count, scratch);
}
#else
VP float lane_sum(float *v, u32 lanes = LANES) {
  for (u32 d = lanes / 2; d > 0; d /= 2)
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

// The same where the reduced elements lie at constant strides, ALONG: of 1.
template <int FN, int ARITY, bool ALONG>
VP float strided_sum1(const Axes &x, const float *const *base, const u32 *at, u32 terms, float p,
                      float q) {
  float lanes[LANES] = {};
  const float *in[4] = {0, 0, 0, 0};
  u32 step[4] = {0, 0, 0, 0};
  for (int s = 0; s < ARITY; s++) {
    in[s] = base[s + 1] + at[s + 1];
    step[s] = ALONG ? 1 : x.strides[(s + 1) * x.all + x.kept];
  }
  u32 from = 0;
  for (; from + LANES <= terms; from += LANES)
    for (u32 j = 0; j < LANES; j++) {
      const u32 t = from + j;
      lanes[j] += Formula<FN>::of(in[0][t * step[0]], ARITY > 1 ? in[1][t * step[1]] : 0.0f,
                                  ARITY > 2 ? in[2][t * step[2]] : 0.0f,
                                  ARITY > 3 ? in[3][t * step[3]] : 0.0f, p, q);
    }
  for (u32 t = from; t < terms; t++)
    lanes[t - from] += Formula<FN>::of(in[0][t * step[0]], ARITY > 1 ? in[1][t * step[1]] : 0.0f,
                                       ARITY > 2 ? in[2][t * step[2]] : 0.0f,
                                       ARITY > 3 ? in[3][t * step[3]] : 0.0f, p, q);
  return lane_sum(lanes);
}

// Neighbouring outputs that compilers make vectors of.
enum : u32 { STRIDED_RUN = 64 };

// Whether neighbours along the first kept axis are neighbours in memory or, but for the result,
// the same element.
VP bool runs_along(const Axes &x) {
  if (x.kept == 0 || x.sizes[0] < 4 || x.strides[0] != 1)
    return false;
  for (u32 s = 1; s < x.slots; s++)
    if (x.strides[s * x.all] > 1)
      return false;
  return true;
}

// The inputs of a run of outputs, where they are, or as often as there are outputs.
template <int ARITY> struct RunInputs {
  float same[ARITY][STRIDED_RUN];
  const float *in[4];
  VP_MEMBER void find(const Axes &x, const float *const *base, const u32 *at, u32 n) {
    for (int s = 0; s < 4; s++)
      in[s] = nullptr;
    for (int s = 0; s < ARITY; s++) {
      in[s] = base[s + 1] + at[s + 1];
      if (x.strides[(s + 1) * x.all] == 0) {
        const float v = *in[s];
        for (u32 i = 0; i < n; i++)
          same[s][i] = v;
        in[s] = same[s];
      }
    }
  }
};

// n outputs of a run without a reduction.
template <int FN, int ARITY>
VP void strided_run(const Axes &x, const float *const *base, const u32 *at, u32 n, float p, float q,
                    u32 flags) {
  RunInputs<ARITY> r;
  r.find(x, base, at, n);
  float *dst = (float *)base[0] + at[0];
  if (flags & FLAG_ACC)
    map_item<FN, ARITY, true>(dst, r.in[0], r.in[1], r.in[2], r.in[3], n, p, q);
  else
    map_item<FN, ARITY, false>(dst, r.in[0], r.in[1], r.in[2], r.in[3], n, p, q);
}

// n outputs of a run with a reduction. Each is summed in the order of strided_sum; lanes
// without terms are left out, as they add nothing.
template <int FN, int ARITY>
VP void strided_sums(const Axes &x, const float *const *base, const u32 *at, u32 n, u32 terms,
                     float p, float q, u32 flags) {
  float lanes[LANES][STRIDED_RUN];
  RunInputs<ARITY> r;
  u32 used = terms < LANES ? terms : LANES;
  for (u32 t = 0; t < terms; t++) {
    u32 here[5];
    for (u32 s = 0; s < 5; s++)
      here[s] = at[s];
    locate(x, x.kept, x.all, t, here);
    r.find(x, base, here, n);
    float *lane = lanes[t % LANES];
    if (t < LANES)
      for (u32 i = 0; i < STRIDED_RUN; i++)
        lane[i] = 0.0f;
    for (u32 i = 0; i < n; i++)
      lane[i] +=
          Formula<FN>::of(r.in[0][i], ARITY > 1 ? r.in[1][i] : 0.0f, ARITY > 2 ? r.in[2][i] : 0.0f,
                          ARITY > 3 ? r.in[3][i] : 0.0f, p, q);
  }
  for (u32 d = LANES / 2; d > 0; d /= 2)
    for (u32 k = 0; k < d && k + d < used; k++)
      for (u32 i = 0; i < STRIDED_RUN; i++)
        lanes[k][i] += lanes[k + d][i];
  float *dst = (float *)base[0] + at[0];
  for (u32 i = 0; i < n; i++)
    put(dst + i, lanes[0][i], flags);
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
  const bool runs = runs_along(x);
  bool along = x.reduced == 1;
  for (u32 s = 1; along && s < x.slots; s++)
    along = x.strides[s * x.all + x.kept] == 1;
  for (u32 item = 0; item < count; item++)
    for (u32 k = 0; k < outputs; k += inner) {
      u32 at[5] = {0, 0, 0, 0, 0}, n = 1;
      for (u32 s = 0; s < x.slots; s++)
        at[s] = x.items[item * x.slots + s];
      locate(x, 0, x.kept, k, at);
      for (u32 i = 0; i < inner; i += n) {
        float *dst = (float *)base[0] + at[0];
        if (runs) {
          n = inner - i < STRIDED_RUN ? inner - i : (u32)STRIDED_RUN;
          if (terms == 1)
            strided_run<FN, ARITY>(x, base, at, n, p, q, flags);
          else
            strided_sums<FN, ARITY>(x, base, at, n, terms, p, q, flags);
        } else if (terms == 1)
          put(dst,
              Formula<FN>::of(base[1][at[1]], ARITY > 1 ? base[2][at[2]] : 0.0f,
                              ARITY > 2 ? base[3][at[3]] : 0.0f, ARITY > 3 ? base[4][at[4]] : 0.0f,
                              p, q),
              flags);
        else if (along)
          put(dst, strided_sum1<FN, ARITY, true>(x, base, at, terms, p, q), flags);
        else if (x.reduced == 1)
          put(dst, strided_sum1<FN, ARITY, false>(x, base, at, terms, p, q), flags);
        else
          put(dst, strided_sum<FN, ARITY>(x, base, at, terms, p, q), flags);
        if (x.kept)
          for (u32 s = 0; s < x.slots; s++)
            at[s] += n * x.strides[s * x.all];
      }
    }
}

// The functions from FN_SIN on, with one loop for all: one for each would be most of the library.
VP_SLOW void strided_seldom(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
  for (u32 k = 0; k < outputs * count; k++) {
    u32 at[5] = {0, 0, 0, 0, 0};
    for (u32 s = 0; s < x.slots; s++)
      at[s] = x.items[k / outputs * x.slots + s];
    locate(x, 0, x.kept, k % outputs, at);
    float lanes[LANES] = {};
    for (u32 t = 0; t < terms; t++) {
      u32 here[5];
      for (u32 s = 0; s < 5; s++)
        here[s] = at[s];
      locate(x, x.kept, x.all, t, here);
      lanes[t % LANES] += strided_term<true>(l, w, fn, here, x.slots - 1);
    }
    put(address(l, w[STRIDED_SEGMENTS], 0, at[0]), lane_sum(lanes), flags);
  }
}
template <int FN, int ARITY, bool SELDOM> struct StridedItems {
  static void run(const Launch &l, const u32 *w, u32 flags, u32 count) {
    strided_items<FN, ARITY>(l, w, flags, count);
  }
};
template <int FN, int ARITY> struct StridedItems<FN, ARITY, true> {
  static void run(const Launch &l, const u32 *w, u32 flags, u32 count) {
    strided_seldom(l, w, FN, flags, count);
  }
};

VP void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *) {
  switch (fn) {
#define FN(NAME, ARITY)                                                                            \
  case FN_##NAME:                                                                                  \
    return StridedItems<FN_##NAME, ARITY, (FN_##NAME >= FN_SIN)>::run(l, w, flags, count);
    ELEMENT_FUNCTIONS(FN)
#undef FN
  }
}
#endif
