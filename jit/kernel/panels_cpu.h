// How products read a processor's rows of a matrix, on the CPU. In the matrix itself they lie far
// apart, each column's in other lines of the cache and, of large matrices, in another page. In
// panels they are read from front to back: at 128 x 128 out of the third cache that takes 0.5 to
// 0.8 of the time, at 2048 x 2048 a third.
#pragma once

// Rows of a column that are neighbours: those of a panel, behind which come those of the next
// column.
enum : u32 { PANEL = 2 * VW };
static_assert(VPPS_PANEL % PANEL == 0, "the caller's memory has room for whole panels");

// Rows as products read them, whether they are in panels or not.
struct Rows {
  const float *w;
  u32 rows, cols;
  size_t step, panel; // floats to the next column and to the next PANEL rows
  bool padded;        // the last vector of a column can be read whole

  VP_MEMBER const float *at(u32 row) const { return w + row / PANEL * panel + row % PANEL; }
  // Some of them, from one on that begins a panel.
  VP_MEMBER Rows some(u32 row, u32 most) const {
    Rows r = *this;
    r.w = at(row), r.rows = rows - row < most ? rows - row : most;
    return r;
  }
};

// Where they are in a column-major matrix whose columns are ld apart.
VP Rows in_place(const float *w, u32 ld, u32 rows, u32 cols) {
  return Rows{w, rows, cols, ld, PANEL, rows % VW == 0};
}

// Where they are in panels, the last of which is as long as all others.
VP Rows in_panels(const float *t, u32 rows, u32 cols) {
  return Rows{t, rows, cols, PANEL, (size_t)PANEL * cols, true};
}
VP size_t panel_floats(u32 rows, u32 cols) {
  return (size_t)((rows + PANEL - 1) / PANEL * PANEL) * cols;
}

// Rows of w, whose columns are ld apart, into panels at t.
VP_SLOW void pack(const float *w, u32 ld, u32 rows, u32 cols, float *t) {
  const u32 TOGETHER = 8 * PANEL; // rows read at a time, of one column after another
  for (u32 r = 0; r < rows; r += TOGETHER)
    for (u32 c = 0; c < cols; c++)
      for (u32 i = r; i < rows && i < r + TOGETHER; i += PANEL) {
        const float *from = w + (size_t)c * ld + i;
        float *to = t + (size_t)i * cols + (size_t)c * PANEL;
        copy_floats(to, from, rows - i < PANEL ? rows - i : PANEL);
      }
}

// Elements of a and b in turn, from element first of each on.
VP V interleave(V a, V b, int first) {
#if defined(__clang__) // makes a shuffle of it
  V r = a;
  for (int i = 0; i < VW; i++)
    r[i] = (i % 2 ? b : a)[first + i / 2];
  return r;
#else
  typedef int Mask __attribute__((vector_size(VW * 4)));
  Mask mask;
  for (int i = 0; i < VW; i++)
    mask[i] = first + i / 2 + i % 2 * VW;
  return __builtin_shuffle(a, b, mask);
#endif
}

// A block of VW by VW, or its first rows and columns, by as many perfect shuffles of its rows as VW
// has bits. Behind the last column of the block it leaves zeros.
VP void transpose_block(const float *from, size_t from_ld, u32 rows, u32 cols, float *to) {
  V v[VW], t[VW];
  for (u32 i = 0; i < VW; i++)
    v[i] = i < cols ? load_some(from + i * from_ld, rows) : (V){};
  for (int n = 1; n < VW; n *= 2) {
    for (int i = 0; i < VW / 2; i++) {
      t[2 * i] = interleave(v[i], v[i + VW / 2], 0);
      t[2 * i + 1] = interleave(v[i], v[i + VW / 2], VW / 2);
    }
    for (int i = 0; i < VW; i++)
      v[i] = t[i];
  }
  for (u32 i = 0; i < VW; i++)
    if (i < rows)
      store(to + i * PANEL, v[i]);
}

// Columns of w, as rows of its transpose, into panels at t.
VP_SLOW void pack_transposed(const float *w, size_t ld, u32 rows, u32 cols, float *t) {
  for (u32 c = 0; c < cols; c += PANEL, t += (size_t)PANEL * rows)
    for (u32 r = 0; r < rows; r += VW)
      for (u32 i = c; i < cols && i < c + PANEL; i += VW) {
        const float *from = w + i * ld + r;
        float *to = t + (size_t)r * PANEL + i - c;
        if (r + VW <= rows && i + VW <= cols)
          transpose_block(from, ld, VW, VW, to);
        else
          transpose_block(from, ld, rows - r, cols - i, to);
      }
}

// Whether rows are in panels for a product of so many vectors, which are all that a launch has
// formed with them before and those to come now. They are packed as soon as what that takes would
// have been saved: 24 vectors with columns of up to 512 elements, fewer where these are longer.
VP bool worth_packing(const vpps_matrix &m, u32 vectors) {
  return (u64)vectors * (m.rows > 512 ? m.rows : 512) >= 24 * 512;
}
