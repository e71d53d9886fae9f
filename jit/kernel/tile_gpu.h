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
  u16 rank;         // of its holder: its results of transposed products are in this order
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

// Which elements of a partition a thread holds: w[i * TC + q] is row row() + i and column
// column(q) of it. Of a warp's lanes LR are side by side along the rows, LC along the columns, so
// that sums over both are short; a warp has PART neighbouring columns.
template <int RPW, int COLS> struct Tile {
  static constexpr int ITERS = iterations(COLS), WIDTH = 32 * ITERS, ROWS = (int)WARPS * RPW;
  static constexpr int LR = ITERS % 2 == 0 && RPW <= 8 && ITERS > RPW ? 4 : 8, LC = 32 / LR;
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
      int count = c < COLS ? (int)part.end() - (int)r : 0;
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
