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
// The operands of a term whose places are at[1] on.
VP void operands_of(const Launch &l, const u32 *w, const Axes &x, const u32 *at, float *v) {
  UNROLL
  for (u32 s = 0; s < 3; s++)
    v[s] = s + 1 < x.slots ? *address(l, w[STRIDED_SEGMENTS], s + 1, at[s + 1]) : 0.0f;
}

// RUNS terms t, t + step and so on of a sum whose places are counted from at. Those that are not
// there are -0, which changes no sum.
VP void terms_of(const Launch &l, const u32 *w, u32 fn, const Axes &x, const u32 *at, u32 t,
                 u32 step, u32 terms, float *value) {
  float v[RUNS][3]; // functions of Strided have at most three inputs
  if (x.reduced == 1) {
    const u32 *strides = x.strides + x.kept;
    UNROLL
    for (u32 s = 0; s < 3; s++) {
      const bool there = s + 1 < x.slots;
      const float *from = address(l, w[STRIDED_SEGMENTS], there ? s + 1 : 0, 0);
      const u32 stride = there ? strides[(s + 1) * x.all] : 0;
      UNROLL
      for (u32 j = 0; j < RUNS; j++)
        v[j][s] = there ? from[at[s + 1] + min(t + j * step, terms - 1) * stride] : 0.0f;
    }
  } else {
    UNROLL
    for (u32 j = 0; j < RUNS; j++) {
      u32 here[5];
      UNROLL
      for (u32 s = 0; s < 5; s++)
        here[s] = at[s];
      locate(x, x.kept, x.all, min(t + j * step, terms - 1), here);
      operands_of(l, w, x, here, v[j]);
    }
  }
  apply_run<RUNS>(fn, v, FLOAT_OF(w[STRIDED_P]), FLOAT_OF(w[STRIDED_Q]));
  UNROLL
  for (u32 j = 0; j < RUNS; j++)
    value[j] = t + j * step < terms ? v[j][0] : -0.0f;
}

// The sum of the terms t, t + step and so on.
VP float strided_sum(const Launch &l, const u32 *w, u32 fn, const Axes &x, const u32 *at, u32 t,
                     u32 step, u32 terms) {
  float sum = 0.0f;
#pragma unroll 1
  for (; t < terms; t += RUNS * step) {
    float v[RUNS];
    terms_of(l, w, fn, x, at, t, step, terms, v);
    UNROLL
    for (u32 j = 0; j < RUNS; j++)
      sum += v[j];
  }
  return sum;
}

// The places of an output: of which of the items it is.
VP void places_of(const Axes &x, u32 outputs, u32 output, u32 *at) {
  const u32 item = output < outputs ? 0 : output / outputs;
  UNROLL
  for (u32 s = 0; s < 5; s++)
    at[s] = s < x.slots ? x.items[item * x.slots + s] : 0;
  locate(x, 0, x.kept, output - item * outputs, at);
}

VP float warp_sum(float v) {
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
  return v;
}

// Long sums, one after the other, of all threads.
VP_SLOW void strided_long(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count,
                          float *scratch) {
  const Axes x = axes_of(w, fn);
  const Team team = {THREAD, THREADS, scratch};
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 k = 0; k < outputs * count; k++) {
    u32 at[5];
    places_of(x, outputs, k, at);
    const float sum = over_team(team, strided_sum(l, w, fn, x, at, THREAD, THREADS, terms), Plus());
    if (THREAD == 0)
      put(address(l, w[STRIDED_SEGMENTS], 0, at[0]), sum, flags);
  }
}

// N outputs of a thread, from k on.
template <u32 N>
VP void put_outputs(const Launch &l, const u32 *w, u32 fn, u32 flags, const Axes &x, u32 outputs,
                    u32 k) {
  float v[N][3], old[N], *to[N];
  UNROLL
  for (u32 j = 0; j < N; j++) {
    u32 at[5];
    places_of(x, outputs, k + j * THREADS, at);
    operands_of(l, w, x, at, v[j]);
    to[j] = address(l, w[STRIDED_SEGMENTS], 0, at[0]);
    old[j] = flags & FLAG_ACC ? *to[j] : 0.0f;
  }
  apply_run<N>(fn, v, FLOAT_OF(w[STRIDED_P]), FLOAT_OF(w[STRIDED_Q]));
  UNROLL
  for (u32 j = 0; j < N; j++)
    put(to[j], flags & FLAG_ACC ? old[j] + v[j][0] : v[j][0], flags & ~(u32)FLAG_ACC);
}

// Without a sum a thread has an output.
VP_SLOW void strided_each(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), end = outputs * count;
  u32 k = THREAD;
#pragma unroll 1
  for (; k + (RUNS - 1) * THREADS < end; k += RUNS * THREADS)
    put_outputs<RUNS>(l, w, fn, flags, x, outputs, k);
#pragma unroll 1
  for (; k < end; k += THREADS)
    put_outputs<1>(l, w, fn, flags, x, outputs, k);
}

