// Affine and AffineT on the GPU: the products of several matrices in slices, of one size, without
// meeting between them. held.rows_of<COLS>(matrix, use) calls use with the register array
// that has the processor's rows of a matrix of so many columns.
#pragma once

VP u32 term_of(const u32 *w, u32 k) { return w[AFFINE_MATRICES] >> 8 * k & 255u; }

// One result: all of the vectors of two matrices are on their way at once.
template <int RPW, int COLS, class Held, class Function>
VP void affine_once(const Held &held, const Function &function, const Launch &l, const u32 *w,
                    const u32 *items, u32 flags, const Partition &part, float *sums) {
  typedef Tile<RPW, COLS> T;
  const u32 terms = w[0] >> 8 & 255u;
  const float *from = segment_of(l, w[AFFINE_SEGMENTS], 1);
  Results<T::ROWS, 1> y(1 + terms);
  y.fetch(l, w, flags, items, 1, part);
  ProductSums<RPW, COLS, 1> all;
#pragma unroll 1
  for (u32 k = 0; k < terms; k += 2) {
    float x[2][T::TC];
#pragma unroll
    for (u32 j = 0; j < 2; j++)
      if (k + j < terms)
#pragma unroll
        for (int q = 0; q < T::TC; q += T::V)
          read_some<T::V>(x[j] + q, from + items[1 + k + j] + T::column(q),
                          COLS - (int)T::column(q));
#pragma unroll
    for (u32 j = 0; j < 2; j++) {
      auto read = [&](float *v, int, int q) {
#pragma unroll
        for (int i = 0; i < T::V; i++)
          v[i] = x[j][q + i];
      };
      if (k + j < terms)
        held.template rows_of<COLS>(term_of(w, k + j), [&](const float *r) {
          multiply_items<RPW, COLS, 1>(r, read, all.s);
        });
    }
  }
  __syncthreads(); // the buffers are free
  sum_products<RPW, COLS, 1>(all.s, sums + THREAD / 32 * T::ROWS);
  __syncthreads();
  y.store(sums, l, w, flags, items, 1, part, function);
}

// As product_rows, but that the ring has BATCH vectors of each matrix in turn.
template <int RPW, int COLS, int RING, int STAGE, class Held>
VP void affine_rows(const Held &held, const Launch &l, const u32 *w, const u32 *items, u32 flags,
                    u32 count, const Partition &part, float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = product_batch<RPW, COLS, (RING / 2 < STAGE ? RING / 2 : STAGE)>();
  constexpr int DEPTH = RING / BATCH, SUMS = STAGE * (int)WARPS * T::ROWS;
  const u32 warp = THREAD / 32, terms = w[0] >> 8 & 255u, words = 1 + terms;
  const u32 fn = w[AFFINE_FUNCTION];
  const float *from = segment_of(l, w[AFFINE_SEGMENTS], 1);
  float *ring = shared + warp * RING * T::PART, *sums = shared + RING * T::WIDTH;
  auto function = [=](float v) { return apply_behind(fn, v, 0.0f); };
  if (count == 1)
    return affine_once<RPW, COLS>(held, function, l, w, items, flags, part, sums);
  __syncthreads();                        // the buffers are free
  u32 next = 0, term = 0, to = 0, at = 0; // what is copied next, to where; where the next one is
  auto copy = [&] {
    if (next < count)
      copy_part<RPW, COLS, BATCH>(ring + to * BATCH * T::PART, from,
                                  items + words * next + 1 + term, words, count - next);
    commit_copies();
    to = to + 1 < DEPTH ? to + 1 : 0;
    if (++term == terms) {
      term = 0;
      next += BATCH;
    }
  };
#pragma unroll 1
  for (int d = 0; d + 1 < DEPTH; d++)
    copy();
#pragma unroll 1
  for (u32 done = 0; done < count; done += STAGE) {
    u32 here = min(count - done, (u32)STAGE);
    float *into = sums + done / STAGE % 2 * SUMS;
    Results<T::ROWS, STAGE> y(words);
    y.fetch(l, w, flags, items + words * done, here, part);
#pragma unroll 1
    for (u32 b = 0; b < here; b += BATCH) {
      ProductSums<RPW, COLS, BATCH> all;
#pragma unroll 1
      for (u32 k = 0; k < terms; k++) {
        wait_for_all_but<DEPTH - 2>();
        __syncwarp(); // the batch is here, and that of the batch before free
        copy();
        const float *x = ring + at * BATCH * T::PART;
        at = at + 1 < DEPTH ? at + 1 : 0;
        auto read = [&](float *v, int i, int q) {
          read_run<T::V>(v, x + i * T::PART + T::in_part(q));
        };
        held.template rows_of<COLS>(term_of(w, k), [&](const float *r) {
          multiply_items<RPW, COLS, BATCH>(r, read, all.s);
        });
      }
      sum_products<RPW, COLS, BATCH>(all.s, into + (b * WARPS + warp) * T::ROWS);
    }
    __syncthreads();
    y.store(into, l, w, flags, items + words * done, here, part, function);
  }
}

// The items' vectors are copied once for all matrices.
template <int RPW, int COLS, int STAGE, class Held>
VP void affine_t_rows(const Held &held, const Launch &l, const Processor &p, const u32 *w,
                      const u32 *items, u32 flags, u32 count, const Partition &part,
                      float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = transposed_batch<RPW, COLS, STAGE>(), ALL = STAGE * T::ROWS;
  const u32 terms = w[0] >> 8 & 255u, stages = (count + STAGE - 1) / STAGE;
  const float *from = segment_of(l, w[AFFINE_T_SEGMENTS], 1) + part.row;
  const float scale = FLOAT_OF(w[AFFINE_T_SCALE]);
  __syncthreads(); // the buffers are free
#pragma unroll 1
  for (u32 k = 0; k < stages + 2; k++) {
    if (k > 1) { // what was begun two stages ago is here, and all have finished the stage before
      wait_for_copies();
      __syncthreads();
    }
    u32 e = k * STAGE;
    if (k < stages)
      stage<T::ROWS, STAGE, false>(shared + k % 3 * ALL, from, items + 2 * e + 1, count - e, 0,
                                   part.end - part.row);
    commit_copies();
    if (k < 2)
      continue;
    const float *dy = shared + (k - 2) % 3 * ALL;
    e -= 2 * STAGE;
    const u32 end = min(count, e + STAGE);
#pragma unroll 1
    for (; e < end; e += BATCH, dy += BATCH * T::ROWS) {
      float *to = address(l, w[AFFINE_T_SEGMENTS], 0, p.rank * w[AFFINE_T_APART]);
#pragma unroll 1
      for (u32 t = 0; t < terms; t++, to += p.group * w[AFFINE_T_APART]) {
        float s[BATCH * T::TC] = {};
        held.template rows_of<COLS>(
            term_of(w, t), [&](const float *r) { transposed_rows<RPW, COLS, BATCH>(r, dy, s); });
        transposed_store<RPW, COLS, BATCH>(s, to, scale, items + 2 * e, end - e, flags);
      }
    }
  }
}
