// The GPU's products with matrices beyond the registers: a processor's rows or columns come from
// memory, or rows from where the launch began by putting them into shared memory, in pieces of
// DEPTH elements of the sums, three of them in a ring of stages so that two are on their way while
// one is worked on. One piece serves up to 32 items.
//
// An operand of a stage is a panel: depth rows of N values that are multiplied at the same time, N
// rows or columns of the matrix, or items.
#pragma once

// Where a matrix is that is not, or not for every product, in registers; part 0: its rows are.
struct Residence {
  u32 rows, cols, offset; // of the matrix, in segment param
  u32 first;              // the processor of the first part
  u32 part;               // rows of a part
  u32 at;                 // in the processor's resident memory; NOT_SHARED: nowhere
  u32 columns; // columns that a processor forms of a transposed product; 0: partial results
};
enum : u32 { NOT_SHARED = 0xFFFFFFFFu };

// The processor's parts of n rows or columns.
struct Range {
  u32 lo, hi;
};
VP Range part_of(const Residence &m, u32 n, u32 each) {
  u64 from = (u64)((blockIdx.x + gridDim.x - m.first) % gridDim.x) * each;
  Range r = {from < n ? (u32)from : n, from + each < n ? (u32)from + each : n};
  return r;
}

// Where a panel has element n of row k. Rows of 32 values fill all banks; of any width, the four
// values of one row that a thread reads and the 8 rows by 4 that a warp copies across
// are in different ones.
template <int N> VP u32 swizzle(u32 k) { return 4 * (k * N / 32 % (N / 4)); }
template <int N> VP u32 place(u32 k, u32 n) { return k * N + (n ^ swizzle<N>(k)); }

// Copies rows k of [0, depth) of a panel from vectors in which neighbours in n are neighbours:
// row k is at from + k * apart, n of them count.
template <int N> VP void copy_along(float *panel, const float *from, u32 apart, u32 n, u32 depth) {
  if (n == N && apart % 4 == 0 && (u64)from % 16 == 0) {
    for (u32 i = THREAD; i < depth * (N / 4); i += THREADS) {
      u32 k = i / (N / 4), q = i % (N / 4) * 4;
      copy_async((u32 *)(panel + place<N>(k, q)), (const u32 *)(from + (size_t)k * apart + q));
    }
    return;
  }
  for (u32 i = THREAD; i < depth * N; i += THREADS)
    if (i % N < n)
      copy_word(panel + place<N>(i / N, i % N), from + (size_t)(i / N) * apart + i % N);
}

// The same from vectors in which neighbours in k are neighbours; of(n) is where vector n begins.
// A warp takes 8 of them for 4 vectors.
template <int N, class Of> VP void copy_across(float *panel, const Of &of, u32 n, u32 depth) {
  constexpr u32 BLOCKS = N / 4, STEP = WARPS / BLOCKS * 8;
  u32 warp = THREAD / 32, lane = THREAD % 32, mine = warp % BLOCKS * 4 + lane / 8;
  if (mine >= n)
    return;
  const float *from = of(mine);
  for (u32 k = warp / BLOCKS * 8 + lane % 8; k < depth; k += STEP)
    copy_word(panel + place<N>(k, mine), from + k);
}

// The vectors of items, from element first on.
struct ItemVectors {
  const Launch &l;
  u32 segments, slot;
  const u32 *items; // the word of the first one
  u32 first;
  VP_MEMBER const float *operator()(u32 n) const {
    return address(l, segments, slot, items[2 * n]) + first;
  }
};
// Columns of a matrix, from row first on.
struct MatrixColumns {
  const float *base;
  u32 rows, first;
  VP_MEMBER const float *operator()(u32 n) const { return base + (size_t)n * rows + first; }
};

