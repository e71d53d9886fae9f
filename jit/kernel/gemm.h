// Gemm on the GPU: a product of any two operands by strides, for what is not a resident matrix
// (attention, convolution, a parameter that changed under a graph), and for a matrix that is
// multiplied by many columns. The CPU has its own (gemm_cpu.h).
#pragma once

// One thread a result.
VP_SLOW void gemm_thin(const Launch &l, const u32 *w, u32 flags, u32 count) {
  u32 m = w[GEMM_M], n = w[GEMM_N], depth = w[GEMM_K];
  float scale = FLOAT_OF(w[GEMM_SCALE]);
  for (u32 e = 0; e < count; e++) {
    const u32 *item = w + GEMM_ITEMS + 3 * e;
    float *c = address(l, w[GEMM_SEGMENTS], 0, item[0]);
    const float *a = address(l, w[GEMM_SEGMENTS], 1, item[1]);
    const float *b = address(l, w[GEMM_SEGMENTS], 2, item[2]);
    for (u32 k = THREAD; k < m * n; k += THREADS) {
      u32 i = k % m, j = k / m;
      const float *ai = a + i * w[GEMM_A_ROW], *bj = b + j * w[GEMM_B_COL];
      float s = 0.0f;
#pragma unroll 4
      for (u32 t = 0; t < depth; t++)
        s = FMA(ai[t * w[GEMM_A_COL]], bj[t * w[GEMM_B_ROW]], s);
      s *= scale;
      if (flags & FLAG_BIAS)
        s += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[i];
      put(c + i * w[GEMM_C_ROW] + j * w[GEMM_C_COL], s, flags);
    }
  }
}

// A product in blocks, where these can be formed, or in tiles.
VP_SLOW void gemm_wide(const Launch &l, const u32 *w, float *shared) {
  if (forms_blocks(l, w))
    return gemm_blocks(l, w, *(BlockMemory *)shared);
  gemm_tiles(l, w, *(GemmMemory *)shared);
}

// Results of few rows or columns would fill little of a tile, and long sums of few results few
// threads. Few short sums are over before stages are here.
VP void gemm(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared) {
  const u32 m = w[GEMM_M], n = w[GEMM_N];
  const bool tiny = m * n <= THREADS && w[GEMM_K] <= GEMM_TILE;
  if ((m >= 8 && n >= 8 && !tiny) || (m * n < THREADS / 2 && w[GEMM_K] > GEMM_TILE))
    return gemm_wide(l, w, shared);
  gemm_thin(l, w, flags, count);
}
