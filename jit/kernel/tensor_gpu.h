// Products with a plan's matrices on a GPU's tensor cores (parts_gpu.h).
#pragma once

// Terms of multiply_parts: here t stands for 2t, and t + 4 for 2t + 1. transpose_block exchanges
// rows and columns of 8 x 8 floats, of which a lane has (g, 2t) and (g, 2t + 1).
#ifdef __CUDA_ARCH__
VP u32 transpose_halves(u32 x) {
  u32 y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
VP void transpose_block(float &x, float &y) {
  const u32 low = transpose_halves(__byte_perm(BITS_OF(x), BITS_OF(y), 0x5410)),
            high = transpose_halves(__byte_perm(BITS_OF(x), BITS_OF(y), 0x7632));
  x = FLOAT_OF(__byte_perm(low, high, 0x5410));
  y = FLOAT_OF(__byte_perm(low, high, 0x7632));
}
#endif

// Sums of A B for a block: of the high parts, and of what the low parts of A and of B add.
struct SplitSums {
  float high[4] = {}, a_low[4] = {}, b_low[4] = {};
  VP_MEMBER void add(const u32 *a, const u32 *low, const Split<2> &b) {
    multiply_parts(a_low, low, b.high);
    multiply_parts(high, a, b.high);
    multiply_parts(b_low, a, b.low);
  }
  VP_MEMBER float operator[](int i) const { return high[i] + (a_low[i] + b_low[i]); }
};

// How many items are worked on at a time: twice those of an instruction, so that one need not wait
// for the one before. Results after the last item's are not used.
#define TENSOR_ITEMS 16

// The warps' sums of the products with count vectors, which are in rows of shared memory.
template <int RPW, int COLS>
VP void multiply_fragments(const float *w, const float *vectors, float *to, u32 count) {
  typedef Fragments<RPW, COLS> F;
  typedef typename F::T T;
  constexpr int N = F::MT * F::KT * 4;
  const u32 warp = THREAD / 32, g = THREAD % 32 / 4, t = THREAD % 4;
  Split<N> a;
#pragma unroll
  for (int i = 0; i < N; i++)
    a.set(i, as_new(w[i]));
#pragma unroll 1
  for (u32 item = 0; item < count; item += TENSOR_ITEMS) {
    SplitSums sums[2][F::MT];
    const float *x = vectors + (item + g) * T::VECTOR + T::first_column() + 2 * t;
    float *y = to + (item + 2 * t) * T::SUMS + warp * T::ROWS + g;
#pragma unroll
    for (int k = 0; k < F::KT; k++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const Split<2> b(x + 8 * i * T::VECTOR + 8 * k);
#pragma unroll
        for (int m = 0; m < F::MT; m++)
          sums[i][m].add(a.high + (m * F::KT + k) * 4, a.low + (m * F::KT + k) * 4, b);
      }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          y[(8 * i + j % 2) * T::SUMS + 16 * m + j / 2 * 8] = sums[i][m][j];
  }
}

// A partition's elements with rows and columns exchanged: blocks of 16 columns and 8 rows.
template <int RPW, int COLS> struct TransposedFragments {
  typedef Fragments<RPW, COLS> F;
  static constexpr int CT = at_least_1(F::KT / 2), ST = 2 * F::MT;
  Split<CT * ST * 4> a;
  VP_MEMBER TransposedFragments(const float *w) {
#pragma unroll
    for (int c = 0; c < CT; c++)
#pragma unroll
      for (int s = 0; s < ST; s++)
#pragma unroll
        for (int i = 0; i < 2; i++) { // 8 columns
          const float *from = w + (s / 2 * F::KT + (2 * c + i) % F::KT) * 4 + s % 2;
          float x = as_new(from[0]), y = as_new(from[2]);
          transpose_block(x, y);
          a.set((c * ST + s) * 4 + i, x);
          a.set((c * ST + s) * 4 + i + 2, y);
        }
  }
};

// Stores rows of shared memory, RESULT floats apart, at base and what every second word of items
// says.
template <int COLS, int RESULT>
VP void store_vectors(float *base, const float *from, const u32 *items, u32 count, u32 flags) {
#pragma unroll 1
  for (u32 i = THREAD / 32; i < count; i += WARPS)
#pragma unroll
    for (int c = 0; c < COLS; c += 128) {
      const int column = c + THREAD % 32 * 4;
      float *to = base + items[2 * i] + column, v[4];
      if (column >= COLS)
        continue;
      read_run<4>(v, from + i * RESULT + column);
      put_some<4>(to, v, COLS - column, flags);
    }
}

// W^T dy of a partition for items whose dy are in rows of shared memory.
template <int RPW, int COLS> struct FragmentsByRows {
  typedef TransposedFragments<RPW, COLS> Weights;
  typedef typename Weights::F::T T;
  const Weights w;
  VP_MEMBER FragmentsByRows(const float *r) : w(r) {}

  // Stores those of count items, times scale, at base and what every second word of items says. A
  // warp has few columns, so that the results meet in shared memory first.
  VP_MEMBER void multiply(const float *dy, float *results, float *base, float scale,
                          const u32 *items, u32 count, u32 flags) const {
    const u32 g = THREAD % 32 / 4, t = THREAD % 4;
#pragma unroll 1
    for (u32 item = 0; item < count; item += TENSOR_ITEMS) {
      SplitSums sums[2][Weights::CT];
      const float *x = dy + (item + g) * T::DY + 2 * t;
      float *to = results + (item + 2 * t) * T::RESULT + T::first_column() + g;
#pragma unroll
      for (int s = 0; s < Weights::ST; s++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const Split<2> b(x + 8 * i * T::DY + 8 * s);
#pragma unroll
          for (int c = 0; c < Weights::CT; c++)
            sums[i][c].add(w.a.high + (c * Weights::ST + s) * 4,
                           w.a.low + (c * Weights::ST + s) * 4, b);
        }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < Weights::CT; c++)
#pragma unroll
          for (int j = 0; j < 4; j++)
            to[(8 * i + j % 2) * T::RESULT + 16 * c + j / 2 * 8] = scale * sums[i][c][j];
    }
    __syncthreads();
    store_vectors<COLS, T::RESULT>(base, results, items, count, flags);
  }
};

