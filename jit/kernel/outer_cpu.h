// Outer products on the CPU: sums of dy x^T over a list of pairs of vectors. Copies of some pairs
// at a time lie as blocks of the gradient read them, from front to back; where the vectors lie
// themselves it takes 1.2 times as long.
#pragma once

// Columns of a block, so many as keep both units for FMA busy and leave registers for operands.
#define OUTER_BLOCK (VW == 16 ? 8 : 6)

// Copies of so many pairs: PANEL rows of each dy behind each other, then their next ones, and cols
// elements of each x.
struct Pairs {
  u32 count, rows, cols;
  float *dy, *x;
};

VP void copy_rows(const Pairs &to, const float *dy, const u32 *items) {
  for (u32 k = 0; k < to.count; k++)
    for (u32 r = 0; r < to.rows; r += PANEL)
      copy_floats(to.dy + r * to.count + k * PANEL, dy + items[2 * k] + r,
                  to.rows - r < PANEL ? to.rows - r : PANEL);
}

VP void copy_columns(const Pairs &to, const float *x, const u32 *items) {
  for (u32 k = 0; k < to.count; k++)
    copy_floats(to.x + k * to.cols, x + items[2 * k + 1], to.cols);
}

// What is done with the sums: g = scale * sum, or more by that; columns are ld apart.
struct Gradient {
  float *g;
  u32 ld;
  float scale;
  bool acc;
};

// NC columns, from c on, of the rows of a panel: NV vectors, of which the last may be cut.
template <int NV, int NC> VP void outer_block(const Gradient &to, const Pairs &from, u32 r, u32 c) {
  V sum[NC][NV];
  for (int j = 0; j < NC; j++)
    for (int v = 0; v < NV; v++)
      sum[j][v] = (V){};
  const float *dy = from.dy + r * from.count, *x = from.x + c;
  for (u32 k = 0; k < from.count; k++, dy += PANEL, x += from.cols) {
    V rows[NV];
    for (int v = 0; v < NV; v++)
      rows[v] = load(dy + v * VW);
    for (int j = 0; j < NC; j++) {
      V xc = splat(x[j]);
      for (int v = 0; v < NV; v++)
        sum[j][v] += rows[v] * xc;
    }
  }
  float *g = to.g + (size_t)c * to.ld + r;
  if (from.rows - r >= NV * VW) {
    for (int j = 0; j < NC; j++, g += to.ld)
      for (int v = 0; v < NV; v++) {
        V s = sum[j][v] * to.scale;
        store(g + v * VW, canonical(to.acc ? s + load(g + v * VW) : s));
      }
    return;
  }
  for (int j = 0; j < NC; j++, g += to.ld) {
    float lanes[NV * VW];
    for (int v = 0; v < NV; v++)
      store(lanes + v * VW, sum[j][v] * to.scale);
    for (u32 i = 0; i < from.rows - r; i++)
      g[i] = canonical(to.acc ? lanes[i] + g[i] : lanes[i]);
  }
}

template <int NV, int NC> VP u32 outer_blocks(const Gradient &to, const Pairs &from, u32 r, u32 c) {
  for (; c + NC <= from.cols; c += NC)
    outer_block<NV, NC>(to, from, r, c);
  return c;
}

template <int NV> VP void outer_panel(const Gradient &to, const Pairs &from, u32 r) {
  u32 c = outer_blocks<NV, OUTER_BLOCK>(to, from, r, 0);
  c = outer_blocks<NV, 4>(to, from, r, c);
  c = outer_blocks<NV, 2>(to, from, r, c);
  outer_blocks<NV, 1>(to, from, r, c);
}

// The sums of some pairs, in blocks whose operands stay in the cache. memory: the processor's.
VP void outer_part(float *g, u32 ld, const vpps_rows &part, const float *dy, const float *x,
                   const u32 *items, u32 count, float scale, bool acc, float *memory) {
  const u32 SIDE = VPPS_OUTER_SIDE;
  Pairs p = {count, 0, 0, memory, memory + SIDE * VPPS_OUTER_PAIRS};
  for (u32 row = 0; row < part.outer_rows; row += SIDE) {
    p.rows = part.outer_rows - row < SIDE ? part.outer_rows - row : SIDE;
    copy_rows(p, dy + part.outer_row + row, items);
    for (u32 column = 0; column < part.outer_columns; column += SIDE) {
      p.cols = part.outer_columns - column < SIDE ? part.outer_columns - column : SIDE;
      copy_columns(p, x + part.outer_column + column, items);
      const Gradient to = {g + (size_t)(part.outer_column + column) * ld + part.outer_row + row, ld,
                           scale, acc};
      for (u32 r = 0; r < p.rows; r += PANEL)
        if (p.rows - r > VW)
          outer_panel<2>(to, p, r);
        else
          outer_panel<1>(to, p, r);
    }
  }
}

VP_SLOW void outer(const Work &work, const vpps_residency &res, const Processor &p) {
  const Launch &l = work.l;
  const u32 *w = work.w, count = work.count;
  const vpps_matrix &m = res.matrix[w[OUTER_MATRIX]];
  const u32 *first = res.first + w[OUTER_MATRIX] * res.processors + p.id;
  float *memory = res.pairs + (size_t)p.id * 2 * VPPS_OUTER_SIDE * VPPS_OUTER_PAIRS;
  for (u32 k = first[0]; k < first[1]; k++) {
    u32 pieces = (count + VPPS_OUTER_PAIRS - 1) / VPPS_OUTER_PAIRS;
    for (u32 e = 0, n; e < count; e += n, pieces--) {
      n = (count - e + pieces - 1) / pieces;
      outer_part(address(l, w[OUTER_SEGMENTS], 0, w[OUTER_DST]), m.rows, res.parts[k],
                 address(l, w[OUTER_SEGMENTS], 1, 0), address(l, w[OUTER_SEGMENTS], 2, 0),
                 work.items + 2 * e, n, FLOAT_OF(w[OUTER_SCALE]), (work.flags & FLAG_ACC) || e > 0,
                 memory);
    }
  }
}
