// Products with a processor's rows of a matrix, on the CPU. Vectors of VW floats run down
// the rows, which are contiguous in a column; each result is summed in one order whatever
// the blocking, so lists of any length give the same bits.
#pragma once

typedef float V __attribute__((vector_size(VW * 4)));
typedef float VLoad __attribute__((vector_size(VW * 4), aligned(4), may_alias));
VP V load(const float *p) { return *(const VLoad *)p; }
VP void store(float *p, V v) { *(VLoad *)p = v; }
VP V splat(float x) { return x - (V){}; } // unlike +, exact for -0, so no subtraction is left

VP V canonical(V v) { return v == v ? v : splat(FLOAT_OF(0x7FC00000u)); }

// Sums of neighbouring lanes: those of a in the lower half of the result, of b in the upper.
VP V pair_sums(V a, V b) {
  typedef int Mask __attribute__((vector_size(VW * 4)));
  Mask even;
  for (int i = 0; i < VW; i++)
    even[i] = 2 * i;
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, even + 1);
}

// Lane i of the result is the sum of the lanes of v[i], of neighbours first.
VP V lane_sums(V *v) {
  for (int n = VW / 2; n > 0; n /= 2)
    for (int i = 0; i < n; i++)
      v[i] = pair_sums(v[2 * i], v[2 * i + 1]);
  return v[0];
}

// y[0..NV*VW) of VB vectors: y = bias_scale*bias + scale * W x.
template <int NV, int VB>
VP void product_block(const float *w, u32 ld, u32 cols, const float *const *x, float *const *y,
                      const float *bias, float bias_scale, float scale, bool acc) {
  V sum[VB][NV];
  for (int b = 0; b < VB; b++)
    for (int v = 0; v < NV; v++)
      sum[b][v] = (V){};
  for (u32 c = 0; c < cols; c++, w += ld) {
    V col[NV];
    for (int v = 0; v < NV; v++)
      col[v] = load(w + v * VW);
    for (int b = 0; b < VB; b++) {
      V xc = splat(x[b][c]);
      for (int v = 0; v < NV; v++)
        sum[b][v] += col[v] * xc;
    }
  }
  for (int b = 0; b < VB; b++)
    for (int v = 0; v < NV; v++) {
      V r = sum[b][v] * scale;
      if (bias)
        r += load(bias + v * VW) * bias_scale;
      if (acc)
        r += load(y[b] + v * VW);
      store(y[b] + v * VW, canonical(r));
    }
}

// The last rows, fewer than a vector has lanes. A whole vector is loaded where it ends
// inside the matrix; lanes of other rows are computed in vain.
template <int VB>
VP void product_tail(const float *w, u32 ld, u32 rows, u32 cols, const float *const *x,
                     float *const *y, const float *bias, float bias_scale, float scale, bool acc) {
  V sum[VB];
  for (int b = 0; b < VB; b++)
    sum[b] = (V){};
  u32 c = 0, inside = (VW - rows + ld - 1) / ld; // columns at the end whose vector leaves it
  for (; c + inside < cols; c++, w += ld) {
    V col = load(w);
    for (int b = 0; b < VB; b++)
      sum[b] += col * splat(x[b][c]);
  }
  for (; c < cols; c++, w += ld) {
    V col = {};
    for (u32 r = 0; r < rows; r++)
      col[r] = w[r];
    for (int b = 0; b < VB; b++)
      sum[b] += col * splat(x[b][c]);
  }
  for (int b = 0; b < VB; b++)
    for (u32 r = 0; r < rows; r++) {
      float v = sum[b][r] * scale;
      if (bias)
        v += bias[r] * bias_scale;
      if (acc)
        v += y[b][r];
      y[b][r] = canonical(v);
    }
}

