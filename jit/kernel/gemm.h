// Gemm on the GPU: a product of any two operands by strides, for what is not a
// resident matrix (attention, convolution, a parameter that changed under a
// graph), and for a matrix that is multiplied by many columns. The CPU has its
// own (gemm_cpu.h).
#pragma once

// A warp forms tiles of results. It copies the stages of its own terms to
// shared memory, one while it works on another, and multiplies without waiting
// for other warps. Where there are more warps than tiles, several share the
// terms of a tile and add up their sums in the end.
enum : u32 {
  GEMM_TILE = 32,  // rows and columns of a tile
  GEMM_DEPTH = 16, // terms of a stage
  GEMM_STAGES = 2,
  GEMM_FOURS = GEMM_TILE * GEMM_DEPTH / 4 / 32 // of a panel, for each lane to copy
};

struct GemmStage {
  float a[GEMM_DEPTH * GEMM_TILE], b[GEMM_DEPTH * GEMM_TILE];
};

// gemmMemory (jit/source.go) is the size for a warp.
struct GemmMemory {
  GemmStage stages[GEMM_STAGES][VPPS_GEMM_WARPS]; // only so many warps work
};

// Where in a panel term k of row or column n is. Four neighbours of the operand
// stay neighbours: terms, or rows or columns. They lie so that lanes read
// different banks.
VP u32 in_panel(bool terms, u32 n, u32 k) {
  return terms ? 4 * ((4 * n + k / 4) ^ (n & 4)) + k % 4
               : 4 * ((8 * k + n / 4) ^ (k / 4 * 2)) + n % 4;
}

VP bool terms_are_neighbours(u32 n_step, u32 k_step) { return k_step == 1 && n_step != 1; }

// Starts copying a panel of an operand, whose term k of row or column n is at
// from + n * n_step + k
// * k_step: the first ns rows or columns and the terms from term on up to
// depth. The rest is zeros.
VP void copy_panel(float *panel, const float *from, u32 n_step, u32 k_step, u32 ns, u32 term,
                   u32 depth) {
  const u32 lane = as_new(THREAD % 32); // else addresses would be kept in registers
  const bool terms = terms_are_neighbours(n_step, k_step);
  const u32 ks = term < depth ? depth - term : 0;
  from += term < depth ? term * k_step : 0;
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

// A lane's results in a tile are of 4 rows and 8 columns, which are neighbours:
// s[4 * j + i].
VP u32 gemm_row() { return THREAD % 32 / 4 * 4; }
VP u32 gemm_column() { return THREAD % 4 * 8; }

#if VPPS_PARTS
// Terms k and k + 1 of four rows or columns from n on; n is a multiple of 4,
// and k of 2.
VP void read_terms(float (*v)[4], const float *panel, bool terms, u32 n, u32 k) {
  const float *at = panel + in_panel(terms, n, k);
  if (!terms) {
    read_run<4>(v[0], at);
    return read_run<4>(v[1], at + GEMM_TILE);
  }
  const float *odd = panel + in_panel(true, n + 1, k);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    float x[2];
    read_run<2>(x, (i % 2 ? odd : at) + i / 2 * 2 * GEMM_DEPTH);
    v[0][i] = x[0], v[1][i] = x[1];
  }
}

