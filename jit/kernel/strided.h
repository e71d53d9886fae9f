// Strided: an element function of operands with any strides, with or without a sum over some axes.
// This is the GPU's; strided_cpu.h has the CPU's.
#pragma once

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
    u32 c = i;
    if (a + 1 < to) { // a division takes as long as everything else
      i /= x.sizes[a];
      c -= i * x.sizes[a];
    }
    UNROLL
    for (u32 s = 0; s < 5; s++)
      if (s < x.slots)
        at[s] += c * x.strides[s * x.all + a];
  }
}

VP u32 product_of(const u32 *sizes, u32 n) {
  u32 r = 1;
  for (u32 i = 0; i < n; i++)
    r *= sizes[i];
  return r;
}

// Whether neighbouring outputs have neighbouring terms, or the same.
VP bool has_neighbours(const Axes &x) {
  bool yes = x.kept > 0 && x.sizes[0] >= 16 && x.strides[0] == 1;
  for (u32 s = 1; s < x.slots; s++)
    yes = yes && x.strides[s * x.all] <= 1;
  return yes;
}

// Whether sums of so many terms have LONG_LANES lanes.
VP bool are_long(const Axes &x, u32 terms) { return terms >= LONG_ROW && !has_neighbours(x); }

// A reduction sums LANES interleaved partial sums, then those pairwise: the same order on
// both devices, whose natural widths differ.
#define LANES 32u

#ifdef VPPS_GPU
// Functions of Strided have at most three inputs.
template <bool SELDOM_ONES>
VP float strided_value(const u32 *w, u32 fn, float a, float b, float c) {
  const float p = FLOAT_OF(w[STRIDED_P]), q = FLOAT_OF(w[STRIDED_Q]);
  return SELDOM_ONES ? apply_seldom(fn, a, b, c, 0.0f, p, q)
                     : apply_called(fn, a, b, c, 0.0f, p, q);
}

template <bool SELDOM_ONES>
VP float strided_term(const Launch &l, const u32 *w, u32 fn, const u32 *at, u32 in) {
  float v[3] = {0.0f, 0.0f, 0.0f};
  UNROLL
  for (u32 s = 0; s < 3; s++)
    if (s < in)
      v[s] = *address(l, w[STRIDED_SEGMENTS], s + 1, at[s + 1]);
  return strided_value<SELDOM_ONES>(w, fn, v[0], v[1], v[2]);
}

VP float warp_sum(float v) {
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
  return v;
}

// Long sums, one after the other, of all threads.
template <bool SELDOM_ONES>
VP_SLOW void strided_long(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count,
                          float *scratch) {
  const Axes x = axes_of(w, fn);
  const Team team = {THREAD, THREADS, scratch};
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 k = 0; k < outputs * count; k++) {
    u32 at[5];
#pragma unroll
    for (u32 s = 0; s < 5; s++)
      at[s] = s < x.slots ? x.items[k / outputs * x.slots + s] : 0;
    locate(x, 0, x.kept, k % outputs, at);
    float sum = 0.0f;
#pragma unroll 1
    for (u32 t = THREAD; t < terms; t += 4 * THREADS) {
      float v[4][3];
#pragma unroll
      for (u32 j = 0; j < 4; j++) { // what is behind the last term is read again, and left out
        u32 here[5];
#pragma unroll
        for (u32 s = 0; s < 5; s++)
          here[s] = at[s];
        locate(x, x.kept, x.all, min(t + j * THREADS, terms - 1), here);
#pragma unroll
        for (u32 s = 0; s < 3; s++)
          v[j][s] = s + 1 < x.slots ? *address(l, w[STRIDED_SEGMENTS], s + 1, here[s + 1]) : 0.0f;
      }
#pragma unroll
      for (u32 j = 0; j < 4; j++)
        if (t + j * THREADS < terms)
          sum += strided_value<SELDOM_ONES>(w, fn, v[j][0], v[j][1], v[j][2]);
    }
    sum = over_team(team, sum, Plus());
    if (THREAD == 0)
      put(address(l, w[STRIDED_SEGMENTS], 0, at[0]), sum, flags);
  }
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
  const bool across = terms > 1 && has_neighbours(x);
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
  const Axes x = axes_of(w, fn);
  const bool seldom = found<SELDOM>(fn);
  if (are_long(x, product_of(x.sizes + x.kept, x.reduced)))
    return seldom ? strided_long<true>(l, w, fn, flags, count, scratch)
                  : strided_long<false>(l, w, fn, flags, count, scratch);
  if (seldom)
    return strided_seldom(l, w, fn, flags, count);
  strided_often(l, w, fn, flags, count, scratch);
}
#endif
