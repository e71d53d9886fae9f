// Vectors of VW floats, as wide as the CPU's registers.
#pragma once

typedef float V __attribute__((vector_size(VW * 4)));
typedef float VLoad __attribute__((vector_size(VW * 4), aligned(4), may_alias));
VP V load(const float *p) { return *(const VLoad *)p; }
VP void store(float *p, V v) { *(VLoad *)p = v; }
VP V splat(float x) { return x - (V){}; } // unlike +, exact for -0, so no subtraction is left

VP V canonical(V v) { return v == v ? v : splat(FLOAT_OF(0x7FC00000u)); }

VP void copy_floats(float *to, const float *from, u32 n) {
  u32 i = 0;
  for (; i + VW <= n; i += VW)
    store(to + i, load(from + i));
  for (; i < n; i++)
    to[i] = from[i];
}
