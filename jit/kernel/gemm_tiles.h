// Products of any size in tiles, each of which a warp forms for itself (gemm.h).
#pragma once

// A warp forms tiles of results. It copies the stages of its own terms to shared memory, one while
// it works on another, and multiplies without waiting for other warps. Where there are more warps
// than tiles, several share the terms of a tile and add up their sums in the end.
enum : u32 {
  GEMM_TILE = 32,  // rows and columns of a tile
  GEMM_DEPTH = 16, // terms of a stage
  GEMM_STAGES = 2,
  GEMM_FOURS = GEMM_TILE * GEMM_DEPTH / 4 / 32 // of a panel, for each lane to copy
};

struct GemmStage {
  float a[GEMM_DEPTH * GEMM_TILE], b[GEMM_DEPTH * GEMM_TILE];
};

// gemmMemory (jit/source.go) is what a warp has of it.
struct GemmMemory {
  GemmStage stages[GEMM_STAGES][VPPS_GEMM_WARPS];
};

// Where in a panel term k of row or column n is. Four neighbours of the operand stay neighbours:
// terms, or rows or columns. They lie so that lanes read different banks.
VP u32 in_panel(bool terms, u32 n, u32 k) {
  return terms ? 4 * ((4 * n + k / 4) ^ (n & 4)) + k % 4
               : 4 * ((8 * k + n / 4) ^ (k / 4 * 2)) + n % 4;
}

VP bool terms_are_neighbours(u32 n_step, u32 k_step) { return k_step == 1 && n_step != 1; }

// Starts copying a panel of an operand: its first ns rows or columns, and its terms from term on up
// to depth. The rest is zeros. Term k of row or column n is at from + n * n_step + k * k_step.
VP void copy_panel(float *panel, const float *from, u32 n_step, u32 k_step, u32 ns, u32 term,
                   u32 depth) {
  const u32 lane = as_new(THREAD % 32); // else addresses would be kept in registers
  const bool terms = terms_are_neighbours(n_step, k_step);
  const u32 ks = depth - term;
  from += term * k_step;
  if ((terms ? n_step % 4 == 0 : n_step == 1 && k_step % 4 == 0) && (u64)from % 16 == 0) {
    const u32 n = terms ? lane / 4 : lane % 8 * 4, k = terms ? lane % 4 * 4 : lane / 8;
    const u32 next = terms ? 8 * n_step : 4 * k_step;
    const float *at = from + (n * n_step + k * k_step);
    if (ns >= GEMM_TILE && ks >= GEMM_DEPTH) { // most are
#pragma unroll
      for (u32 i = 0; i < GEMM_FOURS; i++, at += next)
        copy_async((u32 *)panel + 4 * (32 * i + (lane ^ (terms ? n & 4 : 2 * i))), (const u32 *)at);
      return;
    }
    const int left = terms ? (int)(ks - k) : (int)(ns - n);
    const u32 count = left > 0 ? min(left, 4) : 0;
#pragma unroll
    for (u32 i = 0; i < GEMM_FOURS; i++, at += next) {
      const bool there = count > 0 && (terms ? n + 8 * i < ns : k + 4 * i < ks);
      copy_some_or_zero(panel + 4 * (32 * i + (lane ^ (terms ? n & 4 : 2 * i))), there ? at : from,
                        there ? count : 0);
    }
    return;
  }
#pragma unroll 1
  for (u32 i = lane; i < GEMM_TILE * GEMM_DEPTH; i += 32) {
    const u32 n = terms ? i / GEMM_DEPTH : i % GEMM_TILE,
              k = terms ? i % GEMM_DEPTH : i / GEMM_TILE;
    const bool there = n < ns && k < ks;
    copy_word_or_zero(panel + in_panel(terms, n, k), there ? from + n * n_step + k * k_step : from,
                      there);
  }
}

// A lane's results in a tile are of 4 rows and 8 columns, which are neighbours: s[4 * j + i].
VP u32 gemm_row() { return THREAD % 32 / 4 * 4; }
VP u32 gemm_column() { return THREAD % 4 * 8; }

