// Products with a processor's rows of a matrix, on the CPU. Vectors of VW floats run down
// the rows, which are contiguous in a column; each result is summed in one order whatever
// the blocking, so lists of any length give the same bits.
#pragma once

// The sums' use: y = bias_scale*bias + scale*W x.
struct Sums {
  float scale, bias_scale;
  const float *bias; // none: 0
  bool acc;          // adds to y
};

// NV vectors of rows of y, from r on, for VB vectors x. The last vector may have fewer rows; CUT:
// no more of it is read.
template <int NV, int VB, bool CUT>
VP void product_block(const Rows &m, const Sums &how, u32 r, const float *const *x,
                      float *const *y) {
  V sum[VB][NV];
  UNROLLED
  for (int b = 0; b < VB; b++) {
    UNROLLED
    for (int v = 0; v < NV; v++)
      sum[b][v] = (V){};
  }
  const float *w = m.at(r);
  const size_t step = m.step, panel = m.panel;
  const u32 last = m.rows - r - (NV - 1) * VW;
  for (size_t c = 0; c < m.cols; c++, w += step) {
    V col[NV];
    UNROLLED
    for (int v = 0; v < NV - 1; v++)
      col[v] = load(w + v / 2 * panel + v % 2 * VW);
    const float *end = w + (NV - 1) / 2 * panel + (NV - 1) % 2 * VW;
    col[NV - 1] = CUT ? load_some(end, last) : load(end);
    UNROLLED
    for (int b = 0; b < VB; b++) {
      V xc = splat(x[b][c]);
      UNROLLED
      for (int v = 0; v < NV; v++)
        sum[b][v] += col[v] * xc;
    }
  }
  UNROLLED
  for (int b = 0; b < VB; b++) {
    UNROLLED
    for (int v = 0; v < NV; v++)
      sum[b][v] *= how.scale;
  }
  if (how.bias) {
    UNROLLED
    for (int v = 0; v < NV; v++) {
      const V bias = load_some(how.bias + r + v * VW, v < NV - 1 ? VW : last) * how.bias_scale;
      UNROLLED
      for (int b = 0; b < VB; b++)
        sum[b][v] += bias;
    }
  }
  UNROLLED
  for (int b = 0; b < VB; b++)
    store_sums<NV>(y[b] + r, sum[b], last, how.acc);
}

// So many vectors at once as keep both units for FMA busy, and so many vectors of rows for each
// that the sums leave registers for the operands.
#define PRODUCT_GROUP (VW == 16 ? 8 : 6)
#define PRODUCT_SUMS (VW == 16 ? 24 : 12)

// The block of n vectors of rows, up to NV.
template <int NV, int VB> struct ProductBlock {
  VP void of(u32 n, const Rows &m, const Sums &how, u32 r, const float *const *x, float *const *y) {
    if (n == NV && (VW == 16 || !m.padded)) // a masked load of AVX-512 takes no longer
      product_block<NV, VB, true>(m, how, r, x, y);
    else if (n == NV)
      product_block<NV, VB, false>(m, how, r, x, y);
    else
      ProductBlock<NV - 1, VB>::of(n, m, how, r, x, y);
  }
};
template <int VB> struct ProductBlock<0, VB> {
  VP void of(u32, const Rows &, const Sums &, u32, const float *const *, float *const *) {}
};

// All rows, in blocks of about one size. But for the last one they begin panels.
template <int VB>
OUT_OF_LINE void product_rows(const Rows &m, const Sums &how, const float *const *x,
                              float *const *y) {
  const int MOST = PRODUCT_SUMS / VB < 12 ? PRODUCT_SUMS / VB : 12;
  u32 r = 0;
  for (u32 left = (m.rows + VW - 1) / VW, n; left > 0; left -= n, r += n * VW) {
    const u32 blocks = (left + MOST - 1) / MOST, even = (left / blocks + 1) / 2 * 2;
    n = blocks == 1 ? left : even <= MOST ? even : MOST / 2 * 2;
    ProductBlock<MOST, VB>::of(n, m, how, r, x, y);
  }
}

// All of a list of items, which are the places of y and x.
struct Items {
  const u32 *list;
  u32 count;
};

// With rows that stay in the cache meanwhile, in groups of about one size.
VP_SLOW void multiply_some(const Rows &m, const Sums &how, const float *x, float *y,
                           const Items &items) {
  const u32 *item = items.list;
  u32 groups = (items.count + PRODUCT_GROUP - 1) / PRODUCT_GROUP;
  for (u32 left = items.count, n; left > 0; left -= n, groups--) {
    n = (left + groups - 1) / groups;
    const float *from[PRODUCT_GROUP];
    float *to[PRODUCT_GROUP];
    for (u32 b = 0; b < n; b++, item += 2) {
      to[b] = y + item[0];
      from[b] = x + item[1];
    }
    switch (n) {
    case 1:
      product_rows<1>(m, how, from, to);
      break;
    case 2:
      product_rows<2>(m, how, from, to);
      break;
    case 3:
      product_rows<3>(m, how, from, to);
      break;
    case 4:
      product_rows<4>(m, how, from, to);
      break;
    case 5:
      product_rows<5>(m, how, from, to);
      break;
    case 6:
      product_rows<6>(m, how, from, to);
      break;
#if VW == 16
    case 7:
      product_rows<7>(m, how, from, to);
      break;
    case 8:
      product_rows<8>(m, how, from, to);
      break;
#endif
    }
  }
}

