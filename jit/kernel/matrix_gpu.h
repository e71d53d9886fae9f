// The GPU's matrix routines, called from code generated for the plan with literal sizes.
//
// A partition is at most ROWS = WARPS * RPW consecutive rows, up to end. A thread holds a tile of
// it, of neighbouring rows, and columns in runs of V (Tile). Vectors come through shared memory,
// copied ahead of where they are needed: for products by each warp for itself; what all warps
// read, STAGE items at a time, into one of three buffers.
#pragma once

// What a processor keeps in one of its register arrays; matrix -1: nothing.
struct Partition {
  int matrix;
  u32 row, end;     // its rows
  u32 rows, cols;   // of the matrix
  u32 offset;       // of the matrix in segment param
  u32 copy, copies; // which of how many of the matrix
};

__device__ constexpr int iterations(int cols) { return (cols + 31) / 32; }
__device__ constexpr int power_of_two(int n) { return n <= 1 ? 1 : 2 * power_of_two((n + 1) / 2); }
__device__ constexpr int at_least_1(int n) { return n < 1 ? 1 : n; }

// How many of n neighbours are moved at a time.
__device__ constexpr int run_of(int n) { return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1; }

// Reads N neighbours, of which only the first count are there: the others are 0.
template <int N> VP void read_some(float *v, const float *from, int count) {
  if (count >= N && (u64)from % (4 * N) == 0)
    return read_run<N>(v, from);
#pragma unroll
  for (int i = 0; i < N; i++)
    v[i] = i < count ? from[i] : 0.0f;
}

// Stores the first count of N neighbours.
template <int N> VP void put_some(float *to, const float *v, int count, u32 flags) {
  if (count >= N && (u64)to % (4 * N) == 0) {
    float x[N];
    if (flags & FLAG_ACC)
      read_run<N>(x, to);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] = canonical(flags & FLAG_ACC ? x[i] + v[i] : v[i]);
    write_run<N>(to, x);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < count)
      put(to + i, v[i], flags);
}

#ifdef VPPS_ATOMICS
// Adds N neighbours, aligned to their size, to what others add to, too.
template <int N> VP void add_run(float *to, const float *v) {
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
  if (N == 4)
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v[0]),
                 "f"(v[N > 1 ? 1 : 0]), "f"(v[N > 2 ? 2 : 0]), "f"(v[N > 3 ? 3 : 0])
                 : "memory");
  else if (N == 2)
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(v[0]),
                 "f"(v[N > 1 ? 1 : 0])
                 : "memory");
  else
#endif
#pragma unroll
    for (int i = 0; i < N; i++)
      asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to + i), "f"(v[i]) : "memory");
}

// Adds the first count of N neighbours.
template <int N> VP void add_some(float *to, const float *v, int count) {
  if (count >= N && (u64)to % (4 * N) == 0)
    return add_run<N>(to, v);
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < count)
      add_run<1>(to + i, v + i);
}
#endif

// Which elements of a partition a thread holds: w[i * TC + q] is row row() + i and column
// column(q) of it. Of a warp's lanes LR are side by side along the rows, LC along the columns, so
// that sums over both are short; a warp has PART neighbouring columns.
template <int RPW, int COLS> struct Tile {
  static constexpr int ITERS = iterations(COLS), WIDTH = 32 * ITERS, ROWS = (int)WARPS * RPW;
  static constexpr int LR = ITERS % 2 == 0 && RPW <= 8 ? 4 : 8, LC = 32 / LR;
  static constexpr int TR = ROWS / LR, TC = RPW * ITERS / TR;
  static constexpr int V = run_of(TC), VR = run_of(TR), PART = WIDTH / (int)WARPS;

  // Lanes whose numbers differ in bit 0 read the same column, in bit 1 the same row: 16 bytes
  // a lane then take no more turns than they must.
  VP_MEMBER static u32 lane_row() { return THREAD % 2 + THREAD % 32 / (2 * LC) * 2; }
  VP_MEMBER static u32 lane_column() { return THREAD / 2 % LC; }
  VP_MEMBER static u32 row() { return lane_row() * TR; }
  VP_MEMBER static u32 first_column() { return THREAD / 32 * PART; } // of the warp
  VP_MEMBER static u32 in_part(u32 q) { return V * (lane_column() + LC * (q / V)) + q % V; }
  VP_MEMBER static u32 column(u32 q) { return first_column() + in_part(q); }
};

