// Products of many rows and columns in blocks of 64 x 64, each of which four warps form together
// on tensor cores (gemm.h).
#pragma once

// The warps of a group copy a block's operands together, stage by stage: two panels of its rows and
// two of its columns. Each multiplies the panels of its own tile. So a number is copied once for
// 64 results, and a lane starts four copies a stage.
enum : u32 {
  GEMM_BLOCK = 2 * GEMM_TILE,
  GEMM_PANEL = GEMM_TILE * GEMM_DEPTH,
  GEMM_FLIGHT = 4 // stages of a group: one is multiplied, the others are on their way
};
struct BlockMemory {
  float stages[2][GEMM_FLIGHT][4 * GEMM_PANEL]; // of each group
};

// A panel has a line of 16 terms for each row or column, or one of 32 rows or columns for each
// term: what are neighbours in memory stay neighbours. Fours of a line are turned, so that lanes
// read different banks and a lane's places differ by constants.
VP u32 four_of_terms(u32 n, u32 four) { return 4 * n + (four ^ (n & 2)); }
VP u32 four_of_rows(u32 k, u32 four) { return 8 * k + (four ^ (k & 6)); }

// A lane copies two fours of an operand in each stage, both to one panel.
struct BlockCopy {
  u32 at;    // the first one, of the stage that is next, in its segment
  u32 to;    // its place in a stage
  bool both; // the second one is there, 8 rows or columns after the first, or 4 terms
  // Of an operand of rows rows, or columns, the panel that begins at row, and of that the part 0 or
  // 1. Instead of rows that are not there others are copied, whose results nobody stores.
  VP_MEMBER BlockCopy(u32 from, u32 n_step, u32 k_step, u32 row, u32 rows, u32 panel, u32 part) {
    const bool terms = terms_are_neighbours(n_step, k_step);
    const u32 lane = THREAD % 32, n = terms ? lane / 4 + 16 * part : lane % 8 * 4,
              k = terms ? lane % 4 * 4 : lane / 8 + 8 * part,
              last = terms ? rows - 1 : (rows - 1) / 4 * 4;
    at = from + (min(row + n, last) * n_step + k * k_step);
    to = panel * GEMM_PANEL + 4 * (terms ? four_of_terms(n, k / 4) : four_of_rows(k, n / 4));
    both = !terms || row + n + 8 < rows;
  }
};

// Starts a lane's two copies of an operand: from there to a place of a stage.
VP void start_copies(float *stage, u32 to, const float *from, bool both, bool terms, u32 n_step,
                     u32 k_step) {
  const u32 next = both ? terms ? 8 * n_step : 4 * k_step : 0;
  copy_async((u32 *)stage + to, (const u32 *)from);
  copy_async((u32 *)stage + (terms ? to : to ^ 16) + 128, (const u32 *)from + next);
}

// The places that a lane copies from and to, and reads. They are kept in shared memory, since the
// lane's sums need the registers.
struct alignas(16) BlockLane {
  u32 a, b;           // where its next copies are, in the operands' segments
  u16 a_to, b_to;     // the places of these in a stage
  u16 a_read, b_read; // the first places that it reads
};

// Where in a panel a lane reads first: terms 2 t and 2 t + 1, t = lane % 4, of its four rows or
// columns, in the first half of a stage.
VP u32 first_read(bool terms) {
  const u32 g = THREAD % 32 / 4, t = THREAD % 4;
  return terms ? 4 * four_of_terms(g, t / 2) + t % 2 * 2 : 4 * four_of_rows(2 * t, g);
}

// The same of half a stage, of N rows or columns from first on.
template <u32 N>
VP void read_half(float (*v)[N], const float *stage, u32 at, bool terms, u32 half, u32 first) {
  if (!terms) {
    read_run<N>(v[0], stage + at + 256 * half + first);
    read_run<N>(v[1], stage + at + 256 * half + first + 32);
    return;
  }
  const float *from = stage + (at ^ 8 * half);
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    float x[2];
    read_run<2>(x, from + 128 * (first + i));
    v[0][i] = x[0], v[1][i] = x[1];
  }
}

// A lane's results in a tile are of 4 rows and 8 columns: s[4 * j + i]. Where terms are neighbours
// in a panel, the lane's rows or columns in it are 8 apart; else they are neighbours.
struct BlockPlace {
  u32 row, step, column; // row + i * step
  VP_MEMBER BlockPlace(bool a_terms, bool b_terms, u32 j) {
    const u32 g = THREAD % 4 * 2 + j / 4;
    row = THREAD % 32 / 4 * (a_terms ? 1 : 4), step = a_terms ? 8 : 1;
    column = b_terms ? g + j % 4 * 8 : 4 * g + j % 4;
  }
};