VP void multiply(const Rows &m, Sums how, const float *x, float *y, const Items &items) {
  const u32 CACHED = 1 << 16; // floats, a part of the second cache
  u32 some = m.rows;
  if (items.count > PRODUCT_GROUP && (u64)m.rows * m.cols > CACHED)
    some = CACHED / m.cols > PANEL ? CACHED / m.cols / PANEL * PANEL : PANEL;
  for (u32 r = 0; r < m.rows; r += some) {
    multiply_some(m.some(r, some), how, x, y + r, items);
    if (how.bias)
      how.bias += some;
  }
}

// How far behind the places of a transposed product's items the processor's results are.
VP u32 results_of(const vpps_residency &res, const Processor &p, const u32 *w) {
  if ((w[0] & 255u) != OP_PRODUCT_T || w[PRODUCT_T_MATRIX] >= res.matrices)
    return 0;
  const u32 *first = res.first + w[PRODUCT_T_MATRIX] * res.processors + p.id;
  return first[0] == first[1] ? 0 : res.parts[first[0]].rank * w[PRODUCT_T_APART];
}

// Products with a processor's rows of a matrix, and the function behind them.
VP_SLOW void product(const Work &work, const vpps_residency &res, const Processor &p) {
  const Launch &l = work.l;
  const u32 *w = work.w;
  const u32 id = w[PRODUCT_MATRIX], fn = w[0] >> 8 & 255u;
  const vpps_matrix &m = res.matrix[id];
  Sums how = {};
  how.scale = FLOAT_OF(w[PRODUCT_SCALE]);
  how.acc = work.flags & FLAG_ACC;
  if (work.flags & FLAG_BIAS) {
    how.bias = address(l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS]);
    how.bias_scale = FLOAT_OF(w[PRODUCT_BIAS_SCALE]);
  }
  const Items items = {work.items, work.count};
  const float *x = address(l, w[PRODUCT_SEGMENTS], 1, 0);
  float *y = address(l, w[PRODUCT_SEGMENTS], 0, 0);
  const u32 at = id * res.processors + p.id;
  vpps_panels &own = res.panels[2 * at];
  own.vectors += items.count;
  const bool packed = worth_packing(m, own.vectors), pack_now = packed && !own.packed;
  float *t = own.floats;
  for (u32 k = res.first[at]; k < res.first[at + 1]; k++) {
    const vpps_rows &part = res.parts[k];
    const float *from = l.segment[SEG_PARAM] + m.offset + part.row;
    if (pack_now)
      pack(from, m.rows, part.rows, m.cols, t);
    Sums sums = how;
    if (how.bias)
      sums.bias += part.row;
    const Rows rows =
        packed ? in_panels(t, part.rows, m.cols) : in_place(from, m.rows, part.rows, m.cols);
    multiply(rows, sums, x, y + part.row, items);
    apply_to_rows(fn, y + part.row, part.rows, work.items, work.count);
    t += panel_floats(part.rows, m.cols);
  }
  own.packed |= packed;
}

// The block that a processor forms a transposed product with: its rows, or its columns.
struct Block {
  u32 row, rows, column, columns;
};

// Transposed products. A launch transposes a matrix once, before it is first used so: no launch
// uses a matrix after it has changed it.
VP_SLOW void product_t(const Work &work, const vpps_residency &res, const Processor &p) {
  const Launch &l = work.l;
  const u32 *w = work.w;
  const u32 id = w[PRODUCT_T_MATRIX];
  const vpps_matrix &m = res.matrix[id];
  float *y = address(l, w[PRODUCT_T_SEGMENTS], 0, results_of(res, p, w));
  const float *dy = address(l, w[PRODUCT_T_SEGMENTS], 1, 0);
  const u32 at = id * res.processors + p.id;
  vpps_panels &own = res.panels[2 * at + 1];
  const vpps_columns columns = res.columns ? res.columns[at] : vpps_columns{VPPS_HELD, 0};
  const bool held = columns.column == VPPS_HELD;
  const u32 first = held ? res.first[at] : 0, end = held ? res.first[at + 1] : 1;
  float *t = own.floats;
  for (u32 k = first; k < end; k++) {
    const vpps_rows &part = res.parts[k];
    const Block b = held ? Block{part.row, part.rows, 0, m.cols}
                         : Block{0, m.rows, columns.column, columns.columns};
    if (!own.packed)
      pack_transposed(l.segment[SEG_PARAM] + m.offset + b.row + (size_t)b.column * m.rows, m.rows,
                      b.rows, b.columns, t);
    Sums how = {};
    how.scale = FLOAT_OF(w[PRODUCT_T_SCALE]);
    how.acc = (work.flags & FLAG_ACC) || k > first;
    multiply(in_panels(t, b.columns, b.rows), how, dy + b.row, y + b.column,
             Items{work.items, work.count});
    t += panel_floats(b.columns, b.rows);
  }
  own.packed = 1;
}