template <int RPW, int COLS>
VP void load_rows(float *w, const float *base, const Partition &part, Clocks &clocks) {
  typedef Tile<RPW, COLS> T;
  u32 first = part.row + T::row(), floats = 0;
#pragma unroll
  for (int i = 0; i < T::TR; i += T::VR)
#pragma unroll
    for (int q = 0; q < T::TC; q++) {
      u32 r = first + i, c = T::column(q);
      int count = c < COLS ? (int)part.end - (int)r : 0;
      float v[T::VR];
      read_some<T::VR>(v, base + r + c * part.rows, count);
#pragma unroll
      for (int j = 0; j < T::VR; j++) {
        w[(i + j) * T::TC + q] = v[j];
        floats += j < count ? 1 : 0;
      }
    }
  clocks.loaded(floats);
}

// Sums N (a power of two) values over lanes of distances D, D/2, ... END. While there are several,
// partners swap halves, so that a step costs half the shuffles of the one before: the k-th of L
// lanes, bit D of its number first, ends up with the sums of v[k * N / L] and those behind, in v[0]
// on.
template <int N, int D, int END> struct LaneSums {
  VP_MEMBER static void of(float *v) {
    bool upper = THREAD & D;
    if (N == 1)
      v[0] += __shfl_xor_sync(0xFFFFFFFFu, v[0], D);
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
      float mine = upper ? v[i + N / 2] : v[i], other = upper ? v[i] : v[i + N / 2];
      v[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, D);
    }
    LaneSums<at_least_1(N / 2), D == END ? 0 : D / 2, END>::of(v);
  }
};
template <int N, int END> struct LaneSums<N, 0, END> {
  VP_MEMBER static void of(float *) {}
};

