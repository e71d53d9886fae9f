// The GPU's matrix routines, called from code generated for the plan with literal sizes.
//
// A partition is at most WARPS * RPW consecutive rows, up to end; warp g holds rows g*RPW.. of it,
// lane j the columns j, j+32, ... of each: w[i * ITERS + k] is W[row + g*RPW + i, j + 32k].
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

// Whether four rows of a column can be moved at a time.
template <int RPW> VP bool by_fours(const float *base, const Partition &part) {
  return RPW % 4 == 0 && part.rows % 4 == 0 && part.row % 4 == 0 && (u64)base % 16 == 0;
}

template <int RPW, int COLS>
VP void load_rows(float *w, const float *base, const Partition &part, Clocks &clocks) {
  constexpr int ITERS = iterations(COLS);
  u32 first = part.row + THREAD / 32 * RPW, lane = THREAD % 32, floats = 0;
  if (by_fours<RPW>(base, part)) {
#pragma unroll
    for (int i = 0; i + 3 < RPW; i += 4)
#pragma unroll
      for (int k = 0; k < ITERS; k++) {
        u32 r = first + i, c = lane + 32 * k;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (r < part.end && c < COLS) {
          v = *(const float4 *)(base + r + c * part.rows);
          floats += 4;
        }
        w[i * ITERS + k] = v.x;
        w[(i + 1) * ITERS + k] = v.y;
        w[(i + 2) * ITERS + k] = v.z;
        w[(i + 3) * ITERS + k] = v.w;
      }
    clocks.loaded(floats);
    return;
  }
#pragma unroll
  for (int i = 0; i < RPW; i++)
#pragma unroll
    for (int k = 0; k < ITERS; k++) {
      u32 r = first + i, c = lane + 32 * k;
      w[i * ITERS + k] = r < part.end && c < COLS ? base[r + c * part.rows] : 0.0f;
      floats += r < part.end && c < COLS ? 1 : 0;
    }
  clocks.loaded(floats);
}

// Sums N (a power of two, at most 32) values over the lanes of a warp, each in the order of a
// butterfly of distances D, D/2, ... 1: of distance 16, lane l ends up with the sum of
// v[l * N / 32]. While there are several, partners swap halves, so that a step costs half
// the shuffles of the one before.
template <int N, int D> struct LaneSums {
  VP_MEMBER static float of(const float *v) {
    bool upper = THREAD & D;
    float half[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
      float mine = upper ? v[i + N / 2] : v[i], other = upper ? v[i] : v[i + N / 2];
      half[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, D);
    }
    return LaneSums<N / 2, D / 2>::of(half);
  }
};
template <int D> struct LaneSums<1, D> {
  VP_MEMBER static float of(const float *v) {
    float sum = v[0] + __shfl_xor_sync(0xFFFFFFFFu, v[0], D);
    return LaneSums<1, D / 2>::of(&sum);
  }
};
template <> struct LaneSums<1, 0> {
  VP_MEMBER static float of(const float *v) { return v[0]; }
};

// Vectors that all warps read come through shared memory, BATCH at a time in one of two buffers:
// every thread carries its part of the next ones in registers while these are worked on.
template <int COLS, int BATCH> struct Vectors {
  static constexpr int WIDTH = 32 * iterations(COLS), ALL = BATCH * WIDTH;
  static constexpr int EACH = (ALL + (int)THREADS - 1) / (int)THREADS;
  float next[EACH];

  // Fetches the second vectors of up to count items, from element first on, end being the vector's
  // length.
  VP_MEMBER void load(const Launch &l, u32 segments, const u32 *items, u32 count, u32 slot,
                      u32 first = 0, u32 end = COLS) {
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      u32 at = j * THREADS + THREAD, b = at / WIDTH, c = at % WIDTH;
      c += first;
      next[j] = b < BATCH && b < count && c < end ? address(l, segments, slot, items[2 * b + 1])[c]
                                                  : 0.0f;
    }
  }
  VP_MEMBER void store(float *buffer) const {
#pragma unroll
    for (int j = 0; j < EACH; j++)
      if (j * THREADS + THREAD < ALL)
        buffer[j * THREADS + THREAD] = next[j];
  }
};

