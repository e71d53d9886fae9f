// Affine and AffineT on the GPU: the products of several matrices in slices, of one size, without
// meeting between them. d.rows_of<COLS>(matrix, use) calls use with the register array
// that has the processor's rows of a matrix of so many columns.
#pragma once

VP u32 term_of(const u32 *w, u32 k) { return w[AFFINE_MATRICES] >> 8 * k & 255u; }

// The arrays of an instruction's matrices.
template <class Device> struct Terms {
  const Device &d;
  const u32 *w;
  const u32 shift = 0;
  template <int COLS, class Use> VP_MEMBER void rows_of(u32 k, const Use &use) const {
    d.template rows_of<COLS>(term_of(w, k), use);
  }
};

template <int RPW, int COLS, int RING, int STAGE, class Device>
VP void affine_rows(const Device &d, const Launch &l, const u32 *w, const u32 *items, u32 flags,
                    u32 count, const Partition &part, float *shared) {
  u32 fn = w[AFFINE_FUNCTION];
  auto function = [=](float v) { return apply_behind(fn, v, 0.0f); };
  products<RPW, COLS, RING, STAGE>(Terms<Device>{d, w}, function, l, w, items, flags, count,
                                   w[0] >> 8 & 255u, part, shared);
}

// The items' vectors are copied once for all matrices.
template <int RPW, int COLS, int STAGE, class Device>
VP void affine_t_rows(const Device &d, const Launch &l, const Processor &p, const u32 *w,
                      const u32 *items, u32 flags, u32 count, const Partition &part,
                      float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = transposed_batch<RPW, COLS, STAGE>();
  const u32 terms = w[0] >> 8 & 255u;
  const float *from = segment_of(l, w[AFFINE_T_SEGMENTS], 1) + part.row;
  const float scale = FLOAT_OF(w[AFFINE_T_SCALE]);
  by_stages<T::ROWS, STAGE>(
      shared, from, items, count, part.height, [&](const float *dy, u32 first, u32 n) {
#pragma unroll 1
        for (u32 e = 0; e < n; e += BATCH) {
          float *to = address(l, w[AFFINE_T_SEGMENTS], 0, p.rank * w[AFFINE_T_APART]);
#pragma unroll 1
          for (u32 t = 0; t < terms; t++, to += p.group * w[AFFINE_T_APART]) {
            TransposedSums<RPW, COLS, BATCH> sums;
            d.template rows_of<COLS>(term_of(w, t),
                                     [&](const float *r) { sums.add(r, dy + e * T::ROWS); });
            sums.store(to, scale, items + 2 * (first + e), n - e, flags);
          }
        }
      });
}