#if VPPS_PARTS
// Terms k and k + 1 of a lane's four rows or columns.
VP void read_terms(float (*v)[4], const float *panel, bool terms, u32 n, u32 k) {
  if (!terms) {
    read_run<4>(v[0], panel + in_panel(false, n, k));
    read_run<4>(v[1], panel + in_panel(false, n, k + 1));
    return;
  }
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    float x[2];
    read_run<2>(x, panel + in_panel(true, n + i, k));
    v[0][i] = x[0], v[1][i] = x[1];
  }
}

// The parts of terms t and t + 4, t = lane % 4, of a lane's four rows: in the terms of
// multiply_parts they are g and g + 8 of block 0, and then of block 1.
VP void split_rows(Split<4> *a, const float (*u)[4]) {
#pragma unroll
  for (int i = 0; i < 8; i++)
    a[i % 4 / 2].set(i / 4 * 2 + i % 2, u[i / 4][i % 4]);
}

// Adds products of 8 terms to a lane's results s[4 * j + i]: those of its rows and of column g of
// block j, whose terms t and t + 4 are first and second. The sums are added up in FP32, since
// tensor cores cut off where FP32 rounds. never is 0, which the compiler does not know. Where
// weights crowd the registers, a branch after the first products has it begin both sums. It would
// form one after the other to save registers: each product of a sum waits some 30 cycles for the
// one before.
VP void multiply_column(const Split<4> *a, float first, float second, int j, float *s, u32 never) {
  Split<2> b;
  b.set(0, first), b.set(1, second);
  float d[2][4];
  do
#pragma unroll
    for (int m = 0; m < 2; m++) {
      d[m][0] = d[m][1] = d[m][2] = d[m][3] = 0.0f;
      multiply_parts(d[m], a[m].low, b.high);
    }
  while (VPPS_CROWDED && as_new(never));
#pragma unroll
  for (int m = 0; m < 2; m++)
    multiply_parts(d[m], a[m].high, b.low);
#pragma unroll
  for (int m = 0; m < 2; m++)
    multiply_parts(d[m], a[m].high, b.high);
#pragma unroll
  for (int i = 0; i < 8; i++)
    s[4 * (j + i % 2 * 4) + i / 4 * 2 + i % 4 / 2] += d[i / 4][i % 4];
}

// Adds a stage's products to a lane's results: rows 4 g + i and columns 4 g + j of a tile.
VP void multiply_stage(const GemmStage &stage, bool a_terms, bool b_terms, float *s, u32 never) {
  const u32 lane = as_new(THREAD % 32); // else addresses would be kept in registers
  const u32 n = lane / 4 * 4, k = lane % 4 * 4;
#pragma unroll 1
  for (u32 step = 0; step < 4; step += 2) {
    float u[2][4], v[2][4];
    read_terms(u, stage.a, a_terms, n, k + step);
    read_terms(v, stage.b, b_terms, n, k + step);
    Split<4> a[2];
    split_rows(a, u);
#pragma unroll
    for (int j = 0; j < 4; j++)
      multiply_column(a, v[0][j], v[1][j], j, s, never);
  }
}
#else
// The same without tensor cores.
VP void multiply_stage(const GemmStage &stage, bool a_terms, bool b_terms, float *s, u32) {
#pragma unroll 1
  for (u32 k = 0; k < GEMM_DEPTH; k++) {
    float u[4], v[8];
#pragma unroll
    for (u32 i = 0; i < 4; i++)
      u[i] = stage.a[in_panel(a_terms, gemm_row() + i, k)];
#pragma unroll
    for (u32 j = 0; j < 8; j++)
      v[j] = stage.b[in_panel(b_terms, gemm_column() + j, k)];
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        s[4 * j + i] = FMA(u[i], v[j], s[4 * j + i]);
  }
}
#endif