// Adds a stage's products to a lane's results. In the terms of multiply_parts,
// rows 4 g + 2 m and 4 g + 2 m + 1 of a tile are g and g + 8 of block m, and
// column 4 g + n is g of block n. The sums of a few terms are added up in FP32,
// which tensor cores round less carefully.
VP void multiply_stage(const GemmStage &stage, bool a_terms, bool b_terms, float *s) {
  const u32 lane = THREAD % 32;
  const u32 n = lane / 4 * 4, k = lane % 4 * 4;
#pragma unroll 1
  for (u32 step = 0; step < 4; step += 2) {
    float u[2][4], v[2][4];
    read_terms(u, stage.a, a_terms, n, k + step);
    read_terms(v, stage.b, b_terms, n, k + step);
    Split<4> a[2];
#pragma unroll
    for (int i = 0; i < 8; i++)
      a[i % 4 / 2].set(i / 4 * 2 + i % 2, u[i / 4][i % 4]);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      Split<2> b;
      b.set(0, v[0][j]), b.set(1, v[1][j]);
      float d[2][4] = {};
#pragma unroll
      for (int m = 0; m < 2; m++)
        multiply_parts(d[m], a[m].low, b.high);
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
  }
}
#else
// The same without tensor cores.
VP void multiply_stage(const GemmStage &stage, bool a_terms, bool b_terms, float *s) {
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

// How the tiles of an item are shared out: 1 << shift warps have terms of the
// same tile. It does not depend on how many items there are, so results do not.
struct GemmShares {
  u32 shift, down, tiles;
  VP_MEMBER GemmShares(const u32 *w) : shift(0), down((w[GEMM_M] + GEMM_TILE - 1) / GEMM_TILE) {
    tiles = down * ((w[GEMM_N] + GEMM_TILE - 1) / GEMM_TILE);
    for (u32 s = 1, least = time(w, 0); 1u << s <= VPPS_GEMM_WARPS; s++)
      if (time(w, s) < least)
        shift = s, least = time(w, s);
  }
  VP_MEMBER u32 groups() const { return VPPS_GEMM_WARPS >> shift; }
  // Tiles of an item with those that do not exist, which fill up its last round
  // where items may add to the same results: then no two are worked on at a
  // time.
  VP_MEMBER u32 padded(const u32 *w) const {
    return w[0] >> 16 & FLAG_ACC ? (tiles + groups() - 1) & ~(groups() - 1) : tiles;
  }
  VP_MEMBER u32 stages(const u32 *w, u32 s) const {
    return (w[GEMM_K] + (GEMM_DEPTH << s) - 1) / GEMM_DEPTH >> s;
  }
  VP_MEMBER u32 stages(const u32 *w) const { return stages(w, shift); }
  // About how long an item takes, in stages: adding up and storing take as long
  // as one.
  VP_MEMBER u32 time(const u32 *w, u32 s) const {
    return ((tiles << s) + VPPS_GEMM_WARPS - 1) / VPPS_GEMM_WARPS * (stages(w, s) + 1);
  }
};

// A group's place among the tiles: number tile of an item.
struct GemmPlace {
  u32 item, tile;
  VP_MEMBER void forward(u32 tiles, u32 padded) {
    tile += tiles;
    while (tile >= padded)
      tile -= padded, item++;
  }
  VP_MEMBER bool exists(const u32 *w, const GemmShares &all) const {
    return item < w[1] >> 16 && tile < all.tiles;
  }
  VP_MEMBER u32 column(const GemmShares &all) const {
    return (all.down == 1 ? tile : tile / all.down) * GEMM_TILE;
  }
  VP_MEMBER u32 row(const GemmShares &all, u32 column) const {
    return (tile - column / GEMM_TILE * all.down) * GEMM_TILE;
  }
};

// Four results of neighbouring rows as sums of single products: those of parts
// of infinite numbers and of very large ones are NaN.
VP void sum_exactly(const Launch &l, const u32 *w, const u32 *item, u32 row, u32 column,
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
      sum[i] = FMA(a[min(row + i, w[GEMM_M] - 1) * w[GEMM_A_ROW] + k * w[GEMM_A_COL]],
                   b[k * w[GEMM_B_ROW]], sum[i]);
}

// Stores sums of neighbouring rows, of which the first count are there.
VP void store_results(const Launch &l, const u32 *w, u32 item, u32 row, u32 column, u32 count,
                      float *sum) {
  const u32 *items = w + GEMM_ITEMS + 3 * item, flags = w[0] >> 16;
  bool finite = true;
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    finite = finite && (BITS_OF(sum[i]) & 0x7F800000u) != 0x7F800000u;
  if (!finite)
    sum_exactly(l, w, items, row, column, sum);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    sum[i] *= FLOAT_OF(w[GEMM_SCALE]);
    if (flags & FLAG_BIAS && i < count)
      sum[i] += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[row + i];
  }
  float *c =
      address(l, w[GEMM_SEGMENTS], 0, items[0]) + row * w[GEMM_C_ROW] + column * w[GEMM_C_COL];
  if (w[GEMM_C_ROW] == 1)
    return put_some<4>(c, sum, (int)count, flags);
#pragma unroll
  for (u32 i = 0; i < 4; i++)
    if (i < count)
      put(c + i * w[GEMM_C_ROW], sum[i], flags);
}

// Adds up what the warps of a group have of a tile, and stores it. The stages
// are free.
VP void store_tile(const Launch &l, const u32 *w, const GemmShares &all, const GemmPlace &place,
                   const float *s, GemmStage *stages) {
  const u32 warp = THREAD / 32, lane = THREAD % 32, share = 1u << all.shift;
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
  const u32 column = place.column(all) + gemm_column(),
            row = place.row(all, place.column(all)) + gemm_row();
  const bool there = warp < VPPS_GEMM_WARPS && place.exists(w, all) && row < w[GEMM_M];
#pragma unroll 1
  for (u32 j = warp & (share - 1); there && j < 8 && column + j < w[GEMM_N]; j += share) {
    float sum[4] = {};
#pragma unroll 2
    for (u32 k = 0; k < share; k++) {
      float other[4];
      read_run<4>(other, sums[(warp & ~(share - 1)) + k][j][lane]);
#pragma unroll
      for (u32 i = 0; i < 4; i++)
        sum[i] += other[i];
    }
    store_results(l, w, place.item, row, column + j, min(w[GEMM_M] - row, 4u), sum);
  }
  if (share > 1 || w[0] >> 16 & FLAG_ACC)
    __syncthreads();
}

