// The GPU's matrix routines, called from code generated for the plan with literal sizes.
//
// A partition is at most ROWS = WARPS * RPW consecutive rows, up to end. A thread holds a tile of
// it, of neighbouring rows, and columns in runs of V (tile_gpu.h). Vectors come through shared
// memory, copied ahead of where they are needed: for products by each warp for itself; what all
// warps read, STAGE items at a time, into one of three buffers.
#pragma once

// Sums N (a power of two) values over lanes of distances D, D/2, ... END. While there are several,
// partners swap halves, so that a step costs half the shuffles of the one before: the k-th of L
// lanes, bit D of its number first, ends up with the sums of v[k * N / L] and those behind, in v[0]
// on. In the first FREE steps a lane has the half that it keeps in front (flip_of), in the others
// it looks which.
template <int N, int D, int END, int FREE> struct LaneSums {
  VP_MEMBER static void of(float *v) {
    bool behind = FREE == 0 && (THREAD & D);
    if (N == 1)
      v[0] += __shfl_xor_sync(0xFFFFFFFFu, v[0], D);
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
      float mine = behind ? v[i + N / 2] : v[i], other = behind ? v[i] : v[i + N / 2];
      v[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, D);
    }
    LaneSums<at_least_1(N / 2), D == END ? 0 : D / 2, END, FREE == 0 ? 0 : FREE - 1>::of(v);
  }
};
template <int N, int END, int FREE> struct LaneSums<N, 0, END, FREE> {
  VP_MEMBER static void of(float *) {}
};

__device__ constexpr int log_2(int n) { return n <= 1 ? 0 : 1 + log_2(n / 2); }
__device__ constexpr int lesser(int a, int b) { return a < b ? a : b; }

// A lane's own order takes registers, too.
__device__ constexpr int free_steps(int bits, int steps) {
  return VPPS_SUMS < 32 ? 0 : lesser(bits, steps);
}

// Which item a lane has in the place of item b of 2^BITS is b ^ flip_of<BITS, D>(), so that it
// keeps what is in front in the steps of distances D, D/2, ...
template <int BITS, int D> VP u32 flip_of() {
  u32 flip = 0;
#pragma unroll
  for (int k = 0; k < BITS; k++)
    flip |= THREAD & (D >> k) ? 1u << (BITS - 1 - k) : 0;
  return flip;
}