template <int VB>
VP void product_rows(const float *w, u32 ld, u32 rows, u32 cols, const float *const *x,
                     float *const *y, const float *bias, float bias_scale, float scale, bool acc) {
  const int WIDE = VB == 1 ? 8 : VB == 4 && VW == 16 ? 4 : VB > 4 && VW < 16 ? 1 : 2;
  u32 r = 0;
  float *out[VB];
#define AT                                                                                         \
  for (int b = 0; b < VB; b++)                                                                     \
    out[b] = y[b] + r;
  for (; r + WIDE * VW <= rows; r += WIDE * VW) {
    AT product_block<WIDE, VB>(w + r, ld, cols, x, out, bias ? bias + r : 0, bias_scale, scale,
                               acc);
  }
  for (; r + VW <= rows; r += VW) {
    AT product_block<1, VB>(w + r, ld, cols, x, out, bias ? bias + r : 0, bias_scale, scale, acc);
  }
  if (r < rows) {
    AT product_tail<VB>(w + r, ld, rows - r, cols, x, out, bias ? bias + r : 0, bias_scale, scale,
                        acc);
  }
#undef AT
}

VP_SLOW void product(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                     u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[w[PRODUCT_MATRIX]];
  const u32 *first = res.first + w[PRODUCT_MATRIX] * res.processors + p.id;
  const float *base = l.segment[SEG_PARAM] + m.offset;
  float scale = FLOAT_OF(w[PRODUCT_SCALE]), bias_scale = FLOAT_OF(w[PRODUCT_BIAS_SCALE]);
  for (u32 k = first[0]; k < first[1]; k++) {
    vpps_rows part = res.parts[k];
    const float *bias = 0;
    if (flags & FLAG_BIAS)
      bias = address(l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS]) + part.row;
    const float *x[8];
    float *y[8];
    for (u32 e = 0; e < count;) {
      u32 n = count - e >= 8 ? 8 : count - e >= 4 ? 4 : 1;
      for (u32 b = 0; b < n; b++) {
        const u32 *item = w + PRODUCT_ITEMS + 2 * (e + b);
        y[b] = address(l, w[PRODUCT_SEGMENTS], 0, item[0]) + part.row;
        x[b] = address(l, w[PRODUCT_SEGMENTS], 1, item[1]);
      }
      bool acc = flags & FLAG_ACC;
      if (n == 8)
        product_rows<8>(base + part.row, m.rows, part.rows, m.cols, x, y, bias, bias_scale, scale,
                        acc);
      else if (n == 4)
        product_rows<4>(base + part.row, m.rows, part.rows, m.cols, x, y, bias, bias_scale, scale,
                        acc);
      else
        product_rows<1>(base + part.row, m.rows, part.rows, m.cols, x, y, bias, bias_scale, scale,
                        acc);
      e += n;
    }
  }
}

// t[0..n) of VB vectors, over one partition's rows; n is VW / VB, or less: then the
// columns behind are not touched.
template <int VB, bool WHOLE>
VP void product_t_block(const float *w, u32 ld, u32 rows, u32 n, const float *const *dy,
                        float *const *t, float scale, bool acc) {
  const int NC = VW / VB;
  V sum[VB * NC];
  for (int i = 0; i < VB * NC; i++)
    sum[i] = (V){};
  size_t r = 0;
  for (; r + VW <= rows; r += VW) {
    V d[VB];
    for (int b = 0; b < VB; b++)
      d[b] = load(dy[b] + r);
    for (int c = 0; c < NC; c++) {
      if (!WHOLE && (u32)c >= n)
        break;
      V col = load(w + (size_t)c * ld + r);
      for (int b = 0; b < VB; b++)
        sum[b * NC + c] += col * d[b];
    }
  }
  V total = lane_sums(sum);
  for (; r < rows; r++) {
    V col = {}, d = {};
    for (int b = 0; b < VB; b++)
      for (int c = 0; c < NC; c++)
        if (WHOLE || (u32)c < n) {
          col[b * NC + c] = w[(size_t)c * ld + r];
          d[b * NC + c] = dy[b][r];
        }
    total += col * d;
  }
  // Lanes b * NC and on are those of vector b.
  float lanes[VW] = {};
  const size_t bytes = (WHOLE ? NC : n) * sizeof(float);
  V result = total * scale;
  if (acc) {
    for (int b = 0; b < VB; b++)
      __builtin_memcpy(lanes + b * NC, t[b], bytes);
    result += load(lanes);
  }
  store(lanes, canonical(result));
  for (int b = 0; b < VB; b++)
    __builtin_memcpy(t[b], lanes + b * NC, bytes);
}

