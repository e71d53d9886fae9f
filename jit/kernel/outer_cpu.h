// Outer products on the CPU: sums of dy x^T over a list of pairs of vectors. Copies of some pairs
// at a time lie as blocks of the gradient read them, from front to back; where the vectors lie
// themselves it takes 1.2 times as long.
#pragma once

// Columns of a block, so many as keep both units for FMA busy and leave registers for operands; and
// those that are copied at a time.
enum : u32 { OUTER_BLOCK = VW == 16 ? 8 : 6, OUTER_COLUMNS = 8 * OUTER_BLOCK };
static_assert(OUTER_COLUMNS <= (u32)VPPS_OUTER_COLUMNS, "the caller's memory has room for them");

// Copies of count pairs: PANEL rows of each dy behind each other, then their next ones, and
// OUTER_BLOCK columns of each x, then their next ones.
struct Pairs {
  u32 count, rows;
  float *dy, *x;
};

VP void copy_rows(const Pairs &to, const float *dy, const u32 *items) {
  for (u32 k = 0; k < to.count; k++)
    for (u32 r = 0; r < to.rows; r += PANEL)
      copy_floats(to.dy + r * to.count + k * PANEL, dy + items[2 * k] + r,
                  to.rows - r < PANEL ? to.rows - r : PANEL);
}

VP void copy_columns(const Pairs &to, const float *x, const u32 *items, u32 cols) {
  for (u32 k = 0; k < to.count; k++) {
    const float *from = x + items[2 * k + 1];
    float *at = to.x + k * OUTER_BLOCK;
    u32 c = 0;
    for (; c + OUTER_BLOCK <= cols; c += OUTER_BLOCK, at += to.count * OUTER_BLOCK)
      __builtin_memcpy(at, from + c, OUTER_BLOCK * sizeof *from);
    for (; c < cols; c++)
      *at++ = from[c];
  }
}

// What is done with the sums: g = scale * sum, or more by that; columns are ld apart.
struct Gradient {
  float *g;
  u32 ld;
  float scale;
  bool acc;
};

// NC columns of the rows of a panel, from r on: NV vectors, of which the last may be cut.
template <int NV, int NC> VP void outer_block(const Gradient &to, const Pairs &from, u32 r) {
  V sum[NC][NV];
  UNROLLED
  for (int j = 0; j < NC; j++) {
    UNROLLED
    for (int v = 0; v < NV; v++)
      sum[j][v] = (V){};
  }
  const float *dy = from.dy + r * from.count, *x = from.x;
  for (u32 k = 0; k < from.count; k++, dy += PANEL, x += OUTER_BLOCK) {
    V rows[NV];
    UNROLLED
    for (int v = 0; v < NV; v++)
      rows[v] = load(dy + v * VW);
    UNROLLED
    for (int j = 0; j < NC; j++) {
      V xc = splat(x[j]);
      UNROLLED
      for (int v = 0; v < NV; v++)
        sum[j][v] += rows[v] * xc;
    }
  }
  if (to.scale != 1.0f) {
    UNROLLED
    for (int j = 0; j < NC; j++) {
      UNROLLED
      for (int v = 0; v < NV; v++)
        sum[j][v] *= to.scale;
    }
  }
  const u32 last = from.rows - r - (NV - 1) * VW; // rows of the last vector, or more
  UNROLLED
  for (int j = 0; j < NC; j++)
    store_sums<NV>(to.g + r + (size_t)j * to.ld, sum[j], last, to.acc);
}

// NC columns, from c on of those that are copied, of all rows.
template <int NC>
OUT_OF_LINE u32 outer_columns(const Gradient &to, const Pairs &from, u32 c, u32 cols) {
  for (; c + NC <= cols; c += NC) {
    Gradient g = to;
    g.g += (size_t)c * to.ld;
    Pairs p = from;
    p.x += c / OUTER_BLOCK * from.count * OUTER_BLOCK + c % OUTER_BLOCK;
    for (u32 r = 0; r < from.rows; r += PANEL)
      if (from.rows - r > VW)
        outer_block<2, NC>(g, p, r);
      else
        outer_block<1, NC>(g, p, r);
  }
  return c;
}

// The sums of some pairs. Columns are written from front to back. memory: the processor's.
VP void outer_part(float *g, u32 ld, const vpps_block &part, const float *dy, const float *x,
                   const u32 *items, u32 count, float scale, bool acc, float *memory) {
  const u32 most = VPPS_OUTER_FLOATS / count / PANEL * PANEL; // rows whose copies stay in the cache
  for (u32 row = 0; row < part.rows; row += most) {
    const u32 rows = part.rows - row < most ? part.rows - row : most;
    const Pairs p = {count, rows, memory, memory + VPPS_OUTER_FLOATS};
    copy_rows(p, dy + part.row + row, items);
    for (u32 column = 0; column < part.columns; column += OUTER_COLUMNS) {
      const u32 left = part.columns - column;
      const u32 cols = left < OUTER_COLUMNS ? left : (u32)OUTER_COLUMNS;
      copy_columns(p, x + part.column + column, items, cols);
      const Gradient to = {g + (size_t)(part.column + column) * ld + part.row + row, ld, scale,
                           acc};
      u32 c = outer_columns<OUTER_BLOCK>(to, p, 0, cols);
      c = outer_columns<4>(to, p, c, cols);
      c = outer_columns<2>(to, p, c, cols);
      outer_columns<1>(to, p, c, cols);
    }
  }
}

VP_SLOW void outer(const Work &work, const vpps_residency &res, const Processor &p) {
  const Launch &l = work.l;
  const u32 *w = work.w, count = work.count;
  const vpps_matrix &m = res.matrix[w[OUTER_MATRIX]];
  const u32 *first = res.first_block + w[OUTER_MATRIX] * res.processors + p.id;
  float *memory = res.pairs + (size_t)p.id * VPPS_PAIR_FLOATS;
  for (u32 k = first[0]; k < first[1]; k++) {
    u32 pieces = (count + VPPS_OUTER_PAIRS - 1) / VPPS_OUTER_PAIRS;
    for (u32 e = 0, n; e < count; e += n, pieces--) {
      n = (count - e + pieces - 1) / pieces;
      outer_part(address(l, w[OUTER_SEGMENTS], 0, w[OUTER_DST]), m.rows, res.blocks[k],
                 address(l, w[OUTER_SEGMENTS], 1, 0), address(l, w[OUTER_SEGMENTS], 2, 0),
                 work.items + 2 * e, n, FLOAT_OF(w[OUTER_SCALE]), (work.flags & FLAG_ACC) || e > 0,
                 memory);
    }
  }
}