// How many warps share the terms of a tile, so that an item takes the least time. Adding up and
// storing take about as long as one stage. The number does not depend on how many items there are,
// so results do not.
VP u32 warps_of_tile(const u32 *w) {
  const u32 tiles =
      (w[GEMM_M] + GEMM_TILE - 1) / GEMM_TILE * ((w[GEMM_N] + GEMM_TILE - 1) / GEMM_TILE);
  u32 best = 1, least = ~0u;
#pragma unroll 1
  for (u32 share = 1, stages = (w[GEMM_K] + GEMM_DEPTH - 1) / GEMM_DEPTH; share <= VPPS_GEMM_WARPS;
       share *= 2, stages = (stages + 1) / 2) {
    const u32 time = (tiles * share + VPPS_GEMM_WARPS - 1) / VPPS_GEMM_WARPS * (stages + 1);
    if (time < least)
      best = share, least = time;
  }
  return best;
}

// The tiles of an item. Where items may add to the same results, no two are worked on at a time:
// tiles that do not exist fill up the last round.
struct GemmTiles {
  u32 down, count, padded;
  VP_MEMBER GemmTiles(const u32 *w, u32 groups) {
    down = (w[GEMM_M] + GEMM_TILE - 1) / GEMM_TILE;
    count = down * ((w[GEMM_N] + GEMM_TILE - 1) / GEMM_TILE);
    padded = w[0] >> 16 & FLAG_ACC ? (count + groups - 1) / groups * groups : count;
  }
};

// A tile: where it is in its item's results, and how many rows and columns of it there are.
struct GemmTile {
  u32 item, row, column, rows, columns;
  VP_MEMBER GemmTile(const u32 *w, u32 groups, u32 number) {
    const GemmTiles all(w, groups);
    const u32 tile = number % all.padded;
    item = number / all.padded;
    row = tile % all.down * GEMM_TILE, column = tile / all.down * GEMM_TILE;
    const bool there = item < w[1] >> 16 && tile < all.count;
    rows = there ? w[GEMM_M] - row : 0, columns = there ? w[GEMM_N] - column : 0;
    item = there ? item : 0;
  }
};

// Four results of rows that are step apart by multiply-adds. Products of parts are NaN where a
// number is infinite, or so large that its high part is.
VP void sum_exactly(const Launch &l, const u32 *w, const u32 *item, u32 row, u32 step, u32 column,
                    float *sum) {
  const float *a = address(l, w[GEMM_SEGMENTS], 1, item[1]);
  const float *b = address(l, w[GEMM_SEGMENTS], 2, item[2]) + column * w[GEMM_B_COL];
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    sum[i] = 0.0f;
#pragma unroll 1
  for (u32 k = 0; k < w[GEMM_K]; k++)
#pragma unroll
    for (u32 i = 0; i < 4; i++)
      sum[i] = FMA(a[min(row + i * step, w[GEMM_M] - 1) * w[GEMM_A_ROW] + k * w[GEMM_A_COL]],
                   b[k * w[GEMM_B_ROW]], sum[i]);
}

// Stores sums of rows that are step apart, of which the first count are there.
VP void store_results(const Launch &l, const u32 *w, u32 item, u32 row, u32 step, u32 column,
                      u32 count, float *sum) {
  const u32 *items = w + GEMM_ITEMS + 3 * item, flags = w[0] >> 16;
  bool finite = true;
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    finite = finite && (BITS_OF(sum[i]) & 0x7F800000u) != 0x7F800000u;
  if (!finite)
    sum_exactly(l, w, items, row, step, column, sum);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    sum[i] *= FLOAT_OF(w[GEMM_SCALE]);
    if (flags & FLAG_BIAS && i < count)
      sum[i] += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[row + i * step];
  }
  float *c =
      address(l, w[GEMM_SEGMENTS], 0, items[0]) + row * w[GEMM_C_ROW] + column * w[GEMM_C_COL];
  if (w[GEMM_C_ROW] == 1 && step == 1)
    return put_some<4>(c, sum, (int)count, flags);
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    if (i < count)
      put(c + i * step * w[GEMM_C_ROW], sum[i], flags);
}