// A warp's share of a gradient of 8 * RPW rows and 32 * ITERS columns: all rows of its columns.
template <int RPW, int ITERS> struct FragmentGradient {
  static constexpr int BATCH = TENSOR_ITEMS, MT = at_least_1(RPW / 2), NT = at_least_1(ITERS / 2);
  static constexpr int VECTOR = 32 * ITERS + pad_of(true), DY = 8 * RPW + pad_of(true);
  float g[MT * NT * 4] = {};

  VP_MEMBER static u32 first_column() { return THREAD / 32 * (4 * ITERS); }

  // Adds dy x^T of TENSOR_ITEMS items, rows of shared memory; the tensor cores' sums of these are
  // added up in FP32, which they round less carefully.
  VP_MEMBER void add(const float *x, const float *dy) {
    const u32 at = THREAD % 32 / 4, item = THREAD % 4;
    Split<2> b[2][NT];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int n = 0; n < NT; n++)
#pragma unroll
        for (int j = 0; j < 2; j++)
          b[i][n].set(j, x[(item + 8 * i + 4 * j) * VECTOR + first_column() + 8 * n + at]);
#pragma unroll
    for (int m = 0; m < MT; m++) {
      Split<4> a[2];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          a[i].set(j, dy[(item + 8 * i + j / 2 * 4) * DY + 16 * m + j % 2 * 8 + at]);
#pragma unroll
      for (int n = 0; n < NT; n++) {
        SplitSums sums;
#pragma unroll
        for (int i = 0; i < 2; i++)
          sums.add(a[i].high, a[i].low, b[i][n]);
#pragma unroll
        for (int j = 0; j < 4; j++)
          g[(m * NT + n) * 4 + j] += sums[j];
      }
    }
  }

  // Stores it, times scale, at to; columns of the matrix are apart floats from each other.
  VP_MEMBER void store(float *to, u32 apart, float scale, u32 rows, u32 columns, u32 flags) {
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const u32 r = 16 * m + j / 2 * 8 + THREAD % 32 / 4,
                    c = first_column() + 8 * n + 2 * (THREAD % 4) + j % 2;
          if (r < rows && c < columns)
            put(to + r + c * apart, scale * g[(m * NT + n) * 4 + j], flags);
        }
  }
};
