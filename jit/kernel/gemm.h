// Gemm on the GPU: a product of any two operands by strides, for what is not a resident matrix
// (attention, convolution, a parameter that changed under a graph). Every result is summed from
// front to back. The CPU has its own (gemm_cpu.h).
#pragma once

// A tile is so many rows and columns of a result, a stage so many terms of its sums. Two stages are
// on their way to shared memory while one is worked on, whatever tile or item they belong to.
enum : u32 { GEMM_TILE = 32 };

struct GemmPlace {
  u32 item, row, column, term; // where a stage begins
};

// Not in registers, of which there are few. gemmBytes (jit/source.go) is its size.
struct GemmMemory {
  float a[3][GEMM_TILE * GEMM_TILE], b[3][GEMM_TILE * GEMM_TILE]; // [term][row], [column][term]
  float sums[THREADS][4];                                         // while a stage is on its way
  GemmPlace places[4];
};

// Where a panel has element q of vector p: what a warp copies or reads at a time is in different
// banks.
VP u32 gemm_at(u32 p, u32 q) { return p * GEMM_TILE + (q ^ 4 * (p % 8)); }

// Starts copying the first ps times qs elements to a panel, and fills it up with zeros. A warp
// reads 32 neighbours, or 8 in each of 4 runs.
VP void copy_panel(float *panel, const float *from, u32 p_step, u32 q_step, u32 ps, u32 qs) {
  const bool across = q_step != 1 && p_step == 1;
#pragma unroll 1
  for (u32 i = 0; i < GEMM_TILE; i += WARPS) {
    const u32 p = i + (across ? THREAD % 8 : THREAD / 32);
    const u32 q = across ? THREAD / 8 : THREAD % 32;
    const bool there = p < ps && q < qs;
    copy_word_or_zero(panel + gemm_at(p, q), from + (there ? p * p_step + q * q_step : 0), there);
  }
}

// Starts copying a stage, if one is left, and finds the next.
VP void fill_stage(const Launch &l, const u32 *w, float *a, float *b, const GemmPlace &at,
                   GemmPlace &next) {
  if (at.item < w[1] >> 16) {
    const u32 *item = w + GEMM_ITEMS + 3 * at.item;
    copy_panel(a,
               address(l, w[GEMM_SEGMENTS], 1, item[1]) + at.row * w[GEMM_A_ROW] +
                   at.term * w[GEMM_A_COL],
               w[GEMM_A_COL], w[GEMM_A_ROW], w[GEMM_K] - at.term, w[GEMM_M] - at.row);
    copy_panel(b,
               address(l, w[GEMM_SEGMENTS], 2, item[2]) + at.column * w[GEMM_B_COL] +
                   at.term * w[GEMM_B_ROW],
               w[GEMM_B_COL], w[GEMM_B_ROW], w[GEMM_N] - at.column, w[GEMM_K] - at.term);
  }
  if (THREAD == 0) {
    const bool over = at.term + GEMM_TILE >= w[GEMM_K];
    const bool down = over && at.row + GEMM_TILE >= w[GEMM_M];
    const bool on = down && at.column + GEMM_TILE >= w[GEMM_N];
    next.term = over ? 0 : at.term + GEMM_TILE;
    next.row = down ? 0 : over ? at.row + GEMM_TILE : at.row;
    next.column = on ? 0 : down ? at.column + GEMM_TILE : at.column;
    next.item = at.item + on;
  }
}

// A thread's 4 rows of a column: s += a b, a sum of terms products.
VP void multiply_stage(const float *a, const float *b, u32 terms, float *s) {
#pragma unroll 1
  for (u32 k = 0; k < terms && k < GEMM_TILE; k += 4) {
    float v[4];
    read_run<4>(v, b + gemm_at(THREAD / 8, k));
#pragma unroll
    for (u32 t = 0; t < 4; t++) {
      float u[4];
      read_run<4>(u, a + gemm_at(k + t, 4 * (THREAD % 8)));
#pragma unroll
      for (int i = 0; i < 4; i++)
        s[i] = FMA(u[i], v[t], s[i]);
    }
  }
}

// The instruction's words are read each time that they are needed. That saves registers.
VP_SLOW void gemm_tiles(const Launch &l, const u32 *w, GemmMemory &memory) {
  __syncthreads(); // the memory is free
  if (THREAD == 0) {
    const GemmPlace first = {0, 0, 0, 0};
    memory.places[0] = first;
  }
#pragma unroll 1
  for (u32 t = 0;; t++) {
    wait_for_copies();
    __syncthreads(); // everybody's copies of stage t - 2 are here, and the one before is free
    fill_stage(l, w, memory.a[t % 3], memory.b[t % 3], memory.places[t % 4],
               memory.places[(t + 1) % 4]);
    commit_copies();
    if (t < 2)
      continue;
    const GemmPlace &at = memory.places[(t - 2) % 4];
    if (at.item >= w[1] >> 16)
      break;
    float s[4] = {0.0f, 0.0f, 0.0f, 0.0f}, *sums = memory.sums[THREAD];
    if (at.term > 0)
      read_run<4>(s, sums);
    multiply_stage(memory.a[(t - 2) % 3], memory.b[(t - 2) % 3], w[GEMM_K] - at.term, s);
    const u32 column = at.column + THREAD / 8;
    if (at.term + GEMM_TILE < w[GEMM_K])
      write_run<4>(sums, s);
    if (at.term + GEMM_TILE < w[GEMM_K] || column >= w[GEMM_N])
      continue;
    float *c =
        address(l, w[GEMM_SEGMENTS], 0, w[GEMM_ITEMS + 3 * at.item]) + column * w[GEMM_C_COL];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 row = at.row + 4 * (THREAD % 8) + i;
      if (row < w[GEMM_M])
        put(c + row * w[GEMM_C_ROW], FLOAT_OF(w[GEMM_SCALE]) * s[i], w[0] >> 16);
    }
  }
  wait_for_all_copies();
}

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
      put(c + i * w[GEMM_C_ROW] + j * w[GEMM_C_COL], scale * s, flags);
    }
  }
}

// Results of few rows or columns would fill little of a tile, and long sums of few results few
// threads.
VP void gemm(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared) {
  const u32 m = w[GEMM_M], n = w[GEMM_N];
  if ((m >= 8 && n >= 8) || (m * n < THREADS / 2 && w[GEMM_K] > GEMM_TILE))
    return gemm_tiles(l, w, *(GemmMemory *)shared);
  gemm_thin(l, w, flags, count);
}