#if VPPS_PARTS
// Adds the products of a stage to a lane's results.
VP void multiply_stage(const float *stage, u32 a_at, u32 b_at, bool a_terms, bool b_terms, float *s,
                       u32 never) {
#pragma unroll 1
  for (u32 half = 0; half < 2; half++) {
    float u[2][4];
    read_half<4>(u, stage, a_at, a_terms, half, 0);
    Split<4> a[2];
    split_rows(a, u);
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      float v[2][2];
      read_half<2>(v, stage, b_at, b_terms, half, j);
      multiply_column(a, v[0][0], v[1][0], j, s, never);
      multiply_column(a, v[0][1], v[1][1], j + 1, s, never);
    }
  }
}

// How an item is divided into blocks.
struct GemmBlock {
  u32 down, count; // blocks
  bool shared;     // both groups form a block, each from half of the terms
  VP_MEMBER explicit GemmBlock(const u32 *w) {
    down = (w[GEMM_M] + GEMM_BLOCK - 1) / GEMM_BLOCK;
    count = down * ((w[GEMM_N] + GEMM_BLOCK - 1) / GEMM_BLOCK);
    // Storing takes as long as one stage, adding up as another one.
    const u32 stages = w[GEMM_K] / GEMM_DEPTH;
    shared = count * (stages / 2 + 2) < (count + 1) / 2 * (stages + 1);
  }
};

// Where the tile of this warp is in an item's results.
struct GemmWarp {
  u32 row, column;
  VP_MEMBER GemmWarp(const u32 *w, u32 block) {
    const u32 down = GemmBlock(w).down;
    row = block % down * GEMM_BLOCK + THREAD / 32 % 2 * GEMM_TILE;
    column = block / down * GEMM_BLOCK + THREAD / 64 % 2 * GEMM_TILE;
  }
};

// Sums the products of a tile's terms, or of half of them, and leaves the sums where the stages
// were, by number and lane.
VP_SLOW void sum_tile(const Launch &l, const u32 *w, const u32 *item, u32 block,
                      BlockMemory &memory, BlockLane *lanes) {
  const u32 group = THREAD / 128, down = THREAD / 32 % 2, across = THREAD / 64 % 2;
  const bool shared = GemmBlock(w).shared;
  const bool a_terms = terms_are_neighbours(w[GEMM_A_ROW], w[GEMM_A_COL]),
             b_terms = terms_are_neighbours(w[GEMM_B_COL], w[GEMM_B_ROW]);
  const u32 all = w[GEMM_K] / GEMM_DEPTH, first = shared && group ? all / 2 : 0;
  const int stages = shared && !group ? all / 2 : all - first;
  const GemmWarp at(w, block);
  const BlockCopy a(item[1] + first * GEMM_DEPTH * w[GEMM_A_COL], w[GEMM_A_ROW], w[GEMM_A_COL],
                    at.row, w[GEMM_M], down, across);
  const BlockCopy b(item[2] + first * GEMM_DEPTH * w[GEMM_B_ROW], w[GEMM_B_COL], w[GEMM_B_ROW],
                    at.column, w[GEMM_N], 2 + across, down);
  const u32 a_read = down * GEMM_PANEL + first_read(a_terms),
            b_read = (2 + across) * GEMM_PANEL + first_read(b_terms);
  lanes[THREAD] = {a.at, b.at, (u16)a.to, (u16)b.to, (u16)a_read, (u16)b_read};
  meet_as_often(group, shared ? all - all / 2 - stages : 0); // the other one may have a stage more
  const u32 never = w[GEMM_K] >> 31;
  float s[32] = {};
  // A stage is in the slot of how many are left with it. Copies begin before a stage is multiplied.
  // Each use asks for THREAD anew, else addresses would be kept in registers.
#pragma unroll 1
  for (int left = stages + GEMM_FLIGHT - 1; left > 0; left--) {
    float(*slots)[4 * GEMM_PANEL] = memory.stages[as_new(THREAD) / 128];
    if (left <= stages) { // all copies of the stage are here, and nobody reads the one before
      wait_for_all_but<GEMM_FLIGHT - 2>();
      meet_in_group(as_new(THREAD) / 128);
    }
    const BlockLane lane = lanes[as_new(THREAD)];
    if (left >= (int)GEMM_FLIGHT) {
      float *slot = slots[(left + 1) % GEMM_FLIGHT];
      start_copies(slot, lane.a_to, address(l, w[GEMM_SEGMENTS], 1, lane.a), a.both, a_terms,
                   w[GEMM_A_ROW], w[GEMM_A_COL]);
      start_copies(slot, lane.b_to, address(l, w[GEMM_SEGMENTS], 2, lane.b), b.both, b_terms,
                   w[GEMM_B_COL], w[GEMM_B_ROW]);
      lanes[as_new(THREAD)].a = lane.a + GEMM_DEPTH * w[GEMM_A_COL];
      lanes[as_new(THREAD)].b = lane.b + GEMM_DEPTH * w[GEMM_B_ROW];
    }
    commit_copies();
    if (left <= stages)
      multiply_stage(slots[left % GEMM_FLIGHT], lane.a_read, lane.b_read, a_terms, b_terms, s,
                     never);
  }
  meet_in_group(group); // nobody reads the last stage any more
#pragma unroll
  for (u32 j = 0; j < 8; j++)
    write_run<4>(memory.stages[group][0] + THREAD / 32 % 4 * 1024 + 128 * j + THREAD % 32 * 4,
                 s + 4 * j);
}