// y = scale * W x + bias for count of BATCH items; x[b * STRIDE + 32k] is for this lane.
template <int RPW, int COLS, int BATCH, int STRIDE>
VP void product_items(const float *w, const float *x, const Launch &l, const u32 *instruction,
                      u32 flags, const u32 *items, u32 count, const Partition &part) {
  constexpr int N = power_of_two(BATCH * RPW), ITERS = iterations(COLS);
  u32 lane = THREAD % 32;
  float s[N];
#pragma unroll
  for (int i = 0; i < N; i++)
    s[i] = 0.0f;
#pragma unroll
  for (int k = 0; k < ITERS; k++)
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      float v = lane + 32 * k < COLS ? x[b * STRIDE + 32 * k] : 0.0f;
#pragma unroll
      for (int i = 0; i < RPW; i++)
        s[b * RPW + i] = FMA(w[i * ITERS + k], v, s[b * RPW + i]);
    }
  float v = LaneSums<N, 16>::of(s) * FLOAT_OF(instruction[PRODUCT_SCALE]);
  u32 mine = lane * N / 32, b = mine / RPW, r = part.row + THREAD / 32 * RPW + mine % RPW;
  if (lane % (32 / N) != 0 || b >= BATCH || b >= count || r >= part.end)
    return;
  if (flags & FLAG_BIAS)
    v = FMA(address(l, instruction[PRODUCT_SEGMENTS], 2, instruction[PRODUCT_BIAS])[r],
            FLOAT_OF(instruction[PRODUCT_BIAS_SCALE]), v);
  put(address(l, instruction[PRODUCT_SEGMENTS], 0, items[2 * b]) + r, v, flags);
}

template <int RPW, int COLS>
VP void product_rows(const float *w, const Launch &l, const u32 *instruction, const u32 *items,
                     u32 flags, u32 count, const Partition &part, float *shared) {
  // As many as there are registers for: sums, and loads on their way.
  constexpr int BATCH = RPW > 8 || iterations(COLS) > 32   ? 1
                        : RPW > 4 || iterations(COLS) > 16 ? 2
                                                           : 4;
  u32 segments = instruction[PRODUCT_SEGMENTS], lane = THREAD % 32;
  if (count == 1) { // the shortest way
    const float *x = address(l, segments, 1, items[1]) + lane;
    product_items<RPW, COLS, 1, 0>(w, x, l, instruction, flags, items, 1, part);
    return;
  }
  Vectors<COLS, BATCH> x;
  x.load(l, segments, items, count, 1);
  __syncthreads(); // the buffer is free
  for (u32 e = 0; e < count; e += BATCH) {
    float *buffer = shared + e / BATCH % 2 * x.ALL;
    x.store(buffer);
    __syncthreads();
    if (e + BATCH < count)
      x.load(l, segments, items + 2 * (e + BATCH), count - e - BATCH, 1);
    product_items<RPW, COLS, BATCH, x.WIDTH>(w, buffer + lane, l, instruction, flags, items + 2 * e,
                                             count - e, part);
  }
}

// The first vectors of up to count of BATCH items, as far as they are this warp's rows: row i of
// item b is in lane b * RPW + i.
template <int RPW, int BATCH>
VP float warp_rows(const Launch &l, u32 segments, const u32 *items, u32 which, u32 count,
                   const Partition &part) {
  u32 lane = THREAD % 32, b = lane / RPW, r = part.row + THREAD / 32 * RPW + lane % RPW;
  return b < BATCH && b < count && r < part.end ? address(l, segments, 1, items[2 * b + which])[r]
                                                : 0.0f;
}

// Adds this warp's share of W^T dy to t, for BATCH items whose dy warp_rows has fetched:
// t[b * ITERS + k] belongs to column lane + 32k of item b.
template <int RPW, int COLS, int BATCH>
VP void transposed_rows(const float *w, float dy, float *t) {
  constexpr int ITERS = iterations(COLS);
#pragma unroll
  for (int b = 0; b < BATCH; b++)
#pragma unroll
    for (int i = 0; i < RPW; i++) {
      float d = __shfl_sync(0xFFFFFFFFu, dy, b * RPW + i);
#pragma unroll
      for (int k = 0; k < ITERS; k++)
        t[b * ITERS + k] = FMA(w[i * ITERS + k], d, t[b * ITERS + k]);
    }
}

