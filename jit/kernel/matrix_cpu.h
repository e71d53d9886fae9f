// Products with a processor's rows of a matrix, on the CPU. Vectors of VW floats run down
// the rows, which are contiguous in a column; each result is summed in one order whatever
// the blocking, so lists of any length give the same bits.
#pragma once

// A product with some rows of a matrix, and what is done with the sums: y = bias_scale*bias +
// scale*W x.
struct Rows {
  const float *w; // column-major, columns ld apart
  u32 ld, rows, cols;
  float scale, bias_scale;
  const float *bias; // none: 0
  bool acc;          // adds to y
  bool atomic;       // adds to y, as other processors do at the same time
};

__attribute__((noinline)) VP_SLOW void add_atomically(float *to, const float *v, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u32 *word = (u32 *)to + i, old = __atomic_load_n(word, __ATOMIC_RELAXED), sum;
    do
      sum = BITS_OF(canonical(FLOAT_OF(old) + v[i]));
    while (!__atomic_compare_exchange_n(word, &old, sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}

// y[r..r+NV*VW) of VB vectors.
template <int NV, int VB>
VP void product_block(const Rows &m, u32 r, const float *const *x, float *const *y) {
  V sum[VB][NV];
  for (int b = 0; b < VB; b++)
    for (int v = 0; v < NV; v++)
      sum[b][v] = (V){};
  const float *w = m.w + r;
  for (size_t c = 0; c < m.cols; c++, w += m.ld) {
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
      float *to = y[b] + r + v * VW;
      V s = sum[b][v] * m.scale;
      if (m.bias)
        s += load(m.bias + r + v * VW) * m.bias_scale;
      if (m.atomic) {
        float lanes[VW];
        store(lanes, s);
        add_atomically(to, lanes, VW);
        continue;
      }
      if (m.acc)
        s += load(to);
      store(to, canonical(s));
    }
}

// The last rows, from r, fewer than a vector has lanes. A whole vector is loaded where it ends
// inside the matrix; lanes of other rows are computed in vain.
template <int VB>
VP void product_tail(const Rows &m, u32 r, const float *const *x, float *const *y) {
  V sum[VB];
  for (int b = 0; b < VB; b++)
    sum[b] = (V){};
  const float *w = m.w + r;
  const u32 n = m.rows - r;
  u32 c = 0, inside = (VW - n + m.ld - 1) / m.ld; // columns at the end whose vector leaves it
  for (; c + inside < m.cols; c++, w += m.ld) {
    V col = load(w);
    for (int b = 0; b < VB; b++)
      sum[b] += col * splat(x[b][c]);
  }
  for (; c < m.cols; c++, w += m.ld) {
    V col = {};
    for (u32 i = 0; i < n; i++)
      col[i] = w[i];
    for (int b = 0; b < VB; b++)
      sum[b] += col * splat(x[b][c]);
  }
  for (int b = 0; b < VB; b++) {
    float lanes[VW], *to = y[b] + r;
    store(lanes, sum[b]);
    for (u32 i = 0; i < n; i++) {
      float v = lanes[i] * m.scale;
      if (m.bias)
        v += m.bias[r + i] * m.bias_scale;
      if (m.atomic) {
        add_atomically(to + i, &v, 1);
        continue;
      }
      if (m.acc)
        v += to[i];
      to[i] = canonical(v);
    }
  }
}

// So many vectors at once as keep both units for FMA busy, and so many vectors of rows for each
// that the sums leave registers for the operands.
#define PRODUCT_GROUP (VW == 16 ? 8 : 6)
#define PRODUCT_SUMS (VW == 16 ? 24 : 12)

template <int NV, int VB>
VP u32 product_blocks(const Rows &m, u32 r, const float *const *x, float *const *y) {
  for (; r + NV * VW <= m.rows; r += NV * VW)
    product_block<NV, VB>(m, r, x, y);
  return r;
}

template <int VB> VP void product_rows(const Rows &m, const float *const *x, float *const *y) {
  const int MOST = PRODUCT_SUMS / VB;
  u32 r = 0;
  if (MOST >= 16)
    r = product_blocks < MOST >= 16 ? 16 : 1, VB > (m, r, x, y);
  if (MOST >= 8)
    r = product_blocks < MOST >= 8 ? 8 : 1, VB > (m, r, x, y);
  if (MOST >= 4)
    r = product_blocks < MOST >= 4 ? 4 : 1, VB > (m, r, x, y);
  if (MOST >= 2)
    r = product_blocks < MOST >= 2 ? 2 : 1, VB > (m, r, x, y);
  r = product_blocks<1, VB>(m, r, x, y);
  if (r < m.rows)
    product_tail<VB>(m, r, x, y);
}

// All of a list of items of so many words: y and x of one are at its first word and at another.
VP_SLOW void multiply(const Rows &m, const float *x, float *y, const u32 *items, u32 count,
                      u32 words = 2, u32 second = 1) {
  for (u32 e = 0; e < count;) {
    const u32 n = count - e < PRODUCT_GROUP ? count - e : PRODUCT_GROUP;
    const float *from[PRODUCT_GROUP];
    float *to[PRODUCT_GROUP];
    for (u32 b = 0; b < n; b++, items += words) {
      to[b] = y + items[0];
      from[b] = x + items[second];
    }
    switch (n) {
    case 1:
      product_rows<1>(m, from, to);
      break;
    case 2:
      product_rows<2>(m, from, to);
      break;
    case 3:
      product_rows<3>(m, from, to);
      break;
    case 4:
      product_rows<4>(m, from, to);
      break;
    case 5:
      product_rows<5>(m, from, to);
      break;
    case 6:
      product_rows<6>(m, from, to);
      break;
#if VW == 16
    case 7:
      product_rows<7>(m, from, to);
      break;
    case 8:
      product_rows<8>(m, from, to);
      break;
#endif
    }
    e += n;
  }
}

VP_SLOW void product(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                     const u32 *items, u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[w[PRODUCT_MATRIX]];
  const u32 *first = res.first + w[PRODUCT_MATRIX] * res.processors + p.id;
  for (u32 k = first[0]; k < first[1]; k++) {
    const vpps_rows &part = res.parts[k];
    Rows rows = {};
    rows.w = l.segment[SEG_PARAM] + m.offset + part.row;
    rows.ld = m.rows, rows.rows = part.rows, rows.cols = m.cols;
    rows.scale = FLOAT_OF(w[PRODUCT_SCALE]);
    rows.acc = flags & FLAG_ACC;
    if (flags & FLAG_BIAS) {
      rows.bias = address(l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS]) + part.row;
      rows.bias_scale = FLOAT_OF(w[PRODUCT_BIAS_SCALE]);
    }
    float *y = address(l, w[PRODUCT_SEGMENTS], 0, part.row);
    multiply(rows, address(l, w[PRODUCT_SEGMENTS], 1, 0), y, items, count);
    apply_to_rows(w[0] >> 8 & 255u, y, part.rows, items, 2, count);
  }
}

// A block of VW by VW, by as many perfect shuffles of its rows as VW has bits.
VP void transpose_block(const float *from, u32 from_ld, float *to, u32 to_ld) {
  typedef int Mask __attribute__((vector_size(VW * 4)));
  Mask low;
  for (int i = 0; i < VW; i++)
    low[i] = i / 2 + i % 2 * VW;
  V v[VW], t[VW];
  for (int i = 0; i < VW; i++)
    v[i] = load(from + (size_t)i * from_ld);
  for (int n = 1; n < VW; n *= 2) {
    for (int i = 0; i < VW / 2; i++) {
      t[2 * i] = __builtin_shuffle(v[i], v[i + VW / 2], low);
      t[2 * i + 1] = __builtin_shuffle(v[i], v[i + VW / 2], low + VW / 2);
    }
    for (int i = 0; i < VW; i++)
      v[i] = t[i];
  }
  for (int i = 0; i < VW; i++)
    store(to + (size_t)i * to_ld, v[i]);
}

// Rows of w become columns of t.
VP_SLOW void transpose(const float *w, u32 ld, u32 rows, u32 cols, float *t) {
  u32 r = 0;
  for (; r + VW <= rows; r += VW) {
    u32 c = 0;
    for (; c + VW <= cols; c += VW)
      transpose_block(w + (size_t)c * ld + r, ld, t + (size_t)r * cols + c, cols);
    for (; c < cols; c++)
      for (u32 i = r; i < r + VW; i++)
        t[(size_t)i * cols + c] = w[(size_t)c * ld + i];
  }
  for (; r < rows; r++)
    for (u32 c = 0; c < cols; c++)
      t[(size_t)r * cols + c] = w[(size_t)c * ld + r];
}

// What a processor forms a transposed product with: its rows, or its columns.
struct Block {
  u32 row, rows, column, columns;
};

// A transposed product with matrix id, for the results at y and what the items say. A launch
// transposes a matrix once, before it is first used so: no launch uses a matrix after it has
// changed it.
VP_SLOW void transposed_product(const vpps_residency &res, const Launch &l, const Processor &p,
                                u32 id, float *y, const float *dy, float scale, const u32 *items,
                                u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[id];
  const u32 at = id * res.processors + p.id;
  u32 &done = res.is_transposed[at];
  const vpps_columns own = res.columns ? res.columns[at] : vpps_columns{VPPS_HELD, 0};
  const bool held = own.column == VPPS_HELD;
  const u32 first = held ? res.first[at] : 0, end = held ? res.first[at + 1] : 1;
  for (u32 k = first; k < end; k++) {
    const Block b = held ? Block{res.parts[k].row, res.parts[k].rows, 0, m.cols}
                         : Block{0, m.rows, own.column, own.columns};
    float *t = res.transposed[id] + (size_t)b.row * m.cols + (size_t)b.column * m.rows;
    if (!done)
      transpose(l.segment[SEG_PARAM] + m.offset + b.row + (size_t)b.column * m.rows, m.rows, b.rows,
                b.columns, t);
    Rows rows = {};
    rows.w = t;
    rows.ld = rows.rows = b.columns, rows.cols = b.rows;
    rows.scale = scale;
    rows.acc = (flags & FLAG_ACC) || k > first;
    rows.atomic = flags & FLAG_ATOMIC;
    multiply(rows, dy + b.row, y + b.column, items, count);
  }
  done = 1;
}

VP_SLOW void product_t(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                       const u32 *items, u32 flags, u32 count) {
  transposed_product(
      res, l, p, w[PRODUCT_T_MATRIX], address(l, w[PRODUCT_T_SEGMENTS], 0, w[PRODUCT_T_SHIFT]),
      address(l, w[PRODUCT_T_SEGMENTS], 1, 0), FLOAT_OF(w[PRODUCT_T_SCALE]), items, flags, count);
}

// G[0..NV*VW) x [0..NC) = sum over the items of dy x^T; g, dy and x are where it begins. The first
// `skip` rows are others' (only where NV is 1). Of the items at next, if any, a line of each vector
// is fetched: that of x here, that of dy so many floats further on.
template <int NV, int NC>
VP void outer_block(float *g, u32 ld, const float *dy, const float *x, const u32 *items, u32 count,
                    float scale, bool acc, u32 skip, const u32 *next = 0, u32 further = 0) {
  V sum[NC][NV];
  for (int c = 0; c < NC; c++)
    for (int v = 0; v < NV; v++)
      sum[c][v] = (V){};
  for (u32 k = 0; k < count; k++) {
    const float *d = dy + items[2 * k], *xk = x + items[2 * k + 1];
    if (next) {
      __builtin_prefetch(dy + next[2 * k] + further, 0, 2);
      __builtin_prefetch(x + next[2 * k + 1], 0, 2);
    }
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
      V s = sum[c][v] * scale;
      float *to = g + c * ld + v * VW;
      if (NV == 1 && skip) {
        float lanes[VW];
        store(lanes, s);
        for (u32 i = skip; i < VW; i++)
          to[i] = canonical(acc ? lanes[i] + to[i] : lanes[i]);
        continue;
      }
      if (acc)
        s += load(to);
      store(to, canonical(s));
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
                   const u32 *next, u32 count, float scale, bool acc, u32 skip = 0) {
  const u32 LINE = 16; // floats of a line of the cache
  u32 c = 0;
  for (; c + 4 <= cols; c += 4)
    if (c % LINE == 0)
      outer_block<NV, 4>(g + c * ld, ld, dy, x + c, items, count, scale, acc, skip, next,
                         c % (NV * VW));
    else
      outer_block<NV, 4>(g + c * ld, ld, dy, x + c, items, count, scale, acc, skip);
  for (; c < cols; c++)
    outer_block<NV, 1>(g + c * ld, ld, dy, x + c, items, count, scale, acc, skip);
}

// As many vectors of a column at once as the registers hold. What is left of the rows is done with
// a vector that reaches back into those before.
#define OUTER_WIDE (VW == 16 ? 4 : 2)

VP void outer_part(float *base, const vpps_matrix &m, const vpps_rows &part, const float *dy,
                   const float *x, const u32 *items, const u32 *next, u32 count, float scale,
                   bool acc) {
  u32 r = part.outer_row, end = r + part.outer_rows, cols = part.outer_columns;
  base += part.outer_column * m.rows;
  x += part.outer_column;
  for (; r + OUTER_WIDE * VW <= end; r += OUTER_WIDE * VW)
    outer_rows<OUTER_WIDE>(base + r, m.rows, cols, dy + r, x, items, next, count, scale, acc);
  for (; OUTER_WIDE > 2 && r + 2 * VW <= end; r += 2 * VW)
    outer_rows<2>(base + r, m.rows, cols, dy + r, x, items, next, count, scale, acc);
  for (; r + VW <= end; r += VW)
    outer_rows<1>(base + r, m.rows, cols, dy + r, x, items, next, count, scale, acc);
  if (r < end && part.outer_rows >= VW)
    outer_rows<1>(base + end - VW, m.rows, cols, dy + end - VW, x, items, next, count, scale, acc,
                  VW - (end - r));
  else if (r < end)
    outer_tail(base + r, m.rows, end - r, cols, dy + r, x, items, count, scale, acc);
}

VP_SLOW void outer(const Launch &l, const vpps_residency &res, const Processor &p, const u32 *w,
                   const u32 *all, u32 flags, u32 count) {
  const vpps_matrix &m = res.matrix[w[OUTER_MATRIX]];
  const u32 *first = res.first + w[OUTER_MATRIX] * res.processors + p.id;
  float *base = address(l, w[OUTER_SEGMENTS], 0, w[OUTER_DST]);
  const float *x = address(l, w[OUTER_SEGMENTS], 2, 0);
  float scale = FLOAT_OF(w[OUTER_SCALE]);
  for (u32 k = first[0]; k < first[1]; k++) {
    vpps_rows part = res.parts[k];
    const float *dy = address(l, w[OUTER_SEGMENTS], 1, 0);
    // A long list piece by piece: all columns use the vectors of one while they are near, and those
    // of the next, or the last so many, are fetched meanwhile.
    for (u32 e = 0, n; e < count; e += n) {
      n = count - e < 48 ? count - e : 32;
      const u32 *items = all + 2 * e, *next = all + 2 * (e + 2 * n <= count ? e + n : count - n);
      const bool acc = (flags & FLAG_ACC) || e > 0;
      outer_part(base, m, part, dy, x, items, next, n, scale, acc);
    }
  }
}