VP_SLOW void gemm_tiles(const Launch &l, const u32 *w, GemmMemory &memory) {
  const GemmShares all(w);
  const u32 warp = THREAD / 32, stages = all.stages(w), padded = all.padded(w);
  const u32 rounds =
      ((((w[1] >> 16) * padded) << all.shift) + VPPS_GEMM_WARPS - 1) / VPPS_GEMM_WARPS;
  const float *a = 0, *b = 0; // of the tile that is copied
  u32 rows = 0, columns = 0;
  GemmPlace next = {0, 0}, place; // that is copied, and that is multiplied
  next.forward(warp >> all.shift, padded), place = next;
  u32 copied = 0, used = 0; // stages of these
  float s[32] = {};
  __syncthreads(); // the memory is free
#pragma unroll 1
  for (u32 step = 0; step < rounds * stages + GEMM_STAGES - 1; step++) {
    wait_for_all_but<GEMM_STAGES - 2>();
    __syncwarp(); // all lanes' copies are here, and none reads the stage before
    const u32 term = (copied << all.shift) + (warp & ((1u << all.shift) - 1));
    if (copied == 0) {
      const u32 column = next.column(all), row = next.row(all, column);
      const bool there = step < rounds * stages && warp < VPPS_GEMM_WARPS && next.exists(w, all);
      const u32 *item = w + GEMM_ITEMS + 3 * next.item;
      rows = there ? w[GEMM_M] - row : 0, columns = there ? w[GEMM_N] - column : 0;
      if (there) {
        a = address(l, w[GEMM_SEGMENTS], 1, item[1]) + row * w[GEMM_A_ROW];
        b = address(l, w[GEMM_SEGMENTS], 2, item[2]) + column * w[GEMM_B_COL];
      }
      next.forward(all.groups(), padded);
    }
    if (rows > 0 && term * GEMM_DEPTH < w[GEMM_K]) {
      GemmStage &stage = memory.stages[step % GEMM_STAGES][warp];
      copy_panel(stage.a, a, w[GEMM_A_ROW], w[GEMM_A_COL], rows, term * GEMM_DEPTH, w[GEMM_K]);
      copy_panel(stage.b, b, w[GEMM_B_COL], w[GEMM_B_ROW], columns, term * GEMM_DEPTH, w[GEMM_K]);
    }
    copied = copied + 1 < stages ? copied + 1 : 0;
    commit_copies();
    if (step + 1 < GEMM_STAGES)
      continue;
    GemmStage *stage = memory.stages[(step + 1) % GEMM_STAGES];
    if (warp < VPPS_GEMM_WARPS && place.exists(w, all) &&
        ((used << all.shift) + (warp & ((1u << all.shift) - 1))) * GEMM_DEPTH < w[GEMM_K])
      multiply_stage(stage[warp], terms_are_neighbours(w[GEMM_A_ROW], w[GEMM_A_COL]),
                     terms_are_neighbours(w[GEMM_B_COL], w[GEMM_B_ROW]), s);
    if (++used < stages)
      continue;
    store_tile(l, w, all, place, s, stage);
    used = 0, place.forward(all.groups(), padded);
#pragma unroll
    for (int i = 0; i < 32; i++)
      s[i] = 0.0f;
  }
  __syncthreads(); // nobody needs the memory any more
}

// One thread a result.
VP_SLOW void gemm_thin(const Launch &l, const u32 *w, u32 flags, u32 count) {
  u32 m = w[GEMM_M], n = w[GEMM_N], depth = w[GEMM_K];
  float scale = FLOAT_OF(w[GEMM_SCALE]);
  for (u32 e = 0; e < count; e++) {
    const u32 *item = w + GEMM_ITEMS + 3 * e;
    float *c = address(l, w[GEMM_SEGMENTS], 0, item[0]);
    const float *a = address(l, w[GEMM_SEGMENTS], 1, item[1]);
    const float *b = address(l, w[GEMM_SEGMENTS], 2, item[2]);
    for (u32 k = THREAD; k < m * n; k += THREADS) {
      u32 i = k % m, j = k / m;
      const float *ai = a + i * w[GEMM_A_ROW], *bj = b + j * w[GEMM_B_COL];
      float s = 0.0f;
#pragma unroll 4
      for (u32 t = 0; t < depth; t++)
        s = FMA(ai[t * w[GEMM_A_COL]], bj[t * w[GEMM_B_ROW]], s);
      s *= scale;
      if (flags & FLAG_BIAS)
        s += address(l, w[GEMM_SEGMENTS], 3, w[GEMM_BIAS])[i];
      put(c + i * w[GEMM_C_ROW] + j * w[GEMM_C_COL], s, flags);
    }
  }
}

// Results of few rows or columns would fill little of a tile, and long sums of
// few results few threads. Few short sums are over before stages are here.
VP void gemm(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared) {
  const u32 m = w[GEMM_M], n = w[GEMM_N];
  const bool tiny = m * n <= THREADS && w[GEMM_K] <= GEMM_TILE;
  if ((m >= 8 && n >= 8 && !tiny) || (m * n < THREADS / 2 && w[GEMM_K] > GEMM_TILE))
    return gemm_tiles(l, w, *(GemmMemory *)shared);
  gemm_thin(l, w, flags, count);
}
