// Which elements of its matrices a thread of the GPU holds, and how they get there.
#pragma once

typedef unsigned short u16;

// The partition that a processor keeps in one of its register arrays; matrix -1: none. Small, for
// there is one for each array of every processor in constant memory (persist/plan/roundrobin.go:
// tableSlots).
struct Partition {
  short matrix;
  u16 height, cols; // of the partition
  u16 copy, copies; // which of how many of the matrix
  u16 left;         // its first column
  u16 width;        // columns of the matrix
  u16 rank;         // of its rows' holder: its results of transposed products are in this order
  u32 row;          // its first
  u32 rows, offset; // of the matrix, which is at offset in segment param
  VP_MEMBER u32 end() const { return row + height; }
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

// Whether the products of such a partition, or the gradient of so many rows a warp and columns /
// 32, are the tensor cores' (tensor_gpu.h): then rows of shared memory are PAD floats apart, too.
#ifdef VPPS_TENSOR
__device__ constexpr bool on_tensor_cores(int rpw, int columns) {
  return rpw % 2 == 0 && rpw <= 8 && columns % 4 == 0 && columns <= 8;
}
#else
__device__ constexpr bool on_tensor_cores(int, int) { return false; }
#endif
__device__ constexpr int pad_of(bool tensor) { return tensor ? 8 : 0; }

// Which elements of a partition a thread holds: w[i * TC + q] is row row() + i and column
// column(q) of it. Of a warp's lanes LR are side by side along the rows, LC along the columns, so
// that sums over both are short; a warp has PART neighbouring columns.
template <int RPW, int COLS> struct Tile {
  static constexpr int ITERS = iterations(COLS), WIDTH = 32 * ITERS, ROWS = (int)WARPS * RPW;
  static constexpr int LR = ITERS % 2 == 0 && RPW <= 8 && ITERS > RPW ? 4 : 8, LC = 32 / LR;
  static constexpr int TR = ROWS / LR, TC = RPW * ITERS / TR;
  static constexpr int V = run_of(TC), VR = run_of(TR), PART = WIDTH / (int)WARPS;
  static constexpr bool TENSOR = on_tensor_cores(RPW, ITERS);
  // Floats in shared memory from a vector to the next, from the rows of a vector to those of the
  // next, from the warps' sums of an item to the next's, and from a transposed product to the next.
  static constexpr int VECTOR = WIDTH + pad_of(TENSOR), DY = ROWS + pad_of(TENSOR),
                       SUMS = (int)WARPS * ROWS + pad_of(TENSOR) / 2,
                       RESULT = WIDTH + pad_of(TENSOR) / 2;

  // Lanes whose numbers differ in bit 0 read the same column, in bit 1 the same row: 16 bytes
  // a lane then take no more turns than they must.
  VP_MEMBER static u32 lane_row() { return THREAD % 2 + THREAD % 32 / (2 * LC) * 2; }
  VP_MEMBER static u32 lane_column() { return THREAD / 2 % LC; }
  VP_MEMBER static u32 row() { return lane_row() * TR; }
  VP_MEMBER static u32 first_column() { return THREAD / 32 * PART; } // of the warp
  VP_MEMBER static u32 in_part(u32 q) { return V * (lane_column() + LC * (q / V)) + q % V; }
  VP_MEMBER static u32 column(u32 q) { return first_column() + in_part(q); }
};

// A thread's elements where products are the tensor cores': of a warp's blocks of 16 rows and 8
// columns, KT of them side by side, w[(m * KT + k) * 4 + j] is row 8 * (j % 2) of block (m, k) and
// column j / 2, counted from lane / 4 and 2 * (lane % 4). Every warp has all rows of its columns.
template <int RPW, int COLS> struct Fragments {
  typedef Tile<RPW, COLS> T;
  static constexpr int MT = at_least_1(T::ROWS / 16), KT = at_least_1(T::PART / 8);
  VP_MEMBER static u32 row(u32 m, u32 j) { return 16 * m + 8 * (j % 2) + THREAD % 32 / 4; }
  VP_MEMBER static u32 column(u32 k, u32 j) {
    return T::first_column() + 8 * k + 2 * (THREAD % 4) + j / 2;
  }
};

template <int RPW, int COLS>
VP void load_fragments(float *w, const float *base, const Partition &part, Clocks &clocks) {
  typedef Fragments<RPW, COLS> F;
  u32 floats = 0;
#pragma unroll
  for (int m = 0; m < F::MT; m++)
#pragma unroll
    for (int k = 0; k < F::KT; k++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const u32 r = part.row + F::row(m, j), c = F::column(k, j);
        const bool there = r < part.end() && c < COLS;
        w[(m * F::KT + k) * 4 + j] = there ? base[r + (part.left + c) * part.rows] : 0.0f;
        floats += there;
      }
  clocks.loaded(floats);
}

template <int RPW, int COLS>
VP void load_rows(float *w, const float *base, const Partition &part, Clocks &clocks) {
  typedef Tile<RPW, COLS> T;
#ifdef VPPS_TENSOR
  if (T::TENSOR)
    return load_fragments<RPW, COLS>(w, base, part, clocks);
#endif
  u32 first = part.row + T::row(), floats = 0;
#pragma unroll
  for (int i = 0; i < T::TR; i += T::VR)
#pragma unroll
    for (int q = 0; q < T::TC; q++) {
      u32 r = first + i, c = T::column(q);
      int count = c < COLS ? (int)part.end() - (int)r : 0;
      float v[T::VR];
      read_some<T::VR>(v, base + r + (part.left + c) * part.rows, count);
#pragma unroll
      for (int j = 0; j < T::VR; j++) {
        w[(i + j) * T::TC + q] = v[j];
        floats += j < count ? 1 : 0;
      }
    }
  clocks.loaded(floats);
}
