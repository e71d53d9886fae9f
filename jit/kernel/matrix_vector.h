// The GPU's products of up to four items with matrices beyond the registers. Reading the matrix is
// nearly all of the work then. So threads read it straight into registers, with several loads on
// their way at a time, instead of through stages that all of them wait for.
#pragma once

enum : u32 { FEW_ITEMS = 4 };

// How many items are left for these routines where others take 32 at a time.
VP u32 few_of(u32 count) { return count % 32 <= FEW_ITEMS ? count % 32 : 0; }

// Reads four neighbours, of which n are there. ALIGNED: all are, and they are read at once.
template <bool ALIGNED> VP void read_four(float *v, const float *from, u32 n) {
  if (ALIGNED)
    return read_run<4>(v, from);
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    v[i] = i < n ? from[i] : 0.0f;
}

VP bool is_aligned(const float *p) { return (u64)p % 16 == 0; }

// Sums of four rows of one lane's columns: side threads beside each other have the same columns.
template <u32 ITEMS, bool ALIGNED>
VP void sum_rows(const float *from, const Residence &m, u32 n, u32 lane, u32 lanes,
                 const float *const *x, float (*s)[4]) {
  constexpr u32 LOADS = ITEMS == 1 ? 8 : 4;
#pragma unroll 1
  for (u32 k = lane; k < m.cols; k += LOADS * lanes) {
    float v[LOADS][4] = {}, y[LOADS][ITEMS] = {};
#pragma unroll
    for (u32 j = 0; j < LOADS; j++)
      if (k + j * lanes < m.cols) {
        read_four<ALIGNED>(v[j], from + (size_t)(k + j * lanes) * m.rows, n);
#pragma unroll
        for (u32 item = 0; item < ITEMS; item++)
          y[j][item] = x[item][k + j * lanes];
      }
#pragma unroll
    for (u32 j = 0; j < LOADS; j++)
#pragma unroll
      for (u32 item = 0; item < ITEMS; item++)
#pragma unroll
        for (u32 i = 0; i < 4; i++)
          s[item][i] = FMA(v[j][i], y[j][item], s[item][i]);
  }
}

// y = W x of a processor's rows, four to a thread.
template <u32 ITEMS, bool ALIGNED>
VP_SLOW void multiply_rows(const Launch &l, const u32 *w, const u32 *items, u32 flags, u32 count,
                           const Residence &m, float *sums) {
  const Range mine = part_of(m, m.rows, m.part);
  const float *x[ITEMS];
#pragma unroll
  for (u32 item = 0; item < ITEMS; item++)
    x[item] = address(l, w[PRODUCT_SEGMENTS], 1, items[item < count ? 2 * item + 1 : 1]);
#pragma unroll 1
  for (u32 first = mine.lo; first < mine.hi; first += 4 * THREADS) {
    const u32 quads = min((mine.hi - first + 3) / 4, THREADS), side = quads == 3 ? 4 : quads;
    const u32 lanes = THREADS / side, lane = THREAD / side, row = first + THREAD % side * 4;
    float s[ITEMS][4] = {};
    if (row < mine.hi && lane < lanes)
      sum_rows<ITEMS, ALIGNED>(l.segment[SEG_PARAM] + m.offset + row, m, mine.hi - row, lane, lanes,
                               x, s);
    // Lanes of a warp meet first, if each warp has all rows.
    const bool by_warp = 32 % side == 0;
    if (by_warp)
#pragma unroll 1
      for (u32 d = side; d < 32; d *= 2)
#pragma unroll
        for (u32 i = 0; i < 4 * ITEMS; i++)
          s[i / 4][i % 4] += __shfl_xor_sync(0xFFFFFFFFu, s[i / 4][i % 4], d);
    const u32 parts = by_warp ? WARPS : lanes, part = by_warp ? THREAD / 32 : lane;
    __syncthreads(); // nobody reads the memory any more
    if (part < parts && (!by_warp || THREAD % 32 < side))
#pragma unroll
      for (u32 item = 0; item < ITEMS; item++)
        write_run<4>(sums + ((part * ITEMS + item) * side + THREAD % side) * 4, s[item]);
    __syncthreads();
    const RowsOf<4> rows = {l, w, flags, m, 0, first, mine.hi};
#pragma unroll 1
    for (u32 o = THREAD; o < count * 4 * side; o += THREADS) {
      float sum = 0.0f;
#pragma unroll 4
      for (u32 p = 0; p < parts; p++)
        sum += sums[p * ITEMS * 4 * side + o];
      rows.store(items + 2 * (o / (4 * side)), o % (4 * side), sum);
    }
  }
}