// A thread's 4 by 4 outputs of M by N; where that leaves lanes over, they take rows of the panels
// in turn, as the warps do.
template <int M, int N> struct Tiles {
  static constexpr u32 COUNT = M / 4 * (N / 4), GROUPS = 32 / COUNT;
  u32 m, n, group;
  VP_MEMBER Tiles() {
    u32 lane = THREAD % 32, t = lane % COUNT;
    m = 4 * (t % (M / 4));
    n = 4 * (t / (M / 4));
    group = lane / COUNT;
  }
  // s[4 * j + i] += sum of a[k][m + i] * b[k][n + j]
  VP_MEMBER void multiply(const float *a, const float *b, u32 depth, float *s) const {
#pragma unroll 4
    for (u32 k = THREAD / 32 * GROUPS + group; k < depth; k += WARPS * GROUPS) {
      float4 x = *(const float4 *)(a + place<M>(k, m)), y = *(const float4 *)(b + place<N>(k, n));
      const float u[4] = {x.x, x.y, x.z, x.w}, v[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          s[4 * j + i] = FMA(u[i], v[j], s[4 * j + i]);
    }
  }
  // Sums the lanes' and warps' shares through FLOATS floats of shared memory; result(m, n, sum)
  // takes each sum.
  template <u32 FLOATS, class Result>
  VP_MEMBER void gather(float *s, float *buffer, const Result &result) const {
    constexpr u32 FIT = FLOATS / (M * N), AT_ONCE = FIT >= 8 ? 8 : FIT >= 4 ? 4 : FIT >= 2 ? 2 : 1;
    constexpr u32 EACH = (M * N + THREADS - 1) / THREADS;
    u32 warp = THREAD / 32;
#pragma unroll
    for (int i = 0; i < 16; i++)
#pragma unroll
      for (u32 d = COUNT; d < 32; d *= 2)
        s[i] += __shfl_xor_sync(0xFFFFFFFFu, s[i], d);
    float sum[EACH] = {};
    for (u32 first = 0; first < WARPS; first += AT_ONCE) {
      __syncthreads(); // nobody reads the buffer any more
      if (group == 0 && warp >= first && warp < first + AT_ONCE)
#pragma unroll
        for (int j = 0; j < 4; j++)
          *(float4 *)(buffer + ((warp - first) * N + n + j) * M + m) =
              make_float4(s[4 * j], s[4 * j + 1], s[4 * j + 2], s[4 * j + 3]);
      __syncthreads();
#pragma unroll
      for (u32 e = 0; e < EACH; e++)
#pragma unroll
        for (u32 g = 0; g < AT_ONCE; g++)
          if (THREAD + e * THREADS < M * N)
            sum[e] += buffer[g * M * N + THREAD + e * THREADS];
    }
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
      u32 o = THREAD + e * THREADS;
      if (o < M * N)
        result(o % M, o / M, sum[e]);
    }
  }
};

// What the two products differ in: where the matrix's side of a piece comes from, and what becomes
// of a sum.
template <int M> struct RowsOf { // y = scale * W x + bias
  const Launch &l;
  const u32 *w;
  u32 flags;
  const Residence &matrix;
  const float *resident; // the part's panel, all of it; 0: it is copied
  u32 row, end;          // of the block
  VP_MEMBER const float *side(const float *copied, u32 k) const {
    return resident ? resident + (size_t)k * M : copied;
  }
  VP_MEMBER void copy(float *panel, u32 k, u32 depth) const {
    if (!resident)
      copy_along<M>(panel, l.segment[SEG_PARAM] + matrix.offset + row + (size_t)k * matrix.rows,
                    matrix.rows, end - row < M ? end - row : M, depth);
  }
  VP_MEMBER void store(const u32 *item, u32 m, float sum) const {
    u32 r = row + m;
    if (r >= end)
      return;
    sum *= FLOAT_OF(w[PRODUCT_SCALE]);
    if (flags & FLAG_BIAS)
      sum = FMA(address(l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS])[r],
                FLOAT_OF(w[PRODUCT_BIAS_SCALE]), sum);
    float *y = address(l, w[PRODUCT_SEGMENTS], 0, item[0]) + r;
    *y = canonical(behind_product(w[0] >> 8 & 255u, flags & FLAG_ACC ? *y + sum : sum));
  }
};
template <int M> struct ColumnsOf { // t = scale * W^T dy
  const Launch &l;
  const u32 *w;
  u32 flags;
  const Residence &matrix;
  u32 row, end; // columns of the block
  VP_MEMBER const float *side(const float *copied, u32) const { return copied; }
  VP_MEMBER void copy(float *panel, u32 k, u32 depth) const {
    MatrixColumns of = {l.segment[SEG_PARAM] + matrix.offset + (size_t)row * matrix.rows,
                        matrix.rows, k};
    copy_across<M>(panel, of, end - row < M ? end - row : M, depth);
  }
  VP_MEMBER void store(const u32 *item, u32 m, float sum) const {
    if (row + m < end)
      put(address(l, w[PRODUCT_T_SEGMENTS], 0, item[0]) + row + m,
          sum * FLOAT_OF(w[PRODUCT_T_SCALE]), flags);
  }
};