// Starts copying elements first up to end of up to count of ITEMS vectors, whose places are every
// second word of items, into rows of WIDTH floats. Behind end is 0; behind count, up to the next
// multiple of FILL.
template <int WIDTH, int ITEMS, int FILL>
VP void stage(float *to, const float *from, const u32 *items, u32 count, u32 first, u32 end) {
  const u32 chunks = min((count + FILL - 1) / FILL * FILL, (u32)ITEMS) * (WIDTH / 4);
  bool single = false;
#pragma unroll 1 // copies are on their way at once anyway, and registers are few
  for (u32 at = THREAD; at < chunks; at += THREADS) {
    u32 b = at / (WIDTH / 4), c = first + at % (WIDTH / 4) * 4;
    if (b < count && c < end) {
      const float *x = from + items[2 * b] + c;
      if (c + 4 <= end && (u64)x % 16 == 0)
        copy_async((u32 *)to + 4 * at, (const u32 *)x);
      else
        single = true;
    } else
      *(float4 *)(to + 4 * at) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  if (!single)
    return;
#pragma unroll 1
  for (u32 at = THREAD; at < chunks; at += THREADS) {
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

// Whether vectors, whose places are every second word of items, begin at multiples of 16 bytes. All
// threads meet.
VP bool all_aligned(const float *from, const u32 *items, u32 count) {
  bool aligned = true;
  for (u32 i = THREAD; i < count; i += THREADS)
    aligned &= (u64)(from + items[2 * i]) % 16 == 0;
  return __syncthreads_and(aligned);
}

// How many items are worked on at a time, up to MOST: as many as there are registers for their
// sums. More of them take longer where there are few.
__device__ constexpr int batch_of(int each, int most, int registers) {
  return most >= 8 && each >= 4 && 8 * each <= registers ? 8
         : most >= 4 && 4 * each <= registers            ? 4
         : most >= 2 && 2 * each <= registers            ? 2
                                                         : 1;
}
template <int RPW, int COLS, int MOST, int REGISTERS = 16>
__device__ constexpr int product_batch() {
  return batch_of(Tile<RPW, COLS>::TR, MOST, REGISTERS);
}
template <int RPW, int COLS, int STAGE> __device__ constexpr int transposed_batch() {
  return batch_of(Tile<RPW, COLS>::TC, STAGE, Tile<RPW, COLS>::TC <= 4 ? VPPS_SUMS : 16);
}

// Starts copying this warp's columns of up to count of BATCH vectors, whose places are every second
// word of items, into rows of PART floats. Behind the vectors' end is 0.
template <int RPW, int COLS, int BATCH>
VP void copy_part(float *to, const float *from, const u32 *items, u32 count) {
  typedef Tile<RPW, COLS> T;
  constexpr int CHUNKS = T::PART / 4;
#pragma unroll
  for (int j = 0; j < BATCH * CHUNKS; j += 32) {
    u32 at = j + THREAD % 32, b = at / CHUNKS, c = T::first_column() + at % CHUNKS * 4;
    if (at >= BATCH * CHUNKS || b >= count)
      continue;
    const float *x = from + items[2 * b] + c;
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

// A thread's sums for BATCH results: s[b * EACH + i] is of row i of its b-th.
template <int RPW, int COLS, int BATCH> struct ProductSums {
  typedef Tile<RPW, COLS> T;
  static constexpr int EACH = power_of_two(T::TR), N = BATCH * EACH;
  static constexpr int FREE = free_steps(log_2(BATCH), log_2(T::LC));
  float s[N];
  VP_MEMBER ProductSums() {
#pragma unroll
    for (int i = 0; i < N; i++)
      s[i] = 0.0f;
  }
  // Which result the b-th is.
  static VP_MEMBER u32 flip() { return flip_of<FREE, T::LC>() << (log_2(BATCH) - FREE); }

  // Adds the products of this warp's columns with BATCH vectors x, of which read(v, b, q) reads
  // columns q.. of the b-th.
  template <class Read> VP_MEMBER void multiply(const float *w, const Read &read) {
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
            s[b * EACH + i] = FMA(w[i * T::TC + q + j], v[j], s[b * EACH + i]);
      }
  }

  // Sums over the warp's lanes: to[b * WARPS * ROWS + r] is of row r of result b.
  VP_MEMBER void sum(float *to) {
    constexpr int M = at_least_1(N / T::LC), RUN = T::TR % M == 0 ? run_of(M) : 1;
    LaneSums<N, T::LC, 2, FREE>::of(s);
    u32 k = T::lane_column(), first = k * N / T::LC;
    if (N < T::LC && k % at_least_1(T::LC / N) != 0)
      return;
#pragma unroll
    for (int i = 0; i < M; i += RUN) {
      u32 b = (first + i) / EACH, r = (first + i) % EACH;
      if (r < T::TR)
        write_run<RUN>(to + b * WARPS * T::ROWS + T::row() + r, s + i);
    }
  }
};

// The elements of up to STAGE results that a thread finishes: y = f(scale * W x + bias), from the
// warps' sums. What they are made of beside the sums is fetched before these are formed.
template <int ROWS, int STAGE> struct Results {
  static constexpr int EACH = (STAGE * ROWS + (int)THREADS - 1) / (int)THREADS;
  float bias[EACH], old[EACH];

  VP_MEMBER static u32 at(u32 j) { return j * THREADS + THREAD; }
  VP_MEMBER static u32 row(u32 j, const Partition &part) { return part.row + at(j) % ROWS; }
  VP_MEMBER static bool mine(u32 j, u32 count, const Partition &part) {
    return at(j) < count * ROWS && row(j, part) < part.end();
  }
  VP_MEMBER float *place(u32 j, const Work &work, const Partition &part) const {
    return address(work.l, work.w[PRODUCT_SEGMENTS], 0, work.items[at(j) / ROWS * 2]) +
           row(j, part);
  }

  VP_MEMBER void fetch(const Work &work, const Partition &part) {
    const u32 *w = work.w, flags = work.flags;
    const float *from = address(work.l, w[PRODUCT_SEGMENTS], 2, w[PRODUCT_BIAS]);
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
      bool now = mine(j, work.count, part);
      bias[j] = now && (flags & FLAG_BIAS) ? from[row(j, part)] : 0.0f;
      old[j] = now && (flags & FLAG_ACC) ? *place(j, work, part) : 0.0f;
    }
  }
  template <class Function>
  VP_MEMBER void store(const float *sums, const Work &work, const Partition &part,
                       const Function &function) const {
    const u32 *w = work.w, flags = work.flags;
    float scale = FLOAT_OF(w[PRODUCT_SCALE]), bias_scale = FLOAT_OF(w[PRODUCT_BIAS_SCALE]);
    float v[EACH] = {}; // of all before one is stored
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
      const float *s = sums + at(j) / ROWS * WARPS * ROWS + at(j) % ROWS;
      if (STAGE * ROWS % THREADS == 0 || mine(j, work.count, part))
        v[j] = ((s[0] + s[ROWS]) + (s[2 * ROWS] + s[3 * ROWS])) +
               ((s[4 * ROWS] + s[5 * ROWS]) + (s[6 * ROWS] + s[7 * ROWS]));
    }
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
      if (!mine(j, work.count, part))
        continue;
      v[j] *= scale;
      if (flags & FLAG_BIAS)
        v[j] = FMA(bias[j], bias_scale, v[j]);
      *place(j, work, part) = canonical(function(flags & FLAG_ACC ? old[j] + v[j] : v[j]));
    }
  }
};

// One result.
template <int RPW, int COLS, class Function>
VP void product_once(const float *r, const Function &function, const Work &work,
                     const Partition &part, float *sums) {
  typedef Tile<RPW, COLS> T;
  const Work one = work.part(0, 1);
  const float *from = segment_of(work.l, work.w[PRODUCT_SEGMENTS], 1);
  Results<T::ROWS, 1> y;
  y.fetch(one, part);
  ProductSums<RPW, COLS, 1> all;
  float x[T::TC];
#pragma unroll
  for (int q = 0; q < T::TC; q += T::V)
    read_some<T::V>(x + q, from + work.items[1] + T::column(q), COLS - (int)T::column(q));
  auto read = [&](float *v, int, int q) {
#pragma unroll
    for (int i = 0; i < T::V; i++)
      v[i] = x[q + i];
  };
  all.multiply(r, read);
  __syncthreads(); // the buffers are free
  all.sum(sums + THREAD / 32 * T::ROWS);
  __syncthreads();
  y.store(sums, one, part, function);
}

// Products of one matrix with some vectors. Warps meet once every STAGE items, to add their sums
// up. Each has RING vectors' parts ahead of it.
template <int RPW, int COLS, int RING, int STAGE, class Function>
VP void products(const float *r, const Function &function, const Work &work, const Partition &part,
                 float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = product_batch<RPW, COLS, lesser(RING / 2, STAGE)>();
  constexpr int DEPTH = RING / BATCH, SUMS = STAGE * (int)WARPS * T::ROWS;
  const u32 warp = THREAD / 32, count = work.count;
  const float *from = segment_of(work.l, work.w[PRODUCT_SEGMENTS], 1);
  float *ring = shared + warp * RING * T::PART, *sums = shared + RING * T::WIDTH;
  if (count == 1)
    return product_once<RPW, COLS>(r, function, work, part, sums);
  __syncthreads(); // the buffers are free
  u32 next = 0, to = 0,
      at = 0; // the next item to copy; its batch of the ring; that of the next multiplied
  auto copy = [&] {
    if (next < count)
      copy_part<RPW, COLS, BATCH>(ring + to * BATCH * T::PART, from, work.items + 2 * next + 1,
                                  count - next);
    commit_copies();
    to = to + 1 < DEPTH ? to + 1 : 0;
    next += BATCH;
  };
#pragma unroll 1
  for (int d = 0; d + 1 < DEPTH; d++)
    copy();
#pragma unroll 1
  for (u32 done = 0; done < count; done += STAGE) {
    const Work some = work.part(done, min(count - done, (u32)STAGE));
    float *into = sums + done / STAGE % 2 * SUMS;
    Results<T::ROWS, STAGE> y;
    y.fetch(some, part);
#pragma unroll 1
    for (u32 b = 0; b < some.count; b += BATCH) {
      ProductSums<RPW, COLS, BATCH> all;
      const u32 flip = all.flip();
      wait_for_all_but<DEPTH - 2>();
      __syncwarp(); // the batch is here, and that of the batch before free
      copy();
      const float *x = ring + at * BATCH * T::PART;
      at = at + 1 < DEPTH ? at + 1 : 0;
      auto read = [&](float *v, int i, int q) {
        read_run<T::V>(v, x + (i ^ flip) * T::PART + T::in_part(q));
      };
      all.multiply(r, read);
      all.sum(into + (b * WARPS + warp) * T::ROWS);
    }
    __syncthreads();
    y.store(into, some, part, function);
  }
}

// The warps' sums of the products with count vectors, which are in rows of shared memory.
template <int RPW, int COLS, int VECTORS>
VP void multiply_buffer(const float *r, const float *vectors, float *to, u32 count) {
  typedef Tile<RPW, COLS> T;
  constexpr int BATCH = product_batch<RPW, COLS, VECTORS, VPPS_SUMS>();
#pragma unroll 1
  for (u32 b = 0; b < count; b += BATCH) {
    ProductSums<RPW, COLS, BATCH> all;
    const u32 flip = all.flip();
    const float *x = vectors + b * T::WIDTH + T::first_column();
    auto read = [&](float *v, int i, int q) {
      read_run<T::V>(v, x + (i ^ flip) * T::WIDTH + T::in_part(q));
    };
    all.multiply(r, read);
    all.sum(to + (b * WARPS + THREAD / 32) * T::ROWS);
  }
}

// Products of one matrix with many vectors, which come into two buffers of so many by bulk copies.
// The buffers are free.
template <int RPW, int COLS, int VECTORS, class Function>
VP void products_in_buffers(const float *r, const Function &function, const BulkCopies &bulk,
                            const Work &work, const Partition &part, float *shared) {
  typedef Tile<RPW, COLS> T;
  constexpr int BUFFER = VECTORS * T::WIDTH, SUMS = VECTORS * (int)WARPS * T::ROWS;
  const float *from = segment_of(work.l, work.w[PRODUCT_SEGMENTS], 1);
  const u32 *items = work.items, count = work.count;
  float *sums = shared + 2 * BUFFER;
  auto copy = [&](u32 done, u32 k) {
    if (done >= count)
      return;
    const u32 n = min(count - done, (u32)VECTORS);
    bulk.expect(k, 4 * n * COLS);
    bulk.copy_vectors<T::WIDTH>(k, shared + k * BUFFER, n, COLS,
                                [&](u32 i) { return from + items[2 * (done + i) + 1]; });
  };
  bulk.fence();
  copy(0, 0);
#pragma unroll 1
  for (u32 done = 0, k = 0; done < count; done += VECTORS, k ^= 1) {
    const u32 here = min(count - done, (u32)VECTORS);
    copy(done + VECTORS, k ^ 1);
    float *to = sums + k * SUMS;
    Results<T::ROWS, VECTORS> y;
    y.fetch(work.part(done, here), part);
    bulk.wait(k);
    __syncwarp();
    multiply_buffer<RPW, COLS, VECTORS>(r, shared + k * BUFFER, to, here);
    __syncthreads();
    y.store(to, work.part(done, here), part, function);
  }
}

// Of so many items on bulk copies, which begin later, are faster. They take registers, too.
#define MANY_ITEMS 16
__device__ constexpr bool in_bulk() { return BulkCopies::THERE && VPPS_SUMS >= 32; }

template <int RPW, int COLS, int RING, int STAGE, int VECTORS>
VP void product_rows(const float *r, const BulkCopies &bulk, const Work &work,
                     const Partition &part, float *shared) {
  u32 fn = work.w[0] >> 8 & 255u;
  auto function = [=](float v) { return behind_product(fn, v); };
  if (in_bulk() && COLS % 32 == 0 && work.count >= MANY_ITEMS &&
      all_aligned(segment_of(work.l, work.w[PRODUCT_SEGMENTS], 1), work.items + 1, work.count))
    products_in_buffers<RPW, COLS, VECTORS>(r, function, bulk, work, part, shared);
  else
    products<RPW, COLS, RING, STAGE>(r, function, work, part, shared);
}

// A thread's sums of W^T dy for BATCH items: t[b * EACH + q] belongs to column(q) of its b-th.
template <int RPW, int COLS, int BATCH> struct TransposedSums {
  typedef Tile<RPW, COLS> T;
  static constexpr int EACH = power_of_two(T::TC), N = BATCH * EACH;
  // Lanes are summed at distances 16 down to 2 * LC, then 1.
  static constexpr int BITS = log_2(BATCH), FAR = free_steps(BITS, log_2(T::LR) - 1),
                       NEAR = free_steps(BITS - FAR, 1), FREE = FAR + NEAR;
  float t[N];
  VP_MEMBER TransposedSums() {
#pragma unroll
    for (int i = 0; i < N; i++)
      t[i] = 0.0f;
  }
  // Which item the b-th is.
  static VP_MEMBER u32 flip() {
    return flip_of<FAR, 16>() << (BITS - FAR) | flip_of<NEAR, 1>() << (BITS - FREE);
  }

  // Adds this thread's share; the items' dy are in rows of shared memory.
  VP_MEMBER void add(const float *w, const float *dy) {
    const u32 flip = this->flip();
#pragma unroll
    for (int i = 0; i < T::TR; i += T::VR)
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        float d[T::VR];
        read_run<T::VR>(d, dy + (b ^ flip) * T::ROWS + T::row() + i);
#pragma unroll
        for (int j = 0; j < T::VR; j++)
#pragma unroll
          for (int q = 0; q < T::TC; q++)
            t[b * EACH + q] = FMA(w[(i + j) * T::TC + q], d[j], t[b * EACH + q]);
      }
  }

  // Sums the lanes' shares of up to count items and stores them, times scale, at base and what
  // every second word of items says.
  VP_MEMBER void store(float *base, float scale, const u32 *items, u32 count, u32 flags) {
    constexpr int M = at_least_1(N / T::LR), RUN = M < T::V ? M : T::V;
    LaneSums<N, 16, 2 * T::LC, FAR>::of(t);
    LaneSums<at_least_1(N * 2 / T::LR), 1, 1, NEAR>::of(t);
    u32 k = T::lane_row(), first = k * N / T::LR;
    if (N < T::LR && k % (T::LR / N) != 0)
      return;
#pragma unroll
    for (int i = 0; i < M; i += RUN) {
      u32 b = (first + i) / EACH, q = (first + i) % EACH;
      if (q >= T::TC || b >= count)
        continue;
      u32 c = T::column(q);
      float v[RUN];
#pragma unroll
      for (int j = 0; j < RUN; j++)
        v[j] = scale * t[i + j];
      put_some<RUN>(base + items[2 * b] + c, v, COLS - (int)c, flags);
    }
  }
};

