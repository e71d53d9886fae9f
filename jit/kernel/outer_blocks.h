// Gradients of matrices in blocks on tensor cores: sums of dy x^T over the items of Outer, which
// are what terms are in gemm_blocks.h. A stage has the vectors of 16 items, wherever they are.
#pragma once

// How the gradient of a matrix is divided into blocks of 64 rows and columns or, if it is not tall,
// of 32 and 128 (persist/plan/gradients.go).
struct Grid {
  u32 rows, columns; // of the matrix
  u32 tall;
  u32 down, count; // blocks of some columns, and of the whole matrix
  u32 first;       // the processor that forms block 0; the others follow in turn
  VP_MEMBER u32 mine() const { return (blockIdx.x + gridDim.x - first) % gridDim.x; }
  // Where a block begins.
  VP_MEMBER u32 row(u32 block) const { return block % down * (tall ? 64 : 32); }
  VP_MEMBER u32 column(u32 block) const { return block / down * (tall ? 64 : 128); }
};

// Two panels of dy and two of x, or one and four.
enum : u32 { OUTER_PANELS = 5 };
struct OuterMemory {
  float stages[2][VPPS_OUTER_FLIGHT][OUTER_PANELS * GEMM_PANEL]; // of each group
};

// Copies up to four neighbours of a vector, of which left are there. The rest is zeros.
VP void copy_neighbours(float *to, const float *from, int left) {
  const u32 count = left > 0 ? min(left, 4) : 0;
  if ((u64)from % 16 == 0)
    return copy_some_or_zero(to, from, count);
#pragma unroll 1
  for (u32 i = 0; i < 4; i++)
    copy_word_or_zero(to + i, i < count ? from + i : from, i < count);
}

// A lane's copies in a stage: of each panel four neighbours, all of one item.
struct OuterCopy {
  u32 row, column; // the first ones
  VP_MEMBER OuterCopy(const Grid &grid, u32 block) {
    row = grid.row(block) + THREAD % 8 * 4, column = grid.column(block) + THREAD % 8 * 4;
  }
  // Starts copying a stage of items, of which left are there.
  VP_MEMBER void start(const Work &work, const u32 *items, int left, const Grid &grid,
                       float *stage) const {
    const u32 k = THREAD / 8 % GEMM_DEPTH;
    const int rows = (int)(grid.rows - row), columns = (int)(grid.columns - column);
    const bool tall = grid.tall;
    const bool there = (int)k < left;
    const u32 *item = items + (there ? 2 * k : 0);
    const float *dy = address(work.l, work.w[OUTER_SEGMENTS], 1, item[0]) + row,
                *x = address(work.l, work.w[OUTER_SEGMENTS], 2, item[1]) + column;
    stage += 4 * four_of_rows(k, THREAD % 8);
    float *x_stage = stage + (tall ? 2 : 1) * GEMM_PANEL; // of x
    const u32 last = tall ? 1 : 3;                        // panel of x
    if (there && rows >= (tall ? 36 : 4) && columns >= (int)(32 * last + 4) &&
        ((u64)dy | (u64)x) % 16 == 0) { // most are
      copy_async((u32 *)stage, (const u32 *)dy);
      if (tall)
        copy_async((u32 *)stage + GEMM_PANEL, (const u32 *)dy + GEMM_TILE);
      copy_async((u32 *)x_stage, (const u32 *)x);
      copy_async((u32 *)x_stage + GEMM_PANEL, (const u32 *)x + GEMM_TILE);
      if (!tall) {
        copy_async((u32 *)x_stage + 2 * GEMM_PANEL, (const u32 *)x + 2 * GEMM_TILE);
        copy_async((u32 *)x_stage + 3 * GEMM_PANEL, (const u32 *)x + 3 * GEMM_TILE);
      }
      return;
    }
#pragma unroll 1
    for (int p = 0; p < (tall ? 2 : 1); p++)
      copy_neighbours(stage + p * GEMM_PANEL, dy + p * GEMM_TILE,
                      there ? rows - p * (int)GEMM_TILE : 0);
#pragma unroll 1
    for (u32 p = 0; p <= last; p++)
      copy_neighbours(x_stage + p * GEMM_PANEL, x + p * GEMM_TILE,
                      there ? columns - (int)(p * GEMM_TILE) : 0);
  }
};

// Adds the products of a stage to a lane's results, from two panels of lines of rows: as
// multiply_stage, with registers for all of it.
#if VPPS_PARTS
VP void multiply_panels(const float *a, const float *b, float *s) {
  float u[2][2][4], v[2][2][4];
#pragma unroll
  for (u32 half = 0; half < 2; half++) {
    read_half<4>(u[half], a, first_read(false), false, half, 0);
    read_half<4>(v[half], b, first_read(false), false, half, 0);
  }
#pragma unroll
  for (u32 half = 0; half < 2; half++) {
    Split<4> parts[2];
    split_rows(parts, u[half]);
#pragma unroll
    for (int j = 0; j < 4; j++) // 0: without the branch, as no weights are in registers here
      multiply_column(parts, v[half][0][j], v[half][1][j], j, s, 0);
  }
}
#else
VP void multiply_panels(const float *a, const float *b, float *s) {
  const u32 m = THREAD % 32 / 4, n = THREAD % 4 * 2;
#pragma unroll 1
  for (u32 k = 0; k < GEMM_DEPTH; k++) {
    float u[4], v[8];
    read_run<4>(u, a + 4 * four_of_rows(k, m));
    read_run<4>(v, b + 4 * four_of_rows(k, n));
    read_run<4>(v + 4, b + 4 * four_of_rows(k, n + 1));
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        s[4 * j + i] = FMA(u[i], v[j], s[4 * j + i]);
  }
}
#endif