// A block of M rows or columns times all items, N at a time: sums of length elements.
template <int M, int N, class Side>
VP void stream_items(const Launch &l, u32 segments, const u32 *items, u32 count, u32 length,
                     const Side &side, float *stages) {
  constexpr u32 DEPTH = N == 8 ? 2 * VPPS_DEPTH : VPPS_DEPTH, STAGE = DEPTH * (M + N);
  u32 pieces = (length + DEPTH - 1) / DEPTH, all = (count + N - 1) / N * pieces;
  auto copy = [&](u32 t) {
    if (t < all) {
      u32 first = t / pieces * N, k = t % pieces * DEPTH;
      u32 depth = length - k < DEPTH ? length - k : DEPTH;
      float *stage = stages + t % 3 * STAGE;
      side.copy(stage, k, depth);
      ItemVectors of = {l, segments, 1, items + 2 * first + 1, k};
      copy_across<N>(stage + DEPTH * M, of, count - first < N ? count - first : N, depth);
    }
    commit_copies();
  };
  Tiles<M, N> tiles;
  float s[16];
  __syncthreads(); // the stages are free
  copy(0);
  copy(1);
#pragma unroll 1
  for (u32 t = 0; t < all; t++) {
    u32 k = t % pieces * DEPTH, first = t / pieces * N;
    float *stage = stages + t % 3 * STAGE;
    if (k == 0)
#pragma unroll
      for (int i = 0; i < 16; i++)
        s[i] = 0.0f;
    wait_for_copies();
    __syncthreads(); // everybody's copies are here, and the stage of the piece before is free
    copy(t + 2);
    tiles.multiply(side.side(stage, k), stage + DEPTH * M, length - k < DEPTH ? length - k : DEPTH,
                   s);
    if (t % pieces == pieces - 1)
      tiles.template gather<STAGE>(s, stage, [&](u32 m, u32 n, float sum) {
        if (first + n < count)
          side.store(items + 2 * (first + n), m, sum);
      });
  }
}

// Items 32 at a time; a rest of up to 8 items is one block of 8.
template <int M, class Side>
VP void stream_all(const Launch &l, u32 segments, const u32 *items, u32 count, u32 length,
                   const Side &side, float *stages) {
  u32 rest = count % 32, many = rest > 8 ? count : count - rest;
  if (many > 0)
    stream_items<M, 32>(l, segments, items, many, length, side, stages);
  if (many < count)
    stream_items<M, 8>(l, segments, items + 2 * many, rest, length, side, stages);
}

template <int M>
VP_SLOW void product_streamed(const Launch &l, const u32 *w, const u32 *items, u32 flags, u32 count,
                              const Residence &m, float *stages, const float *resident,
                              Clocks &clocks) {
  Range mine = part_of(m, m.rows, m.part);
  if (m.at == NOT_SHARED)
    clocks.streamed((count + 31) / 32 * (mine.hi - mine.lo) * m.cols);
  for (u32 row = mine.lo; row < mine.hi; row += M) {
    const float *panel =
        m.at == NOT_SHARED ? 0 : resident + m.at + (size_t)(row - mine.lo) * m.cols;
    RowsOf<M> side = {l, w, flags, m, panel, row, mine.hi};
    stream_all<M>(l, w[PRODUCT_SEGMENTS], items, count, m.cols, side, stages);
  }
  wait_for_all_copies();
}

template <int M>
VP_SLOW void product_t_streamed(const Launch &l, const u32 *w, const u32 *items, u32 flags,
                                u32 count, const Residence &m, float *stages, Clocks &clocks) {
  Range mine = part_of(m, m.cols, m.columns);
  clocks.streamed((count + 31) / 32 * (mine.hi - mine.lo) * m.rows);
  for (u32 column = mine.lo; column < mine.hi; column += M) {
    ColumnsOf<M> side = {l, w, flags, m, column, mine.hi};
    stream_all<M>(l, w[PRODUCT_T_SEGMENTS], items, count, m.rows, side, stages);
  }
  wait_for_all_copies();
}

// The processor's rows of a matrix that stays in shared memory during the launch.
template <int M>
VP void load_shared(const Residence &m, const Launch &l, float *resident, Clocks &clocks) {
  Range mine = part_of(m, m.rows, m.part);
  for (u32 row = mine.lo; row < mine.hi; row += M)
    copy_along<M>(resident + m.at + (size_t)(row - mine.lo) * m.cols,
                  l.segment[SEG_PARAM] + m.offset + row, m.rows,
                  mine.hi - row < M ? mine.hi - row : M, m.cols);
  clocks.loaded(THREAD == 0 ? (mine.hi - mine.lo) * m.cols : 0);
}