// A thread's share of a gradient of 8 * RPW rows and 32 * ITERS columns: RPW rows and ITERS
// columns. Of a warp's lanes 4 are side by side along the rows, 8 along the columns.
template <int RPW, int ITERS, int STAGE> struct Gradient {
  static constexpr int BATCH = lesser(RPW * ITERS <= 16 ? 4 : RPW * ITERS <= 32 ? 2 : 1, STAGE);
  static constexpr int V = run_of(ITERS), VR = run_of(RPW);
  static constexpr int VECTOR = 32 * ITERS, DY = 8 * RPW;
  float g[RPW * ITERS];

  VP_MEMBER static u32 row() {
    return RPW * (THREAD / 128 * 4 + THREAD % 2 + THREAD % 32 / 16 * 2);
  }
  VP_MEMBER static u32 column() { return V * (THREAD / 32 % 4 * 8 + THREAD / 2 % 8); }

  VP_MEMBER Gradient() {
#pragma unroll
    for (int i = 0; i < RPW * ITERS; i++)
      g[i] = 0.0f;
  }
  // Adds dy x^T of BATCH items, rows of shared memory.
  VP_MEMBER void add(const float *x, const float *dy) {
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      float d[RPW];
#pragma unroll
      for (int i = 0; i < RPW; i += VR)
        read_run<VR>(d + i, dy + b * DY + row() + i);
#pragma unroll
      for (int q = 0; q < ITERS; q += V) {
        float v[V];
        read_run<V>(v, x + b * VECTOR + column() + 32 * q);
#pragma unroll
        for (int j = 0; j < V; j++)
#pragma unroll
          for (int i = 0; i < RPW; i++)
            g[(q + j) * RPW + i] = FMA(d[i], v[j], g[(q + j) * RPW + i]);
      }
    }
  }
  // Stores it, times scale, at to; columns of the matrix are apart floats from each other.
  VP_MEMBER void store(float *to, u32 apart, float scale, u32 rows, u32 columns, u32 flags) {
#pragma unroll
    for (int q = 0; q < ITERS; q++)
#pragma unroll
      for (int i = 0; i < RPW; i += VR) {
        const u32 c = column() + 32 * (q / V * V) + q % V, r = row() + i;
        float v[VR];
#pragma unroll
        for (int j = 0; j < VR; j++)
          v[j] = scale * g[q * RPW + i + j];
        put_some<VR>(to + r + c * apart, v, c < columns ? (int)rows - (int)r : 0, flags);
      }
  }
};