// Starts copying elements first up to end of up to count of ITEMS vectors, whose places are every
// second word of items, into rows of WIDTH floats. Behind end is 0; behind count, if FILL.
template <int WIDTH, int ITEMS, bool FILL>
VP void stage(float *to, const float *from, const u32 *items, u32 count, u32 first, u32 end) {
  constexpr int CHUNKS = ITEMS * WIDTH / 4, TURNS = (CHUNKS + (int)THREADS - 1) / (int)THREADS;
  bool single = false;
#pragma unroll 1 // copies are on their way at once anyway, and registers are few
  for (int j = 0; j < TURNS; j++) {
    u32 at = j * THREADS + THREAD, b = at / (WIDTH / 4), c = first + at % (WIDTH / 4) * 4;
    if (at >= CHUNKS)
      continue;
    if (b < count && c < end) {
      const float *x = from + items[2 * b] + c;
      if (c + 4 <= end && (u64)x % 16 == 0)
        copy_async((u32 *)to + 4 * at, (const u32 *)x);
      else
        single = true;
    } else if (FILL || b < count)
      *(float4 *)(to + 4 * at) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  if (!single)
    return;
#pragma unroll 1
  for (u32 at = THREAD; at < CHUNKS; at += THREADS) {
    u32 b = at / (WIDTH / 4), c = first + at % (WIDTH / 4) * 4;
    if (b >= count || c >= end)
      continue;
    const float *x = from + items[2 * b] + c;
    if (c + 4 > end || (u64)x % 16 != 0)
      for (u32 i = 0; i < 4; i++)
        if (c + i < end)
          copy_word(to + 4 * at + i, x + i);
        else
          to[4 * at + i] = 0.0f;
  }
}

VP const float *segment_of(const Launch &l, u32 segments, u32 slot) {
  return address(l, segments, slot, 0);
}

// How many items are worked on at a time: as many as there are registers for sums.
template <int RPW, int COLS, int MOST> __device__ constexpr int product_batch() {
  constexpr int B = Tile<RPW, COLS>::TR <= 4 ? 4 : Tile<RPW, COLS>::TR <= 8 ? 2 : 1;
  return B < MOST ? B : MOST;
}
template <int RPW, int COLS, int STAGE> __device__ constexpr int transposed_batch() {
  constexpr int B = Tile<RPW, COLS>::TC <= 4 ? 4 : Tile<RPW, COLS>::TC <= 8 ? 2 : 1;
  return B < STAGE ? B : STAGE;
}

// Starts copying this warp's columns of up to count of BATCH vectors, whose places are so many
// words of items apart, into rows of PART floats. Behind the vectors' end is 0.
template <int RPW, int COLS, int BATCH>
VP void copy_part(float *to, const float *from, const u32 *items, u32 words, u32 count) {
  typedef Tile<RPW, COLS> T;
  constexpr int CHUNKS = T::PART / 4;
#pragma unroll
  for (int j = 0; j < BATCH * CHUNKS; j += 32) {
    u32 at = j + THREAD % 32, b = at / CHUNKS, c = T::first_column() + at % CHUNKS * 4;
    if (at >= BATCH * CHUNKS || b >= count)
      continue;
    const float *x = from + items[words * b] + c;
    if (c + 4 <= COLS && (u64)x % 16 == 0) {
      copy_async((u32 *)to + 4 * at, (const u32 *)x);
      continue;
    }
#pragma unroll 1
    for (u32 i = 0; i < 4; i++)
      if (c + i < COLS)
        copy_word(to + 4 * at + i, x + i);
      else
        to[4 * at + i] = 0.0f;
  }
}

// A thread's sums for BATCH results, as many as their sums over lanes need: s[b * TR + i] is of row
// i of result b.
template <int RPW, int COLS, int BATCH> struct ProductSums {
  static constexpr int N = power_of_two(BATCH * Tile<RPW, COLS>::TR);
  float s[N];
  VP_MEMBER ProductSums() {
#pragma unroll
    for (int i = 0; i < N; i++)
      s[i] = 0.0f;
  }
};

// Adds the products of this warp's columns with BATCH vectors x, of which read(v, b, q) reads
// columns q.. of vector b.
template <int RPW, int COLS, int BATCH, class Read>
VP void multiply_items(const float *w, const Read &read, float *s) {
  typedef Tile<RPW, COLS> T;
#pragma unroll
  for (int q = 0; q < T::TC; q += T::V)
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      float v[T::V];
      read(v, b, q);
#pragma unroll
      for (int j = 0; j < T::V; j++)
#pragma unroll
        for (int i = 0; i < T::TR; i++)
          s[b * T::TR + i] = FMA(w[i * T::TC + q + j], v[j], s[b * T::TR + i]);
    }
}

// Sums over the warp's lanes: to[b * WARPS * ROWS + r] is of row r of result b.
template <int RPW, int COLS, int BATCH> VP void sum_products(float *s, float *to) {
  typedef Tile<RPW, COLS> T;
  constexpr int N = ProductSums<RPW, COLS, BATCH>::N, M = at_least_1(N / T::LC);
  constexpr int RUN = T::TR % M == 0 ? run_of(M) : 1;
  LaneSums<N, T::LC, 2>::of(s);
  u32 k = T::lane_column(), first = k * N / T::LC;
  if (N < T::LC && k % (T::LC / N) != 0)
    return;
#pragma unroll
  for (int i = 0; i < M; i += RUN)
    if (first + i < BATCH * T::TR)
      write_run<RUN>(to + (first + i) / T::TR * WARPS * T::ROWS + T::row() + (first + i) % T::TR,
                     s + i);
}