// Sums the warps' shares of up to count items through shared memory, WARPS * BATCH * WIDTH floats,
// and stores them.
template <int COLS, int BATCH>
VP void transposed_store(const float *t, const Launch &l, const u32 *instruction, const u32 *items,
                         u32 count, u32 flags, float *buffer) {
  constexpr int ITERS = iterations(COLS), WIDTH = 32 * ITERS;
  u32 warp = THREAD / 32, lane = THREAD % 32;
  __syncthreads(); // the buffer is free
#pragma unroll
  for (int b = 0; b < BATCH; b++)
#pragma unroll
    for (int k = 0; k < ITERS; k++)
      buffer[(warp * BATCH + b) * WIDTH + 32 * k + lane] = t[b * ITERS + k];
  __syncthreads();
  float scale = FLOAT_OF(instruction[PRODUCT_T_SCALE]);
  for (u32 b = 0; b < BATCH && b < count; b++) {
    float *to =
        address(l, instruction[PRODUCT_T_SEGMENTS], 0, items[2 * b]) + instruction[PRODUCT_T_SHIFT];
    for (u32 c = THREAD; c < COLS; c += THREADS) {
      float s = 0.0f;
#pragma unroll
      for (u32 g = 0; g < WARPS; g++)
        s += buffer[(g * BATCH + b) * WIDTH + c];
      put(to + c, scale * s, flags);
    }
  }
}

// The gradient's columns are shared among COPIES of the matrix, 32 at a time.
template <int RPW, int COLS, int COPIES>
VP void outer_rows(const Launch &l, const u32 *instruction, const u32 *items, u32 flags, u32 count,
                   const Partition &part, float *shared) {
  constexpr int ITERS = (iterations(COLS) + COPIES - 1) / COPIES;
  constexpr int WIDTH = COPIES > 1 ? ITERS * 32 : COLS;
  constexpr int BATCH = RPW > 16 || ITERS > 16 ? 1 : RPW > 8 || ITERS > 8 ? 2 : 4;
  u32 first = part.row + THREAD / 32 * RPW, lane = THREAD % 32;
  u32 left = COPIES > 1 ? part.copy * ITERS * 32 : 0; // the first column
  u32 segments = instruction[OUTER_SEGMENTS];
  float g[RPW * ITERS];
#pragma unroll
  for (int i = 0; i < RPW * ITERS; i++)
    g[i] = 0.0f;
  Vectors<WIDTH, BATCH> x;
  x.load(l, segments, items, count, 2, left, COLS);
  float dy = warp_rows<RPW, BATCH>(l, segments, items, 0, count, part);
  __syncthreads(); // the buffer is free
  for (u32 e = 0; e < count; e += BATCH) {
    float *buffer = shared + e / BATCH % 2 * x.ALL;
    float now = dy;
    x.store(buffer);
    __syncthreads();
    if (e + BATCH < count) {
      const u32 *behind = items + 2 * (e + BATCH);
      x.load(l, segments, behind, count - e - BATCH, 2, left, COLS);
      dy = warp_rows<RPW, BATCH>(l, segments, behind, 0, count - e - BATCH, part);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) { // behind the last item dy is 0
      float d[RPW];
#pragma unroll
      for (int i = 0; i < RPW; i++)
        d[i] = __shfl_sync(0xFFFFFFFFu, now, b * RPW + i);
#pragma unroll
      for (int k = 0; k < ITERS; k++) {
        float v = buffer[b * x.WIDTH + 32 * k + lane];
#pragma unroll
        for (int i = 0; i < RPW; i++)
          g[i * ITERS + k] = FMA(d[i], v, g[i * ITERS + k]);
      }
    }
  }
  float *to = address(l, instruction[OUTER_SEGMENTS], 0, instruction[OUTER_DST]);
  float scale = FLOAT_OF(instruction[OUTER_SCALE]);
  if (by_fours<RPW>(to, part)) {
#pragma unroll
    for (int i = 0; i + 3 < RPW; i += 4)
#pragma unroll
      for (int k = 0; k < ITERS; k++) {
        u32 r = first + i, c = left + lane + 32 * k;
        if (r >= part.end || c >= COLS)
          continue;
        float4 *at = (float4 *)(to + r + c * part.rows),
               old = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
        if (flags & FLAG_ACC)
          old = *at;
        const float *v = g + i * ITERS + k;
        *at = make_float4(canonical(old.x + scale * v[0]), canonical(old.y + scale * v[ITERS]),
                          canonical(old.z + scale * v[2 * ITERS]),
                          canonical(old.w + scale * v[3 * ITERS]));
      }
    return;
  }
#pragma unroll
  for (int i = 0; i < RPW; i++)
#pragma unroll
    for (int k = 0; k < ITERS; k++) {
      u32 r = first + i, c = left + lane + 32 * k;
      if (r < part.end && c < COLS)
        put(to + r + c * part.rows, scale * g[i * ITERS + k], flags);
    }
}