// Adds up what the warps of a group have of a tile, and stores it. The stages are free.
VP void store_tile(const Launch &l, const u32 *w, u32 share, u32 number, const float *s,
                   GemmStage *stages) {
  const u32 warp = THREAD / 32, lane = THREAD % 32;
  float(*sums)[8][32][4] = (float(*)[8][32][4])stages; // by warp, column and lane
  __syncwarp();
  if (warp < VPPS_GEMM_WARPS)
#pragma unroll
    for (u32 j = 0; j < 8; j++)
      write_run<4>(sums[warp][j][lane], s + 4 * j);
  if (share > 1)
    __syncthreads();
  else
    __syncwarp();
  const GemmTile tile(w, VPPS_GEMM_WARPS / share, number);
#pragma unroll 1
  for (u32 j = warp % share; j < 8 && warp < VPPS_GEMM_WARPS; j += share) {
    float sum[4] = {};
#pragma unroll 1
    for (u32 k = 0; k < share; k++) {
      float other[4];
      read_run<4>(other, sums[warp / share * share + k][j][lane]);
#pragma unroll
      for (u32 i = 0; i < 4; i++)
        sum[i] += other[i];
    }
    if (gemm_row() < tile.rows && gemm_column() + j < tile.columns)
      store_results(l, w, tile.item, tile.row + gemm_row(), 1, tile.column + gemm_column() + j,
                    min(tile.rows - gemm_row(), 4u), sum);
  }
  if (share > 1 || w[0] >> 16 & FLAG_ACC)
    __syncthreads();
}

VP_SLOW void gemm_tiles(const Launch &l, const u32 *w, GemmMemory &memory) {
  const u32 share = warps_of_tile(w), groups = VPPS_GEMM_WARPS / share, warp = THREAD / 32;
  const u32 stages = (w[GEMM_K] + GEMM_DEPTH * share - 1) / (GEMM_DEPTH * share);
  const u32 steps = ((w[1] >> 16) * GemmTiles(w, groups).padded + groups - 1) / groups * stages;
  const float *a = 0, *b = 0; // of the tile that is copied
  u32 rows = 0, columns = 0;
  // The next tile to copy, the copied stages of the one before, and tile and stage to multiply.
  u32 next = warp / share, copied = stages, at = next, used = 0;
  float s[32] = {};
  __syncthreads(); // the memory is free
#pragma unroll 1
  for (u32 step = 0; step < steps + GEMM_STAGES - 1; step++) {
    wait_for_all_but<GEMM_STAGES - 2>();
    __syncwarp(); // all lanes' copies are here, and none reads the stage before
    if (step < steps && warp < VPPS_GEMM_WARPS) {
      if (copied == stages) {
        const GemmTile tile(w, groups, next);
        const u32 *item = w + GEMM_ITEMS + 3 * tile.item;
        rows = tile.rows, columns = tile.columns, copied = 0, next += groups;
        a = address(l, w[GEMM_SEGMENTS], 1, item[1]) + tile.row * w[GEMM_A_ROW];
        b = address(l, w[GEMM_SEGMENTS], 2, item[2]) + tile.column * w[GEMM_B_COL];
      }
      const u32 term = (copied++ * share + warp % share) * GEMM_DEPTH;
      if (term < w[GEMM_K]) {
        GemmStage &stage = memory.stages[step % GEMM_STAGES][warp];
        copy_panel(stage.a, a, w[GEMM_A_ROW], w[GEMM_A_COL], rows, term, w[GEMM_K]);
        copy_panel(stage.b, b, w[GEMM_B_COL], w[GEMM_B_ROW], columns, term, w[GEMM_K]);
      }
    }
    commit_copies();
    if (step + 1 < GEMM_STAGES)
      continue;
    GemmStage *stage = memory.stages[(step + 1) % GEMM_STAGES];
    if (warp < VPPS_GEMM_WARPS && (used * share + warp % share) * GEMM_DEPTH < w[GEMM_K])
      multiply_stage(stage[warp], terms_are_neighbours(w[GEMM_A_ROW], w[GEMM_A_COL]),
                     terms_are_neighbours(w[GEMM_B_COL], w[GEMM_B_ROW]), s, w[GEMM_K] >> 31);
    if (++used < stages)
      continue;
    store_tile(l, w, share, at, s, stage);
    used = 0, at += groups;
#pragma unroll
    for (int i = 0; i < 32; i++)
      s[i] = 0.0f;
  }
  __syncthreads(); // nobody needs the memory any more
}
