// Gemm on the GPU: a product of any two operands by strides, for what is not a resident matrix
// (attention, convolution, a parameter that changed under a graph), and for a matrix that is
// multiplied by many columns. The CPU has its own (gemm_cpu.h).
#pragma once

// A result's products of terms first, first + step, ...
VP float thin_sum(const float *a, u32 a_step, const float *b, u32 b_step, u32 first, u32 step,
                  u32 depth) {
  enum : u32 { LOADS = 8 }; // of a thread on their way
  float s = 0.0f;
#pragma unroll 1
  for (u32 t = first; t < depth; t += LOADS * step) {
    float x[LOADS], y[LOADS];
#pragma unroll
    for (u32 j = 0; j < LOADS; j++) {
      const u32 k = t + j * step;
      x[j] = k < depth ? a[k * a_step] : 0.0f;
      y[j] = k < depth ? b[k * b_step] : 0.0f;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS; j++)
      s = FMA(x[j], y[j], s);
  }
  return s;
}

// Products of few rows or columns: a group of threads forms each result, whose sums meet in shared
// memory. Threads side by side read neighbours, which are terms or results. Items that are added to
// what is there come one after the other: they may be added to the same.
VP void gemm_thin(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared) {
  const u32 m = w[GEMM_M], n = w[GEMM_N], depth = w[GEMM_K],
            together = flags & FLAG_ACC ? 1 : count;
  const u32 results = m * n * together;
  const bool terms = (n <= m ? w[GEMM_A_COL] : w[GEMM_B_ROW]) == 1;
  u32 group = 1;
  while (group < 32 && 4 * group <= depth &&
         (2 * group * results <= THREADS || (terms && group < 8)))
    group *= 2;
  const u32 side = THREADS / group; // so many results at a time
  const u32 mine = terms ? THREAD / group : THREAD % side,
            lane = terms ? THREAD % group : THREAD / side;
  const u32 *items = w + GEMM_ITEMS;
#pragma unroll 1
  for (; count > 0; count -= together, items += 3 * together)
#pragma unroll 1
    for (u32 first = 0; first < results; first += side) {
      const u32 r = first + mine, i = r % m, j = r / m % n, *item = items + 3 * (r / (m * n));
      float s = 0.0f;
      if (r < results)
        s = thin_sum(address(l, w[GEMM_SEGMENTS], 1, item[1]) + i * w[GEMM_A_ROW], w[GEMM_A_COL],
                     address(l, w[GEMM_SEGMENTS], 2, item[2]) + j * w[GEMM_B_COL], w[GEMM_B_ROW],
                     lane, group, depth);
      if (group > 1) {
        MEET(); // the memory is free
        shared[lane * side + mine] = s;
        MEET();
        for (u32 k = 1; lane == 0 && k < group; k++)
          s += shared[k * side + mine];
      }
      if (lane > 0 || r >= results)
        continue;
      s *= FLOAT_OF(w[GEMM_SCALE]);
      if (flags & FLAG_BIAS)
        s += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[i];
      put(address(l, w[GEMM_SEGMENTS], 0, item[0]) + i * w[GEMM_C_ROW] + j * w[GEMM_C_COL], s,
          flags);
    }
}

// A product in blocks, where these can be formed, or in tiles.
VP void gemm_wide(const Launch &l, const u32 *w, float *shared, float *scratch) {
  if (forms_blocks(l, w))
    return gemm_blocks(l, w, *(BlockMemory *)shared, (BlockLane *)scratch);
  gemm_tiles(l, w, *(GemmMemory *)shared);
}

// Results of few rows or columns would fill little of a tile. Few short sums are over before stages
// are here.
VP_SLOW void gemm(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared,
                  float *scratch) {
  const u32 m = w[GEMM_M], n = w[GEMM_N];
  if (m >= 8 && n >= 8 && (m * n > THREADS || w[GEMM_K] > GEMM_TILE))
    return gemm_wide(l, w, shared, scratch);
  gemm_thin(l, w, flags, count, shared);
}
