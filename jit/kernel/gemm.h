// Gemm on the GPU: a product of any two operands by strides, for what is not a resident matrix
// (attention, convolution, a parameter that changed under a graph), and for a matrix that is
// multiplied by many columns. The CPU has its own (gemm_cpu.h).
#pragma once

// A tile is so many rows and columns of a result, a stage so many terms of its sums. A stage is on
// its way to shared memory while another one is worked on, whatever tile or item they belong to.
// Two warps have all results of a tile, each thread 4 by 4. Four such groups share the terms of
// each half of a stage, and add up their sums in the end.
enum : u32 {
  GEMM_TILE = 32,
  GEMM_DEPTH = 64,
  GEMM_ROW = GEMM_TILE + 4, // of a panel: a warp copies to different banks
  GEMM_GROUPS = 4,
  GEMM_MEMBERS = THREADS / GEMM_GROUPS,
  GEMM_EACH = GEMM_TILE / GEMM_GROUPS
};

// A thread's first row and column of a tile; lanes lie as in Tile (tile_gpu.h).
VP u32 gemm_row() { return 4 * (THREAD % 2 + THREAD % 32 / 8 * 2); }
VP u32 gemm_column() { return 16 * (THREAD / 32 % 2) + 4 * (THREAD / 2 % 4); }

struct GemmPlace {
  u32 item, row, column, term; // where a stage begins
};

struct GemmStage {
  float a[GEMM_DEPTH * GEMM_ROW], b[GEMM_DEPTH * GEMM_ROW]; // [term][row or column]
};

// gemmBytes (jit/source.go) is its size.
struct GemmMemory {
  GemmStage stages[2];
  GemmPlace places[4];
};

// Starts copying the first ns times ks elements to a panel, and fills it up with zeros to a
// multiple of 32 terms: four neighbours a thread, or one at a time. Then a warp reads 32
// neighbours, or 8 in each of 4 runs.
VP void copy_panel(float *panel, const float *from, u32 n_step, u32 k_step, u32 ns, u32 ks) {
  const bool along = n_step == 1;
  const bool four = along && k_step % 4 == 0 && (u64)from % 16 == 0;
  const u32 n = four ? THREAD % 8 * 4 : along ? THREAD % 32 : THREAD / 8;
  const u32 first = four ? THREAD / 8 : along ? THREAD / 32 : THREAD % 8, step = four ? 32 : 8;
  ks = n < ns ? min(ks, (u32)GEMM_DEPTH) : 0;
  panel += first * GEMM_ROW + n;
  const float *at = from + n * n_step + first * k_step;
#pragma unroll 1
  for (u32 k = first; k < GEMM_DEPTH; k += step) {
    if (four)
      copy_some_or_zero(panel, k < ks ? at : from, k < ks ? min(ns - n, 4u) : 0);
    else
      copy_word_or_zero(panel, k < ks ? at : from, k < ks);
    panel += step * GEMM_ROW, at += step * k_step;
  }
}

// Starts copying a stage, if one is left, and finds the next.
VP void fill_stage(const Launch &l, const u32 *w, GemmStage &stage, const GemmPlace &at,
                   GemmPlace &next) {
  if (at.item < w[1] >> 16) {
    const u32 *item = w + GEMM_ITEMS + 3 * at.item;
    copy_panel(stage.a,
               address(l, w[GEMM_SEGMENTS], 1, item[1]) + at.row * w[GEMM_A_ROW] +
                   at.term * w[GEMM_A_COL],
               w[GEMM_A_ROW], w[GEMM_A_COL], w[GEMM_M] - at.row, w[GEMM_K] - at.term);
    copy_panel(stage.b,
               address(l, w[GEMM_SEGMENTS], 2, item[2]) + at.column * w[GEMM_B_COL] +
                   at.term * w[GEMM_B_ROW],
               w[GEMM_B_COL], w[GEMM_B_ROW], w[GEMM_N] - at.column, w[GEMM_K] - at.term);
  }
  if (THREAD == 0) {
    const bool over = at.term + GEMM_DEPTH >= w[GEMM_K];
    const bool down = over && at.row + GEMM_TILE >= w[GEMM_M];
    const bool on = down && at.column + GEMM_TILE >= w[GEMM_N];
    next.term = over ? 0 : at.term + GEMM_DEPTH;
    next.row = down ? 0 : over ? at.row + GEMM_TILE : at.row;
    next.column = on ? 0 : down ? at.column + GEMM_TILE : at.column;
    next.item = at.item + on;
  }
}