template <int VB>
VP void product_t_rows(const float *w, u32 ld, u32 rows, u32 cols, const float *const *dy,
                       float *const *t, float scale, bool acc) {
  const u32 NC = VW / VB;
  float *out[VB];
  u32 c = 0;
  for (; c + NC <= cols; c += NC) {
    for (int b = 0; b < VB; b++)
      out[b] = t[b] + c;
    product_t_block<VB, true>(w + c * ld, ld, rows, NC, dy, out, scale, acc);
  }
  if (c < cols) {
    for (int b = 0; b < VB; b++)
      out[b] = t[b] + c;
    product_t_block<VB, false>(w + c * ld, ld, rows, cols - c, dy, out, scale, acc);
  }
}

VP_SLOW void product_t(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                       u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[w[PRODUCT_T_MATRIX]];
  const u32 *first = res.first + w[PRODUCT_T_MATRIX] * res.processors + p.id;
  const float *base = l.segment[SEG_PARAM] + m.offset;
  float scale = FLOAT_OF(w[PRODUCT_T_SCALE]);
  u32 shift = p.rank * w[PRODUCT_T_RANK_STRIDE];
  for (u32 k = first[0]; k < first[1]; k++) {
    vpps_rows part = res.parts[k];
    bool acc = (flags & FLAG_ACC) || k > first[0];
    const float *dy[8];
    float *t[8];
    for (u32 e = 0; e < count;) {
      u32 n = VW > 8 && count - e >= 8 ? 8 : count - e >= 4 ? 4 : count - e >= 2 ? 2 : 1;
      for (u32 b = 0; b < n; b++) {
        const u32 *item = w + PRODUCT_T_ITEMS + 2 * (e + b);
        t[b] = address(l, w[PRODUCT_T_SEGMENTS], 0, item[0]) + shift;
        dy[b] = address(l, w[PRODUCT_T_SEGMENTS], 1, item[1]) + part.row;
      }
      if (n == 8)
        product_t_rows <
            VW<8 ? 4 : 8>(base + part.row, m.rows, part.rows, m.cols, dy, t, scale, acc);
      else if (n == 4)
        product_t_rows<4>(base + part.row, m.rows, part.rows, m.cols, dy, t, scale, acc);
      else if (n == 2)
        product_t_rows<2>(base + part.row, m.rows, part.rows, m.cols, dy, t, scale, acc);
      else
        product_t_rows<1>(base + part.row, m.rows, part.rows, m.cols, dy, t, scale, acc);
      e += n;
    }
  }
}

// G[0..NV*VW) x [0..NC) = sum over the items of dy x^T; row and col are where it begins.
template <int NV, int NC>
VP void outer_block(float *g, u32 ld, const float *dy, const float *x, const u32 *items, u32 count,
                    float scale, bool acc) {
  V sum[NC][NV];
  for (int c = 0; c < NC; c++)
    for (int v = 0; v < NV; v++)
      sum[c][v] = (V){};
  for (u32 k = 0; k < count; k++) {
    const float *d = dy + items[2 * k], *xk = x + items[2 * k + 1];
    V rows[NV];
    for (int v = 0; v < NV; v++)
      rows[v] = load(d + v * VW);
    for (int c = 0; c < NC; c++) {
      V xc = splat(xk[c]);
      for (int v = 0; v < NV; v++)
        sum[c][v] += rows[v] * xc;
    }
  }
  for (int c = 0; c < NC; c++)
    for (int v = 0; v < NV; v++) {
      V r = sum[c][v] * scale;
      float *to = g + c * ld + v * VW;
      if (acc)
        r += load(to);
      store(to, canonical(r));
    }
}