template <int RPW, int COLS, int BATCH, class Read>
VP void product_items(const float *w, const Read &read, float *to) {
  ProductSums<RPW, COLS, BATCH> sums;
  multiply_items<RPW, COLS, BATCH>(w, read, sums.s);
  sum_products<RPW, COLS, BATCH>(sums.s, to);
}

// The elements of up to STAGE results that a thread finishes: y = f(scale * W x + bias), from the
// warps' sums. What they are made of beside the sums is
// fetched before these are formed.
template <int ROWS, int STAGE> struct Results {
  static constexpr int EACH = (STAGE * ROWS + (int)THREADS - 1) / (int)THREADS;
  float bias[EACH], old[EACH];
  const u32 words; // of an item

  VP_MEMBER explicit Results(u32 words) : words(words) {}
  VP_MEMBER static u32 at(u32 j) { return j * THREADS + THREAD; }
  VP_MEMBER static u32 row(u32 j, const Partition &part) { return part.row + at(j) % ROWS; }
  VP_MEMBER static bool mine(u32 j, u32 count, const Partition &part) {
    return at(j) < count * ROWS && row(j, part) < part.end;
  }
  VP_MEMBER float *place(u32 j, const Launch &l, const u32 *w, const u32 *items,
                         const Partition &part) const {
    return address(l, w[PRODUCT_SEGMENTS], 0, items[at(j) / ROWS * words]) + row(j, part);
  }

  VP_MEMBER void fetch(const Launch &l, const u32 *w, u32 flags, const u32 *items, u32 count,
                       const Partition &part) {
    const float *from = address(l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS]);
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
      bool now = mine(j, count, part);
      bias[j] = now && (flags & FLAG_BIAS) ? from[row(j, part)] : 0.0f;
      old[j] = now && (flags & FLAG_ACC) ? *place(j, l, w, items, part) : 0.0f;
    }
  }
  template <class Function>
  VP_MEMBER void store(const float *sums, const Launch &l, const u32 *w, u32 flags,
                       const u32 *items, u32 count, const Partition &part,
                       const Function &function) const {
    float scale = FLOAT_OF(w[PRODUCT_SCALE]), bias_scale = FLOAT_OF(w[PRODUCT_BIAS_SCALE]);
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
      if (!mine(j, count, part))
        continue;
      const float *s = sums + at(j) / ROWS * WARPS * ROWS + at(j) % ROWS;
      float v = s[0];
#pragma unroll
      for (u32 g = 1; g < WARPS; g++)
        v += s[g * ROWS];
      v *= scale;
      if (flags & FLAG_BIAS)
        v = FMA(bias[j], bias_scale, v);
      *place(j, l, w, items, part) = canonical(function(flags & FLAG_ACC ? old[j] + v : v));
    }
  }
};