// A block of a gradient, of 8 * RPW rows and 32 * ITERS columns, by multiply-adds.
template <int RPW, int ITERS>
VP void outer_block(const Work &work, const Grid &grid, u32 block, float *shared) {
  constexpr int STAGE = VPPS_OUTER_ITEMS;
  typedef Gradient<RPW, ITERS, STAGE> G;
  constexpr int BATCH = G::BATCH, VECTORS = STAGE * G::VECTOR, ALL = VECTORS + STAGE * G::DY;
  const Launch &l = work.l;
  const u32 *items = work.items, count = work.count;
  const u32 segments = work.w[OUTER_SEGMENTS], row = grid.row(block), column = grid.column(block);
  const float *dys = segment_of(l, segments, 1), *xs = segment_of(l, segments, 2);
  const u32 stages = (count + STAGE - 1) / STAGE;
  G sums;
  __syncthreads(); // the buffers are free
#pragma unroll 1
  for (u32 k = 0; k < stages + 2; k++) {
    if (k > 1) { // what was begun two stages ago is here, and all have finished the stage before
      wait_for_copies();
      __syncthreads();
    }
    if (k < stages) {
      float *to = shared + k % 3 * ALL;
      const u32 *at = items + 2 * k * STAGE;
      const u32 n = min(count - k * STAGE, (u32)STAGE);
      stage<G::VECTOR, STAGE, BATCH>(to, xs, at + 1, n, column, grid.columns);
      stage<G::DY, STAGE, BATCH>(to + VECTORS, dys, at, n, row, grid.rows);
    }
    commit_copies();
    if (k < 2)
      continue;
    const float *x = shared + (k - 2) % 3 * ALL, *dy = x + VECTORS;
    u32 here = min(count - (k - 2) * STAGE, (u32)STAGE);
#pragma unroll 1
    for (u32 e = 0; e < here; e += BATCH) // after the last item dy is 0
      sums.add(x + e * G::VECTOR, dy + e * G::DY);
  }
  float *to = address(l, segments, 0, work.w[OUTER_DST]) + row + column * grid.rows;
  sums.store(to, grid.rows, FLOAT_OF(work.w[OUTER_SCALE]), grid.rows - row, grid.columns - column,
             work.flags);
}

// The processor's blocks of a gradient.
VP void outer_of(const Work &work, const Grid &grid, float *shared) {
  if (work.count >= 64) // fewer take as long
    return outer_blocks(work, grid, *(OuterMemory *)shared);
#pragma unroll 1
  for (u32 block = grid.mine(); block < grid.count; block += gridDim.x)
    if (grid.tall)
      outer_block<8, 2>(work, grid, block, shared);
    else
      outer_block<4, 4>(work, grid, block, shared);
}