// Adds up what the groups have of a tile, and stores it.
VP_SLOW void store_tile(const Launch &l, const u32 *w, u32 item, u32 block, BlockMemory &memory) {
  const u32 group = THREAD / 128;
  const bool shared = GemmBlock(w).shared;
  const bool a_terms = terms_are_neighbours(w[GEMM_A_ROW], w[GEMM_A_COL]),
             b_terms = terms_are_neighbours(w[GEMM_B_COL], w[GEMM_B_ROW]);
#pragma unroll 1
  for (u32 j = shared ? group : 0; j < 8; j += shared ? 2 : 1) {
    const u32 place = THREAD / 32 % 4 * 1024 + 128 * j + THREAD % 32 * 4;
    float sum[4], other[4];
    read_run<4>(sum, memory.stages[shared ? 0 : group][0] + place);
    if (shared) {
      read_run<4>(other, memory.stages[1][0] + place);
#pragma unroll
      for (u32 i = 0; i < 4; i++)
        sum[i] += other[i];
    }
    const GemmWarp at(w, block);
    const BlockPlace of(a_terms, b_terms, j);
    const u32 row = at.row + of.row, column = at.column + of.column;
    if (row < w[GEMM_M] && column < w[GEMM_N])
      store_results(l, w, item, row, of.step, column,
                    min((w[GEMM_M] - row + of.step - 1) / of.step, 4u), sum);
  }
}

VP_SLOW void gemm_blocks(const Launch &l, const u32 *w, BlockMemory &memory, BlockLane *lanes) {
  __syncthreads(); // the memory is free
  // Items may add to the same results, so no two are worked on at a time.
#pragma unroll 1
  for (u32 item = 0; item < w[1] >> 16; item++)
#pragma unroll 1
    for (u32 first = 0; first < GemmBlock(w).count; first += GemmBlock(w).shared ? 1 : 2) {
      const u32 block = first + (GemmBlock(w).shared ? 0 : THREAD / 128);
      if (block < GemmBlock(w).count)
        sum_tile(l, w, w + GEMM_ITEMS + 3 * item, block, memory, lanes);
      else
        meet_as_often(1, w[GEMM_K] / GEMM_DEPTH + 1); // as often as the other group
      __syncthreads();
      if (block < GemmBlock(w).count)
        store_tile(l, w, item, block, memory);
      __syncthreads();
    }
}

// Whether a product is formed in blocks: if it fills most of one, and can be copied in whole fours
// and stages.
VP bool forms_blocks(const Launch &l, const u32 *w) {
  bool fits = VPPS_GEMM_WARPS == 8 && w[GEMM_M] > GEMM_TILE && w[GEMM_N] > GEMM_TILE &&
              w[GEMM_K] % GEMM_DEPTH == 0 && w[GEMM_K] >= 2 * GEMM_DEPTH;
#pragma unroll 1
  for (u32 k = 0; k < 2 && fits; k++) {
    const u32 n_step = w[k ? GEMM_B_COL : GEMM_A_ROW], k_step = w[k ? GEMM_B_ROW : GEMM_A_COL];
    fits = (n_step == 1 && k_step % 4 == 0) || (k_step == 1 && n_step % 4 == 0);
#pragma unroll 1
    for (u32 e = 0; e < w[1] >> 16 && fits; e++)
      fits = (u64)address(l, w[GEMM_SEGMENTS], 1 + k, w[GEMM_ITEMS + 3 * e + 1 + k]) % 16 == 0;
  }
  return fits;
}
#else
VP void gemm_blocks(const Launch &, const u32 *, BlockMemory &, BlockLane *) {}
VP bool forms_blocks(const Launch &, const u32 *) { return false; }
#endif