// Warps meet once every STAGE items, to add their sums up. Each has RING vectors' parts ahead of
// it.
template <int RPW, int COLS, int RING, int STAGE>
VP void product_rows(const float *w, const Launch &l, const u32 *instruction, const u32 *items,
                     u32 flags, u32 count, const Partition &part, float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = product_batch<RPW, COLS, (RING / 2 < STAGE ? RING / 2 : STAGE)>();
  constexpr int DEPTH = RING / BATCH, SUMS = STAGE * (int)WARPS * T::ROWS;
  u32 warp = THREAD / 32, fn = instruction[0] >> 8 & 255u;
  auto function = [=](float v) { return behind_product(fn, v); };
  const float *from = segment_of(l, instruction[PRODUCT_SEGMENTS], 1);
  float *ring = shared + warp * RING * T::PART, *sums = shared + RING * T::WIDTH;
  if (count == 1) { // the shortest way
    Results<T::ROWS, 1> y(2);
    y.fetch(l, instruction, flags, items, 1, part);
    float x[T::TC];
#pragma unroll
    for (int q = 0; q < T::TC; q += T::V)
      read_some<T::V>(x + q, from + items[1] + T::column(q), COLS - (int)T::column(q));
    __syncthreads(); // the buffers are free
    auto read = [&](float *v, int, int q) {
#pragma unroll
      for (int j = 0; j < T::V; j++)
        v[j] = x[q + j];
    };
    product_items<RPW, COLS, 1>(w, read, sums + warp * T::ROWS);
    __syncthreads();
    y.store(sums, l, instruction, flags, items, 1, part, function);
    return;
  }
  __syncthreads(); // the buffers are free
  auto copy = [&](u32 e) {
    if (e < count)
      copy_part<RPW, COLS, BATCH>(ring + e / BATCH % DEPTH * BATCH * T::PART, from,
                                  items + 2 * e + 1, 2, count - e);
    commit_copies();
  };
#pragma unroll
  for (int d = 0; d + 1 < DEPTH; d++)
    copy(d * BATCH);
#pragma unroll 1
  for (u32 done = 0; done < count; done += STAGE) {
    u32 here = min(count - done, (u32)STAGE);
    float *to = sums + done / STAGE % 2 * SUMS;
    Results<T::ROWS, STAGE> y(2);
    y.fetch(l, instruction, flags, items + 2 * done, here, part);
#pragma unroll 1
    for (u32 b = 0; b < here; b += BATCH) {
      wait_for_all_but<DEPTH - 2>();
      __syncwarp(); // the batch is here, and that of the batch before free
      copy(done + b + (DEPTH - 1) * BATCH);
      const float *x = ring + (done + b) / BATCH % DEPTH * BATCH * T::PART;
      auto read = [&](float *v, int i, int q) {
        read_run<T::V>(v, x + i * T::PART + T::in_part(q));
      };
      product_items<RPW, COLS, BATCH>(w, read, to + (b * WARPS + warp) * T::ROWS);
    }
    __syncthreads();
    y.store(to, l, instruction, flags, items + 2 * done, here, part, function);
  }
}

// Adds this thread's share of W^T dy to t, for BATCH items whose dy are in rows of shared memory:
// t[b * TC + q] belongs to column(q) of item b.
template <int RPW, int COLS, int BATCH>
VP void transposed_rows(const float *w, const float *dy, float *t) {
  typedef Tile<RPW, COLS> T;
#pragma unroll
  for (int i = 0; i < T::TR; i += T::VR)
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      float d[T::VR];
      read_run<T::VR>(d, dy + b * T::ROWS + T::row() + i);
#pragma unroll
      for (int j = 0; j < T::VR; j++)
#pragma unroll
        for (int q = 0; q < T::TC; q++)
          t[b * T::TC + q] = FMA(w[(i + j) * T::TC + q], d[j], t[b * T::TC + q]);
    }
}