// Without a sum, and with a long first axis, a warp has a run along that: its place is found once.
template <u32 N>
VP_SLOW void strided_runs(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const Axes x = axes_of(w, fn);
  const u32 runs = (x.sizes[0] + 32 * N - 1) / (32 * N), rows = product_of(x.sizes + 1, x.kept - 1);
  Run r = {fn, flags, x.slots - 1, x.sizes[0] - 1, FLOAT_OF(w[STRIDED_P]), FLOAT_OF(w[STRIDED_Q]),
           0,  {},    {}};
  UNROLL
  for (u32 s = 0; s < 4; s++)
    r.step[s] = s < x.slots ? 4 * x.strides[s * x.all] : 0;
  // The warp's run of a row of an item, and how far the next one is, without a division in the
  // loop.
  u32 row = THREAD / 32 / runs, run = THREAD / 32 - row * runs, item = 0;
  const u32 more_rows = WARPS / runs, more_runs = WARPS - more_rows * runs;
#pragma unroll 1
  for (;;) {
    for (; row >= rows && item < count; item++)
      row -= rows;
    if (item >= count)
      return;
    u32 at[5];
    UNROLL
    for (u32 s = 0; s < 5; s++)
      at[s] = s < x.slots ? x.items[item * x.slots + s] : 0;
    locate(x, 1, x.kept, row, at);
    r.to = address(l, w[STRIDED_SEGMENTS], 0, at[0]);
    UNROLL
    for (u32 s = 0; s < 3; s++)
      r.from[s] = s < r.in ? address(l, w[STRIDED_SEGMENTS], s + 1, at[s + 1]) : r.to;
    r.put_some<N>(32 * N * run + THREAD % 32);
    row += more_rows;
    run += more_runs;
    if (run >= runs) {
      run -= runs;
      row++;
    }
  }
}

// The least length of a first axis that has runs: a shorter one would leave lanes idle.
#define LONG_AXIS 33

VP void strided_without_sum(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 kept = w[STRIDED_AXES] & 255u, *sizes = w + STRIDED_ITEMS;
  if (kept == 0 || sizes[0] < LONG_AXIS)
    return strided_each(l, w, fn, flags, count);
  const u32 warps = (sizes[0] + 31) / 32 * product_of(sizes + 1, kept - 1) * count;
  if (warps <= WARPS)
    return strided_runs<1>(l, w, fn, flags, count);
  strided_runs<RUNS>(l, w, fn, flags, count);
}

// Few sums, one after the other: all threads have terms, and a warp adds them up in the order of
// strided_sums.
VP_SLOW void strided_few(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count,
                         float *scratch) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 k = 0; k < outputs * count; k++) {
    u32 at[5];
    places_of(x, outputs, k, at);
    float sum = 0.0f;
#pragma unroll 1
    for (u32 t = 0; t < terms; t += RUNS * THREADS) {
      float v[RUNS];
      terms_of(l, w, fn, x, at, t + THREAD, THREADS, terms, v);
      __syncthreads(); // scratch is free
      UNROLL
      for (u32 j = 0; j < RUNS; j++)
        scratch[j * THREADS + THREAD] = v[j];
      __syncthreads();
      if (THREAD < 32)
#pragma unroll 8
        for (u32 i = THREAD; i < min(RUNS * THREADS, terms - t); i += 32)
          sum += scratch[i];
    }
    if (THREAD >= 32)
      continue;
    sum = warp_sum(sum);
    if (THREAD == 0)
      put(address(l, w[STRIDED_SEGMENTS], 0, at[0]), sum, flags);
  }
}

// Whether few sums take less time one after the other than by a warp each.
VP bool are_few(u32 sums, u32 terms) {
  const u32 together = sums * ((terms + RUNS * THREADS - 1) / (RUNS * THREADS));
  const u32 apart = (sums + WARPS - 1) / WARPS * ((terms + 127) / 128);
  return 4 * together < 3 * apart;
}

// A warp has a sum.
VP_SLOW void strided_sums(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 k = THREAD / 32; k < outputs * count; k += WARPS) {
    u32 at[5];
    places_of(x, outputs, k, at);
    const float sum = warp_sum(strided_sum(l, w, fn, x, at, THREAD % 32, 32, terms));
    if (THREAD % 32 == 0)
      put(address(l, w[STRIDED_SEGMENTS], 0, at[0]), sum, flags);
  }
}

// If neighbouring outputs have neighbouring terms, a lane has an output and a warp every eighth
// term, so that loads of a warp are of one run. A sum has the same order either way.
VP_SLOW void strided_sums_across(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count,
                                 float *scratch) {
  const Axes x = axes_of(w, fn);
  const u32 outputs = product_of(x.sizes, x.kept), terms = product_of(x.sizes + x.kept, x.reduced);
#pragma unroll 1
  for (u32 first = 0; first < outputs * count; first += 32) {
    const u32 k = first + THREAD % 32;
    u32 at[5];
    places_of(x, outputs, min(k, outputs * count - 1), at);
    float part[4] = {}; // every 32nd term
#pragma unroll 1
    for (u32 t = THREAD / 32; t < terms; t += 32) {
      float v[RUNS];
      static_assert(RUNS == 4, "the parts of a warp");
      terms_of(l, w, fn, x, at, t, 8, terms, v);
      UNROLL
      for (u32 j = 0; j < RUNS; j++)
        part[j] += v[j];
    }
    __syncthreads(); // scratch is free
    scratch[THREAD] = (part[0] + part[2]) + (part[1] + part[3]);
    __syncthreads();
    if (THREAD < 32 && k < outputs * count) {
      const float *v = scratch + THREAD;
      put(address(l, w[STRIDED_SEGMENTS], 0, at[0]),
          ((v[0] + v[128]) + (v[64] + v[192])) + ((v[32] + v[160]) + (v[96] + v[224])), flags);
    }
  }
}

VP void strided(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float *scratch) {
  const Axes x = axes_of(w, fn);
  const u32 terms = product_of(x.sizes + x.kept, x.reduced);
  if (are_long(x, terms))
    return strided_long(l, w, fn, flags, count, scratch);
  if (terms == 1)
    return strided_without_sum(l, w, fn, flags, count);
  if (has_neighbours(x))
    return strided_sums_across(l, w, fn, flags, count, scratch);
  if (are_few(product_of(x.sizes, x.kept) * count, terms))
    return strided_few(l, w, fn, flags, count, scratch);
  strided_sums(l, w, fn, flags, count);
}
#endif
