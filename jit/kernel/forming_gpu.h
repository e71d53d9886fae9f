// Products on the GPU of vectors that are formed first: sums of what several processors have left,
// with a function or a derivative behind. Each processor forms those elements that its columns, or
// its rows, are multiplied by, so that nobody need do it before.
#pragma once

// Sums of so many vectors of a size; y comes before them, if a derivative is formed.
struct Forming {
  u32 parts, fn, size;
  bool stores; // where the place says so
  VP_MEMBER bool derivative() const { return stands_behind(fn, true); }
};

// Forms elements [first, first + n) of some vectors, whose places are every second word of items,
// N floats each, APART from each other; behind them is 0. A warp has two items at a time, whose
// parts are on their way at once; groups of its lanes have some parts each.
template <int N, int APART, int RUN>
VP void form_runs(float *to, float *from, const u32 *items, u32 count, const Forming &f, u32 first,
                  u32 n) {
  constexpr u32 RUNS = N / RUN, WIDTH = RUNS < 32 ? power_of_two(RUNS) : 32;
  constexpr u32 GROUPS = 32 / WIDTH, LOADS = 8, PAIR = 2;
  const u32 group = THREAD % 32 / WIDTH;
#pragma unroll 1
  for (u32 b = THREAD / 32; b < count; b += PAIR * WARPS) {
    float *x[PAIR];
    u32 place[PAIR], many[PAIR];
#pragma unroll
    for (u32 i = 0; i < PAIR; i++) {
      const bool there = b + i * WARPS < count;
      place[i] = there ? items[2 * (b + i * WARPS)] : 0;
      many[i] = there ? parts_of(place[i], f.parts) : 0;
      x[i] = from + place_of(place[i]) + first;
    }
#pragma unroll 1
    for (u32 e = THREAD % WIDTH * RUN; e < (RUNS + WIDTH - 1) / WIDTH * WIDTH * RUN;
         e += WIDTH * RUN) {
      float s[PAIR][RUN], y[PAIR][RUN];
#pragma unroll
      for (u32 i = 0; i < PAIR; i++) {
#pragma unroll
        for (int j = 0; j < RUN; j++)
          s[i][j] = y[i][j] = 0.0f;
        if (f.derivative() && e < n && many[i] > 0)
          read_run<RUN>(y[i], x[i] + f.size + e);
      }
      const u32 parts = (f.derivative() ? 2 : 1) * f.size + e;
#pragma unroll 1
      for (u32 k = group; k < f.parts; k += LOADS * GROUPS) {
        float v[PAIR][LOADS * RUN];
#pragma unroll
        for (u32 i = 0; i < PAIR; i++)
#pragma unroll
          for (u32 a = 0; a < LOADS; a++) {
#pragma unroll
            for (int j = 0; j < RUN; j++)
              v[i][a * RUN + j] = 0.0f;
            if (e < n && k + a * GROUPS < many[i])
              read_run<RUN>(v[i] + a * RUN, x[i] + parts + (k + a * GROUPS) * f.size);
          }
#pragma unroll
        for (u32 i = 0; i < PAIR; i++)
#pragma unroll
          for (u32 a = 0; a < LOADS; a++)
#pragma unroll
            for (int j = 0; j < RUN; j++)
              s[i][j] += v[i][a * RUN + j];
      }
#pragma unroll
      for (u32 i = 0; i < PAIR; i++) {
#pragma unroll
        for (u32 d = WIDTH; d < 32; d *= 2)
#pragma unroll
          for (int j = 0; j < RUN; j++)
            s[i][j] += __shfl_xor_sync(0xFFFFFFFFu, s[i][j], d);
        if (group > 0 || e >= N || many[i] == 0)
          continue;
        apply_behind_run<RUN>(f.fn, s[i], y[i]);
#pragma unroll
        for (int j = 0; j < RUN; j++)
          s[i][j] = e < n ? canonical(s[i][j]) : 0.0f;
        write_run<RUN>(to + (b + i * WARPS) * APART + e, s[i]);
        if (f.stores && (place[i] & PLACE_STORED) && e < n)
          write_run<RUN>(x[i] + e, s[i]);
      }
    }
  }
}

// By fours where places are aligned. All threads meet before and behind it.
template <int N, int APART>
VP void form_vectors(float *to, float *from, const u32 *items, u32 count, const Forming &f,
                     u32 first, u32 n) {
  __syncthreads(); // the buffer is free
  if ((u64)from % 16 == 0 && (f.size | first | n) % 4 == 0)
    form_runs<N, APART, 4>(to, from, items, count, f, first, n);
  else
    form_runs<N, APART, 1>(to, from, items, count, f, first, n);
  __syncthreads();
}

template <int RPW, int COLS, int VECTORS>
VP void product_formed(const float *r, Work work, const Partition &part, float *shared) {
  typedef Tile<RPW, COLS> T;
  const Forming f = {work.w[PRODUCT_COUNT], work.w[0] >> 8 & 255u, part.width, part.row == 0};
  auto identity = [](float v) { return v; };
  float *from = address(work.l, work.w[PRODUCT_SEGMENTS], 1, 0),
        *sums = shared + VECTORS * T::WIDTH;
  if (part.left > 0) // of the processors that share rows the first adds it
    work.flags &= ~(u32)FLAG_BIAS;
  const u32 count = work.count;
#pragma unroll 1
  for (u32 done = 0; done < count; done += VECTORS, work.items += 2 * VECTORS) {
    work.count = min(count - done, (u32)VECTORS);
    Results<T::ROWS, VECTORS> y(part.left / COLS * work.w[PRODUCT_APART]);
    form_vectors<T::WIDTH, T::WIDTH>(shared, from, work.items + 1, work.count, f, part.left, COLS);
    y.fetch(work, part);
    multiply_buffer<RPW, COLS, VECTORS>(r, shared, sums, work.count);
    __syncthreads();
    y.store(sums, work, part, identity);
  }
}

template <int RPW, int COLS, int STAGE>
VP void product_t_formed(const float *r, Work work, const Partition &part, float *shared) {
  typedef Tile<RPW, COLS> T;
  const u32 *w = work.w;
  const Forming f = {w[PRODUCT_T_COUNT], w[0] >> 8 & 255u, part.rows, part.left == 0};
  float *from = address(work.l, w[PRODUCT_T_SEGMENTS], 1, 0);
  float *to = address(work.l, w[PRODUCT_T_SEGMENTS], 0, part.rank * w[PRODUCT_T_APART]) + part.left;
  const u32 count = work.count;
#pragma unroll 1
  for (u32 done = 0; done < count; done += STAGE, work.items += 2 * STAGE) {
    work.count = min(count - done, (u32)STAGE);
    form_vectors<T::ROWS, T::ROWS>(shared, from, work.items + 1, work.count, f, part.row,
                                   part.height);
    const ByRows<RPW, COLS, STAGE> weights(r); // here, not before: forming takes the registers
    weights.multiply(shared, to, FLOAT_OF(w[PRODUCT_T_SCALE]), work.items, work.count, work.flags);
  }
}