// Sums the lanes' shares of up to count of BATCH items and stores them, times scale, at base and
// what every second word of items says.
template <int RPW, int COLS, int BATCH>
VP void transposed_store(float *t, float *base, float scale, const u32 *items, u32 count,
                         u32 flags) {
  typedef Tile<RPW, COLS> T;
  constexpr int N = power_of_two(BATCH * T::TC), M = at_least_1(N / T::LR),
                RUN = M < T::V ? M : T::V;
  float s[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    s[i] = i < BATCH * T::TC ? t[i] : 0.0f;
  LaneSums<N, 16, 2 * T::LC>::of(s);
  LaneSums<at_least_1(N * 2 / T::LR), 1, 1>::of(s);
  u32 k = T::lane_row(), first = k * N / T::LR;
  if (N < T::LR && k % (T::LR / N) != 0)
    return;
#pragma unroll
  for (int i = 0; i < M; i += RUN) {
    u32 b = (first + i) / T::TC, c = T::column((first + i) % T::TC);
    if (b >= BATCH || b >= count)
      continue;
    float v[RUN];
#pragma unroll
    for (int j = 0; j < RUN; j++)
      v[j] = scale * s[i + j];
#ifdef VPPS_ATOMICS
    if (flags & FLAG_ATOMIC) {
      add_some<RUN>(base + items[2 * b] + c, v, COLS - (int)c);
      continue;
    }
#endif
    put_some<RUN>(base + items[2 * b] + c, v, COLS - (int)c, flags);
  }
}

// The gradient's columns are shared by pieces of 32 * ITERS: copies of the matrix, or several of
// one copy. A thread forms RPW rows and ITERS columns: of a warp's lanes 4 are side by side along
// the rows, 8 along the columns.
template <int RPW, int ITERS, int STAGE>
VP void outer_rows(const Launch &l, const u32 *instruction, const u32 *items, u32 flags, u32 count,
                   const Partition &part, u32 piece, float *shared) {
  constexpr int V = run_of(ITERS);
  constexpr int WIDTH = ITERS * 32, ROWS = (int)WARPS * RPW, VR = run_of(RPW);
  constexpr int MOST = RPW * ITERS <= 16 ? 4 : RPW * ITERS <= 32 ? 2 : 1;
  constexpr int BATCH = MOST < STAGE ? MOST : STAGE, ALL = STAGE * (WIDTH + ROWS);
  u32 lane = THREAD % 32, warp = THREAD / 32;
  u32 row = RPW * (warp / 4 * 4 + lane % 2 + lane / 16 * 2);
  u32 column = V * (warp % 4 * 8 + lane / 2 % 8);
  u32 left = piece * WIDTH; // the first column
  u32 segments = instruction[OUTER_SEGMENTS];
  const float *dys = segment_of(l, segments, 1), *xs = segment_of(l, segments, 2);
  float g[RPW * ITERS];
#pragma unroll
  for (int i = 0; i < RPW * ITERS; i++)
    g[i] = 0.0f;
  u32 stages = (count + STAGE - 1) / STAGE;
  __syncthreads(); // the buffers are free
#pragma unroll 1
  for (u32 k = 0; k < stages + 2; k++) {
    if (k > 1) { // what was begun two stages ago is here, and all have finished the stage before
      wait_for_copies();
      __syncthreads();
    }
    if (k < stages) {
      float *to = shared + k % 3 * ALL;
      u32 e = k * STAGE;
      stage<WIDTH, STAGE, true>(to, xs, items + 2 * e + 1, count - e, left, part.cols);
      stage<ROWS, STAGE, true>(to + STAGE * WIDTH, dys + part.row, items + 2 * e, count - e, 0,
                               part.end - part.row);
    }
    commit_copies();
    if (k < 2)
      continue;
    const float *x = shared + (k - 2) % 3 * ALL + column,
                *dy = shared + (k - 2) % 3 * ALL + STAGE * WIDTH + row;
    u32 here = min(count - (k - 2) * STAGE, (u32)STAGE);
#pragma unroll 1
    for (u32 e = 0; e < here; e += BATCH) // behind the last item dy is 0
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        float d[RPW];
#pragma unroll
        for (int i = 0; i < RPW; i += VR)
          read_run<VR>(d + i, dy + (e + b) * ROWS + i);
#pragma unroll
        for (int q = 0; q < ITERS; q += V) {
          float v[V];
          read_run<V>(v, x + (e + b) * WIDTH + 32 * q);
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int i = 0; i < RPW; i++)
              g[(q + j) * RPW + i] = FMA(d[i], v[j], g[(q + j) * RPW + i]);
        }
      }
  }
  float *to = address(l, segments, 0, instruction[OUTER_DST]) + part.row + row;
  float scale = FLOAT_OF(instruction[OUTER_SCALE]);
#pragma unroll
  for (int q = 0; q < ITERS; q++)
#pragma unroll
    for (int i = 0; i < RPW; i += VR) {
      u32 c = left + column + 32 * (q / V * V) + q % V;
      float v[VR];
#pragma unroll
      for (int j = 0; j < VR; j++)
        v[j] = scale * g[q * RPW + i + j];
      int rows = c < part.cols ? (int)part.end - (int)(part.row + row + i) : 0;
      put_some<VR>(to + i + c * part.rows, v, rows, flags);
    }
}