// Sums the products of a tile's items, and leaves the sums where the stages were, by number and
// lane.
VP void sum_outer(const Work &work, const Grid &grid, u32 first, int left, u32 block,
                  OuterMemory &memory) {
  constexpr int FLIGHT = VPPS_OUTER_FLIGHT, AHEAD = (FLIGHT - 1) * (int)GEMM_DEPTH;
  const u32 group = THREAD / 128, warp = THREAD / 32 % 4, *items = work.items + 2 * first;
  float(*slots)[OUTER_PANELS * GEMM_PANEL] = memory.stages[group];
  const OuterCopy copy(grid, block);
  const bool tall = grid.tall;
  u32 slot = 0; // of the stage that is copied next
#pragma unroll 1
  for (; slot < FLIGHT - 1; slot++) {
    if (left > (int)(slot * GEMM_DEPTH))
      copy.start(work, items + 2 * slot * GEMM_DEPTH, left - (int)(slot * GEMM_DEPTH), grid,
                 slots[slot]);
    commit_copies();
  }
  float s[32] = {};
#pragma unroll 1
  for (; left > 0; left -= (int)GEMM_DEPTH, items += 2 * GEMM_DEPTH) {
    wait_for_all_but<FLIGHT - 2>();
    meet_in_group(group); // all copies of the stage are here, and nobody reads the one before
    if (left > AHEAD)
      copy.start(work, items + 2 * AHEAD, left - AHEAD, grid, slots[slot]);
    commit_copies();
    slot = slot + 1 == FLIGHT ? 0 : slot + 1; // the stage that was copied first
    multiply_panels(slots[slot] + (tall ? warp % 2 : 0) * GEMM_PANEL,
                    slots[slot] + (tall ? 2 + warp / 2 : 1 + warp) * GEMM_PANEL, s);
  }
  meet_in_group(group); // nobody reads the last stage any more
#pragma unroll
  for (u32 j = 0; j < 8; j++)
    write_run<4>(slots[0] + 1024 * warp + 128 * j + THREAD % 32 * 4, s + 4 * j);
}

// Four elements of a column of a gradient by multiply-adds: products of parts are NaN where a
// number is infinite, or so large that its high part is.
VP void sum_outer_exactly(const Work &work, u32 row, u32 last, u32 column, float *sum) {
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    sum[i] = 0.0f;
#pragma unroll 1
  for (u32 e = 0; e < work.count; e++) {
    const float *dy = address(work.l, work.w[OUTER_SEGMENTS], 1, work.items[2 * e]),
                x = address(work.l, work.w[OUTER_SEGMENTS], 2, work.items[2 * e + 1])[column];
#pragma unroll
    for (u32 i = 0; i < 4; i++)
      sum[i] = FMA(dy[min(row + i, last)], x, sum[i]);
  }
}

// Adds up what the groups have of a tile, if they share it, and stores it.
VP void store_outer(const Work &work, const Grid &grid, u32 block, bool shared,
                    const OuterMemory &memory) {
  const u32 group = THREAD / 128, warp = THREAD / 32 % 4, lane = THREAD % 32;
  const u32 row = grid.row(block) + (grid.tall ? warp % 2 * GEMM_TILE : 0) + lane / 4 * 4,
            column = grid.column(block) + (grid.tall ? warp / 2 : warp) * GEMM_TILE;
  float *to = address(work.l, work.w[OUTER_SEGMENTS], 0, work.w[OUTER_DST]);
#pragma unroll 1
  for (u32 j = shared ? group : 0; j < 8; j += shared ? 2 : 1) {
    const u32 place = 1024 * warp + 128 * j + lane * 4;
    const u32 c = column + 4 * (lane % 4 * 2 + j / 4) + j % 4;
    if (row >= grid.rows || c >= grid.columns)
      continue;
    float sum[4], other[4];
    read_run<4>(sum, memory.stages[shared ? 0 : group][0] + place);
    if (shared) {
      read_run<4>(other, memory.stages[1][0] + place);
#pragma unroll
      for (u32 i = 0; i < 4; i++)
        sum[i] += other[i];
    }
    bool finite = true;
#pragma unroll
    for (u32 i = 0; i < 4; i++)
      finite = finite && (BITS_OF(sum[i]) & 0x7F800000u) != 0x7F800000u;
    if (!finite)
      sum_outer_exactly(work, row, grid.rows - 1, c, sum);
#pragma unroll
    for (u32 i = 0; i < 4; i++)
      sum[i] *= FLOAT_OF(work.w[OUTER_SCALE]);
    put_some<4>(to + row + c * grid.rows, sum, (int)(grid.rows - row), work.flags);
  }
}

VP u32 stages_of(u32 items) { return (items + GEMM_DEPTH - 1) / GEMM_DEPTH; }

// Forms the processor's blocks, two at a time. If there is one left, the groups form it together,
// each from half of the items.
VP void outer_blocks(const Work &work, const Grid &grid, OuterMemory &memory) {
  const u32 all = work.count, half = min((all + 31) / 32 * GEMM_DEPTH, all);
  const bool second = THREAD >= 128;
  __syncthreads(); // the memory is free
#pragma unroll 1
  for (u32 first = grid.mine(); first < grid.count; first += 2 * gridDim.x) {
    const bool shared = first + gridDim.x >= grid.count;
    const u32 block = first + (!shared && second ? gridDim.x : 0),
              from = shared && second ? half : 0, items = shared ? second ? all - half : half : all;
    meet_as_often(second, shared ? stages_of(half) - stages_of(items) : 0);
    sum_outer(work, grid, from, (int)items, block, memory);
    __syncthreads();
    store_outer(work, grid, block, shared, memory);
    __syncthreads();
  }
}