// Sums of n columns of one lane's rows, four of them each time.
template <u32 ITEMS, bool ALIGNED>
VP void sum_columns(const float *from, const Residence &m, u32 n, u32 lane, u32 lanes,
                    const float *const *x, float (*s)[4]) {
  constexpr u32 LOADS = ITEMS == 1 ? 2 : 1;
#pragma unroll 1
  for (u32 k = 4 * lane; k < m.rows; k += LOADS * 4 * lanes) {
    float v[LOADS][4][4] = {};
#pragma unroll
    for (u32 j = 0; j < LOADS; j++)
#pragma unroll
      for (u32 c = 0; c < 4; c++) {
        const u32 row = k + j * 4 * lanes;
        if (row < m.rows && c < n)
          read_four<ALIGNED>(v[j][c], from + (size_t)c * m.rows + row, m.rows - row);
      }
#pragma unroll
    for (u32 j = 0; j < LOADS; j++)
#pragma unroll
      for (u32 item = 0; item < ITEMS; item++) {
        const u32 row = k + j * 4 * lanes;
        float y[4] = {};
        if (row < m.rows)
          read_four<ALIGNED>(y, x[item] + row, m.rows - row);
#pragma unroll
        for (u32 c = 0; c < 4; c++)
#pragma unroll
          for (u32 i = 0; i < 4; i++)
            s[item][c] = FMA(v[j][c][i], y[i], s[item][c]);
      }
  }
}

// t = W^T dy of a processor's columns: four are a block, which one warp has, or several share.
template <u32 ITEMS, bool ALIGNED>
VP_SLOW void multiply_columns(const Launch &l, const u32 *w, const u32 *items, u32 flags, u32 count,
                              const Residence &m, float *sums) {
  const Range mine = part_of(m, m.cols, m.columns);
  const u32 blocks = (mine.hi - mine.lo + 3) / 4, warp = THREAD / 32;
  u32 share = WARPS; // warps of a block
  while (share > 1 && share * blocks > WARPS)
    share /= 2;
  const float *x[ITEMS];
#pragma unroll
  for (u32 item = 0; item < ITEMS; item++)
    x[item] = address(l, w[PRODUCT_T_SEGMENTS], 1, items[item < count ? 2 * item + 1 : 1]);
#pragma unroll 1
  for (u32 first = 0; first < blocks; first += WARPS / share) {
    const u32 column = mine.lo + 4 * (first + warp / share);
    float s[ITEMS][4] = {};
    if (column < mine.hi)
      sum_columns<ITEMS, ALIGNED>(l.segment[SEG_PARAM] + m.offset + (size_t)column * m.rows, m,
                                  mine.hi - column, warp % share * 32 + THREAD % 32, 32 * share, x,
                                  s);
#pragma unroll 1
    for (u32 d = 1; d < 32; d *= 2)
#pragma unroll
      for (u32 i = 0; i < 4 * ITEMS; i++)
        s[i / 4][i % 4] += __shfl_xor_sync(0xFFFFFFFFu, s[i / 4][i % 4], d);
    __syncthreads(); // nobody reads the memory any more
    if (THREAD % 32 == 0)
#pragma unroll
      for (u32 item = 0; item < ITEMS; item++)
        write_run<4>(sums + (item * WARPS + warp) * 4, s[item]);
    __syncthreads();
    const u32 columns = 4 * (WARPS / share), c = THREAD % columns, item = THREAD / columns;
    if (item >= count)
      continue;
    float sum = 0.0f;
    for (u32 p = 0; p < share; p++)
      sum += sums[(item * WARPS + c / 4 * share + p) * 4 + c % 4];
    const ColumnsOf<4> side = {l, w, flags, m, mine.lo + 4 * first, mine.hi};
    side.store(items + 2 * item, c, sum);
  }
}

// Multiplies the last few items of a product, and says how many.
VP u32 product_few(const Launch &l, const u32 *w, const u32 *items, u32 flags, u32 all,
                   const Residence &m, float *sums, Clocks &clocks) {
  const u32 count = m.part > 0 && m.at == NOT_SHARED ? few_of(all) : 0;
  if (count == 0)
    return 0;
  items += 2 * (all - count);
  const Range mine = part_of(m, m.rows, m.part);
  clocks.streamed((mine.hi - mine.lo) * m.cols);
  if (m.rows % 4 != 0 || !is_aligned(l.segment[SEG_PARAM] + m.offset))
    multiply_rows<FEW_ITEMS, false>(l, w, items, flags, count, m, sums);
  else if (count == 1)
    multiply_rows<1, true>(l, w, items, flags, count, m, sums);
  else
    multiply_rows<FEW_ITEMS, true>(l, w, items, flags, count, m, sums);
  return count;
}

// The same of a transposed product.
VP u32 product_t_few(const Launch &l, const u32 *w, const u32 *items, u32 flags, u32 all,
                     const Residence &m, float *sums, Clocks &clocks) {
  const u32 count = m.columns > 0 ? few_of(all) : 0;
  if (count == 0)
    return 0;
  items += 2 * (all - count);
  const Range mine = part_of(m, m.cols, m.columns);
  clocks.streamed((mine.hi - mine.lo) * m.rows);
  bool aligned = m.rows % 4 == 0 && is_aligned(l.segment[SEG_PARAM] + m.offset);
  for (u32 item = 0; item < count; item++)
    aligned = aligned && is_aligned(address(l, w[PRODUCT_T_SEGMENTS], 1, items[2 * item + 1]));
  if (!aligned)
    multiply_columns<FEW_ITEMS, false>(l, w, items, flags, count, m, sums);
  else if (count == 1)
    multiply_columns<1, true>(l, w, items, flags, count, m, sums);
  else
    multiply_columns<FEW_ITEMS, true>(l, w, items, flags, count, m, sums);
  return count;
}
