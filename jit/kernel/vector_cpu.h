// Vectors of VW floats, as wide as the CPU's registers.
#pragma once

// The next loop, over sums that have to stay in registers, leaves no loop.
#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 32")
#endif

// For functions whose sums stay in registers: inlined, they would compete with those of the caller.
#define OUT_OF_LINE static __attribute__((noinline))

typedef float V __attribute__((vector_size(VW * 4)));
typedef float VLoad __attribute__((vector_size(VW * 4), aligned(4), may_alias));
VP V load(const float *p) { return *(const VLoad *)p; }
VP void store(float *p, V v) { *(VLoad *)p = v; }

// The first n lanes alone, or all if n is more than these; the others are 0.
#if VW == 16
VP __mmask16 first_lanes(u32 n) { return (__mmask16)(n < VW ? (1u << n) - 1 : 0xFFFFu); }
VP V load_some(const float *p, u32 n) { return (V)_mm512_maskz_loadu_ps(first_lanes(n), p); }
VP void store_some(float *p, V v, u32 n) { _mm512_mask_storeu_ps(p, first_lanes(n), (__m512)v); }
#else
VP V load_some(const float *p, u32 n) {
  if (n >= VW)
    return load(p);
#if VW == 8
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (V)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
#else
  V v = {};
  for (u32 i = 0; i < n; i++)
    v[i] = p[i];
  return v;
#endif
}
VP void store_some(float *p, V v, u32 n) { // some processors take 20 steps for AVX2's masked store
  if (n >= VW)
    return store(p, v);
  for (u32 i = 0; i < n; i++)
    p[i] = v[i];
}
#endif

VP V splat(float x) { return x - (V){}; } // unlike +, exact for -0, so no subtraction is left

VP V canonical(V v) { return v == v ? v : splat(FLOAT_OF(0x7FC00000u)); }

// The same function of each lane.
template <class F> VP V of_lanes(V v, const F &f) {
  float x[VW];
  store(x, v);
  for (u32 i = 0; i < VW; i++)
    x[i] = f(x[i]);
  return load(x);
}
VP V vp_exp(V v) {
  return of_lanes(v, [](float x) { return vp_exp(x); });
}
VP V vp_log(V v) {
  return of_lanes(v, [](float x) { return vp_log(x); });
}

// Puts NV vectors of sums to memory, or adds them to it; of the last one the first lanes.
template <int NV> VP void store_sums(float *to, const V *sum, u32 last, bool add) {
  UNROLLED
  for (int v = 0; v < NV; v++, to += VW) {
    const u32 lanes = v < NV - 1 ? VW : last;
    store_some(to, canonical(add ? sum[v] + load_some(to, lanes) : sum[v]), lanes);
  }
}

VP void copy_floats(float *to, const float *from, u32 n) {
  u32 i = 0;
  for (; i + VW <= n; i += VW)
    store(to + i, load(from + i));
  if (i < n)
    store_some(to + i, load_some(from + i, n - i), n - i);
}