// A thread's results: s[4 * j + i], of row i and column j, += a b of its group's terms of the first
// so many.
VP void multiply_stage(const GemmStage &stage, u32 terms, float *s) {
  const u32 first = THREAD / GEMM_MEMBERS * GEMM_EACH * GEMM_ROW;
  const float *a = stage.a + first + gemm_row(), *b = stage.b + first + gemm_column();
#pragma unroll 1
  for (u32 half = 0; half < GEMM_DEPTH && half < terms; half += GEMM_TILE) {
#pragma unroll
    for (u32 k = 0; k < GEMM_EACH; k++) {
      float u[4], v[4];
      read_run<4>(u, a + k * GEMM_ROW);
      read_run<4>(v, b + k * GEMM_ROW);
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          s[4 * j + i] = FMA(u[i], v[j], s[4 * j + i]);
    }
    a += GEMM_TILE * GEMM_ROW, b += GEMM_TILE * GEMM_ROW;
  }
}

// Adds up the groups' sums, each group of one column of a thread's results, and stores the tile.
// The stage is free.
VP void store_tile(const Launch &l, const u32 *w, const GemmPlace &at, const float *s,
                   GemmStage &stage) {
  float(*sums)[THREADS][4] = (float(*)[THREADS][4]) & stage;
  const u32 group = THREAD / GEMM_MEMBERS;
  float sum[4];
#pragma unroll
  for (u32 j = 0; j < GEMM_GROUPS; j++)
    if (j != group)
      write_run<4>(sums[(group - j - 1) % GEMM_GROUPS][j * GEMM_MEMBERS + THREAD % GEMM_MEMBERS],
                   s + 4 * j);
    else
#pragma unroll
      for (int i = 0; i < 4; i++)
        sum[i] = s[4 * j + i];
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < GEMM_GROUPS - 1; k++) {
    float other[4];
    read_run<4>(other, sums[k][THREAD]);
#pragma unroll
    for (int i = 0; i < 4; i++)
      sum[i] += other[i];
  }
  const u32 row = at.row + gemm_row(), column = at.column + gemm_column() + group;
  if (column >= w[GEMM_N])
    return;
  float *c = address(l, w[GEMM_SEGMENTS], 0, w[GEMM_ITEMS + 3 * at.item]) + column * w[GEMM_C_COL];
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    if (row + i < w[GEMM_M]) {
      float x = FLOAT_OF(w[GEMM_SCALE]) * sum[i];
      if (w[0] >> 16 & FLAG_BIAS)
        x += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[row + i];
      put(c + (row + i) * w[GEMM_C_ROW], x, w[0] >> 16);
    }
}

// The instruction's words are read each time that they are needed. That saves registers.
VP_SLOW void gemm_tiles(const Launch &l, const u32 *w, GemmMemory &memory) {
  __syncthreads(); // the memory is free
  if (THREAD == 0) {
    const GemmPlace first = {0, 0, 0, 0};
    memory.places[0] = first;
  }
  float s[16] = {};
#pragma unroll 1
  for (u32 t = 0;; t++) {
    wait_for_all_copies();
    __syncthreads(); // everybody's copies of the stage before are here, and this one is free
    fill_stage(l, w, memory.stages[t % 2], memory.places[t % 4], memory.places[(t + 1) % 4]);
    commit_copies();
    if (t == 0)
      continue;
    const GemmPlace &at = memory.places[(t - 1) % 4];
    if (at.item >= w[1] >> 16)
      break;
    GemmStage &stage = memory.stages[(t - 1) % 2];
    multiply_stage(stage, w[GEMM_K] - at.term, s);
    if (at.term + GEMM_DEPTH < w[GEMM_K])
      continue;
    __syncthreads(); // nobody reads the stage any more
    store_tile(l, w, at, s, stage);
#pragma unroll
    for (int i = 0; i < 16; i++)
      s[i] = 0.0f;
  }
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
      s *= scale;
      if (flags & FLAG_BIAS)
        s += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[i];
      put(c + i * w[GEMM_C_ROW] + j * w[GEMM_C_COL], s, flags);
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