// NR rows, fewer than a vector has lanes: vectors run along the columns, as those of x do.
template <int NR>
VP void outer_across(float *g, u32 ld, u32 cols, const float *dy, const float *x, const u32 *items,
                     u32 count, float scale, bool acc) {
  const int NV = 2;
  u32 c = 0;
  for (; c + NV * VW <= cols; c += NV * VW) {
    V sum[NR][NV];
    for (int r = 0; r < NR; r++)
      for (int v = 0; v < NV; v++)
        sum[r][v] = (V){};
    for (u32 k = 0; k < count; k++) {
      const float *d = dy + items[2 * k], *xk = x + items[2 * k + 1] + c;
      V row[NV];
      for (int v = 0; v < NV; v++)
        row[v] = load(xk + v * VW);
      for (int r = 0; r < NR; r++)
        for (int v = 0; v < NV; v++)
          sum[r][v] += row[v] * splat(d[r]);
    }
    for (int r = 0; r < NR; r++)
      for (int v = 0; v < NV; v++)
        for (int i = 0; i < VW; i++) {
          float s = scale * sum[r][v][i], *to = g + (c + v * VW + i) * ld + r;
          *to = canonical(acc ? *to + s : s);
        }
  }
  for (; c < cols; c++)
    for (int r = 0; r < NR; r++) {
      float s = 0.0f;
      for (u32 k = 0; k < count; k++)
        s += dy[items[2 * k] + r] * x[items[2 * k + 1] + c];
      float *to = g + c * ld + r;
      *to = canonical(acc ? *to + scale * s : scale * s);
    }
}

VP void outer_tail(float *g, u32 ld, u32 rows, u32 cols, const float *dy, const float *x,
                   const u32 *items, u32 count, float scale, bool acc) {
  u32 r = 0;
  for (; r + 4 <= rows; r += 4)
    outer_across<4>(g + r, ld, cols, dy + r, x, items, count, scale, acc);
  for (; r < rows; r++)
    outer_across<1>(g + r, ld, cols, dy + r, x, items, count, scale, acc);
}

template <int NV>
VP void outer_rows(float *g, u32 ld, u32 cols, const float *dy, const float *x, const u32 *items,
                   u32 count, float scale, bool acc) {
  u32 c = 0;
  for (; c + 4 <= cols; c += 4)
    outer_block<NV, 4>(g + c * ld, ld, dy, x + c, items, count, scale, acc);
  for (; c < cols; c++)
    outer_block<NV, 1>(g + c * ld, ld, dy, x + c, items, count, scale, acc);
}

// As many vectors of a column at once as the registers hold.
#define OUTER_WIDE (VW == 16 ? 4 : 2)

VP void outer_part(float *base, const vpps_matrix &m, const vpps_rows &part, const float *dy,
                   const float *x, const u32 *items, u32 count, float scale, bool acc) {
  u32 r = part.row, end = part.row + part.rows;
  for (; r + OUTER_WIDE * VW <= end; r += OUTER_WIDE * VW)
    outer_rows<OUTER_WIDE>(base + r, m.rows, m.cols, dy + r, x, items, count, scale, acc);
  for (; r + VW <= end; r += VW)
    outer_rows<1>(base + r, m.rows, m.cols, dy + r, x, items, count, scale, acc);
  if (r < end)
    outer_tail(base + r, m.rows, end - r, m.cols, dy + r, x, items, count, scale, acc);
}

VP_SLOW void outer(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                   u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[w[OUTER_MATRIX]];
  const u32 *first = res.first + w[OUTER_MATRIX] * res.processors + p.id;
  float *base = address(l, w[OUTER_SEGMENTS], 0, w[OUTER_DST]);
  const float *x = address(l, w[OUTER_SEGMENTS], 2, 0);
  float scale = FLOAT_OF(w[OUTER_SCALE]);
  const u32 *all = w + OUTER_ITEMS;
  for (u32 k = first[0]; k < first[1]; k++) {
    vpps_rows part = res.parts[k];
    const float *dy = address(l, w[OUTER_SEGMENTS], 1, 0);
    // A long list piece by piece: all columns use the vectors of one while they are near.
    for (u32 e = 0, n; e < count; e += n) {
      n = count - e < 96 ? count - e : 64;
      const u32 *items = all + 2 * e;
      const bool acc = (flags & FLAG_ACC) || e > 0;
      outer_part(base, m, part, dy, x, items, n, scale, acc);
    }
  }
}
