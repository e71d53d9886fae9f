// Gemm on the CPU: blocks of rows by columns whose sums stay in registers. Rows that are not
// neighbours in memory, and the last few, are copied side by side first. Every result is summed
// from front to back, whatever the block.
#pragma once

// A product's operands, from some element on.
struct Factors {
  const float *a, *b, *bias; // bias 0: there is none
  float *c;
  u32 rows, columns, depth, a_row, a_col, b_row, b_col, c_col;
  float scale;
  bool acc;
};

enum : u32 { GEMM_DEPTH = 256, GEMM_ROWS = PANEL }; // of a block's copy

// Rows [0, n) of columns [t, t + depth) of a, side by side.
VP void copy_block(const Factors &f, u32 n, u32 t, u32 depth, float *to) {
  const float *from = f.a + (size_t)t * f.a_col;
  if (f.a_row == 1) {
    for (u32 k = 0; k < depth; k++, from += f.a_col, to += GEMM_ROWS)
      for (u32 i = 0; i < n; i++)
        to[i] = from[i];
    return;
  }
  if (f.a_col == 1)
    return pack_transposed(from, f.a_row, depth, n, to);
  for (u32 i = 0; i < n; i++, from += f.a_row)
    for (u32 k = 0; k < depth; k++)
      to[k * GEMM_ROWS + i] = from[(size_t)k * f.a_col];
}

// NV vectors of rows, of which the first n elements are wanted, by NB columns. They are copied, in
// steps, unless the copy is there.
template <int NV, int NB>
VP void gemm_block(const Factors &f, u32 n, bool direct, float *copy, bool &copied) {
  V sum[NB][NV];
  for (int j = 0; j < NB; j++)
    for (int v = 0; v < NV; v++)
      sum[j][v] = (V){};
  const float *b = f.b;
  for (u32 t = 0; t < f.depth; t += GEMM_DEPTH) {
    const u32 depth = f.depth - t < GEMM_DEPTH ? f.depth - t : (u32)GEMM_DEPTH;
    const float *a = direct ? f.a + (size_t)t * f.a_col : copy;
    const size_t step = direct ? f.a_col : (u32)GEMM_ROWS;
    if (!direct && !copied)
      copy_block(f, n, t, depth, copy);
    for (u32 k = 0; k < depth; k++, a += step, b += f.b_row) {
      V col[NV];
      for (int v = 0; v < NV; v++)
        col[v] = load(a + v * VW);
      for (int j = 0; j < NB; j++) {
        const V x = splat(b[(size_t)j * f.b_col]);
        for (int v = 0; v < NV; v++)
          sum[j][v] += col[v] * x;
      }
    }
  }
  copied = f.depth <= GEMM_DEPTH;
  const u32 last = n - (NV - 1) * VW;
  UNROLLED
  for (int j = 0; j < NB; j++) {
    UNROLLED
    for (int v = 0; v < NV; v++)
      sum[j][v] *= f.scale;
  }
  if (f.bias) {
    UNROLLED
    for (int v = 0; v < NV; v++) {
      const V bias = load_some(f.bias + v * VW, v < NV - 1 ? VW : last);
      UNROLLED
      for (int j = 0; j < NB; j++)
        sum[j][v] += bias;
    }
  }
  UNROLLED
  for (int j = 0; j < NB; j++)
    store_sums<NV>(f.c + (size_t)j * f.c_col, sum[j], last, f.acc);
}

template <int NV, int NB>
VP u32 gemm_columns(const Factors &all, u32 j, u32 n, bool direct, float *copy, bool &copied) {
  for (; j + NB <= all.columns; j += NB) {
    Factors f = all;
    f.b += (size_t)j * f.b_col, f.c += (size_t)j * f.c_col;
    gemm_block<NV, NB>(f, n, direct, copy, copied);
  }
  return j;
}

template <int NV> VP_SLOW void gemm_rows(const Factors &f, u32 n) {
  float copy[GEMM_DEPTH * GEMM_ROWS];
  bool copied = false;
  const bool direct = f.a_row == 1 && n == NV * VW;
  if (!direct)
    for (u32 k = 0; k < (f.depth < GEMM_DEPTH ? f.depth : (u32)GEMM_DEPTH); k++)
      for (u32 i = n; i < NV * VW; i++)
        copy[k * GEMM_ROWS + i] = 0.0f;
  u32 j = gemm_columns<NV, PRODUCT_GROUP>(f, 0, n, direct, copy, copied);
  j = gemm_columns<NV, 2>(f, j, n, direct, copy, copied);
  gemm_columns<NV, 1>(f, j, n, direct, copy, copied);
}

VP_SLOW void gemm(const Launch &l, const u32 *w, u32 flags, u32 count, float *, float *) {
  const u32 c_row = w[GEMM_C_ROW];
  for (u32 e = 0; e < count; e++) {
    const u32 *item = w + GEMM_ITEMS + 3 * e;
    Factors f = {address(l, w[GEMM_SEGMENTS], 1, item[1]),
                 address(l, w[GEMM_SEGMENTS], 2, item[2]),
                 flags & FLAG_BIAS ? address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS]) : 0,
                 address(l, w[GEMM_SEGMENTS], 0, item[0]),
                 w[GEMM_M],
                 w[GEMM_N],
                 w[GEMM_K],
                 w[GEMM_A_ROW],
                 w[GEMM_A_COL],
                 w[GEMM_B_ROW],
                 w[GEMM_B_COL],
                 w[GEMM_C_COL],
                 FLOAT_OF(w[GEMM_SCALE]),
                 (flags & FLAG_ACC) != 0};
    const u32 most = c_row == 1 ? (u32)GEMM_ROWS : 1; // rows of a block are neighbours in c
    for (u32 r = 0; r < f.rows;) {
      const u32 left = f.rows - r, n = left < most ? left : most;
      Factors block = f;
      block.a += (size_t)r * f.a_row, block.c += (size_t)r * c_row;
      if (f.bias)
        block.bias += r;
      if (n > VW)
        gemm_rows<2>(block, n);
      else
        gemm_rows<1>(block, n);
      r += n;
    }
  }
}
