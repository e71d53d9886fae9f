// Sum: vectors added up element by element, and a function or a derivative behind that.
#pragma once

// The sources of a sum, count of them: the first of n addresses are runs, the others single ones.
struct Sources {
  const u32 *items;               // the addresses
  u32 runs, each, apart, inverse; // inverse: divides by each
  u32 many, count;                // many: sources in runs
  VP_MEMBER Sources(const u32 *items, u32 n, u32 in_runs, u32 each, u32 apart)
      : items(items), runs(each < 2 ? 0 : in_runs), each(each), apart(apart), inverse(0) {
    if (runs > 1) // exact for fewer than 2^32 / each
      inverse = 0xFFFFFFFFu / each + 1;
    many = runs * each;
    count = many + n - runs;
  }
  VP_MEMBER Sources(const u32 *w, u32 n) // of a Sum
      : Sources(w + SUM_ITEMS, n, w[SUM_RUNS] & 0xFFFFu, w[SUM_RUNS] >> 16, w[SUM_APART]) {}
  VP_MEMBER u32 operator()(u32 k) const {
    if (k >= many)
      return items[k - many + runs];
    u32 run = MULHI(k, inverse);
    return items[run] + (k - run * each) * apart;
  }
};

// dst = scale * sum of the sources. On the GPU few elements and many sources are shared
// out over groups of threads, whose sums meet in shared memory.
#ifdef VPPS_GPU
enum : u32 { LOADS = 8 }; // of a thread on their way

// Sums elements from.. of the sources first, first + step, ...
template <int RUN>
VP void sum_sources(float *s, const float *from, const Sources &src, u32 count, u32 first,
                    u32 step) {
#pragma unroll
  for (int j = 0; j < RUN; j++)
    s[j] = 0.0f;
#pragma unroll 1
  for (u32 k = first; k < count; k += LOADS * step) {
    float v[LOADS * RUN];
#pragma unroll
    for (u32 a = 0; a < LOADS; a++)
      if (k + a * step < count)
        read_run<RUN>(v + a * RUN, from + src(k + a * step));
      else
#pragma unroll
        for (int j = 0; j < RUN; j++)
          v[a * RUN + j] = 0.0f;
#pragma unroll
    for (u32 a = 0; a < LOADS; a++)
#pragma unroll
      for (int j = 0; j < RUN; j++)
        s[j] += v[a * RUN + j];
  }
}

// What is done with a run of sums: dst = f(scale * sum), or a derivative of that and y, which is
// fetched before these are formed.
template <int RUN> struct Behind {
  float *dst;
  u32 fn, flags;
  float scale, y[RUN];
  VP_MEMBER Behind(float *dst, u32 fn, u32 flags, float scale, const float *from)
      : dst(dst), fn(fn), flags(flags), scale(scale) {
#pragma unroll
    for (int j = 0; j < RUN; j++)
      y[j] = stands_behind(fn, true) ? from[j] : 0.0f;
  }
  VP_MEMBER void store(float *s) const {
#pragma unroll
    for (int j = 0; j < RUN; j++)
      s[j] = flags & FLAG_ACC ? scale * s[j] + dst[j] : scale * s[j];
    if (fn != FN_COPY)
      apply_behind_run<RUN>(fn, s, y);
#pragma unroll
    for (int j = 0; j < RUN; j++)
      s[j] = canonical(s[j]);
    write_run<RUN>(dst, s);
  }
};

// The same for n runs of RUN elements.
template <int RUN>
VP void sum_runs(float *dst, const float *base, const Sources &src, u32 n, u32 count, u32 fn,
                 u32 flags, float scale, const float *y, float *scratch) {
  u32 width = 1, groups = 1; // runs side by side
  while (width < n && width < THREADS)
    width *= 2;
  while (groups * width < THREADS && groups * LOADS < count)
    groups *= 2;
  float s[RUN];
  if (groups == 1) {
#pragma unroll 1
    for (u32 i = THREAD; i < n; i += THREADS) {
      const Behind<RUN> behind(dst + RUN * i, fn, flags, scale, y + RUN * i);
      sum_sources<RUN>(s, base + RUN * i, src, count, 0, 1);
      behind.store(s);
    }
    return;
  }
  u32 g = THREAD / width, e = THREAD % width;
  bool works = g < groups && e < n;
  const u32 mine = works ? RUN * e : 0;
  const Behind<RUN> behind(dst + mine, fn, flags, scale, y + mine);
  sum_sources<RUN>(s, base + RUN * e, src, works ? count : 0, g, groups);
  __syncthreads(); // scratch is free
  if (g > 0 && works)
    write_run<RUN>(scratch + RUN * THREAD, s);
  __syncthreads();
  if (g > 0 || !works)
    return;
#pragma unroll 4
  for (u32 k = 1; k < groups; k++) {
    float other[RUN];
    read_run<RUN>(other, scratch + RUN * (e + k * width));
#pragma unroll
    for (int j = 0; j < RUN; j++)
      s[j] += other[j];
  }
  behind.store(s);
}

VP void sum(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 items, float *scratch) {
  const u32 n = w[SUM_N];
  const float *base = address(l, w[SUM_SEGMENTS], 1, 0);
  float *dst = address(l, w[SUM_SEGMENTS], 0, w[SUM_DST]);
  const Sources src(w, items);
  const u32 count = src.count;
  const float scale = FLOAT_OF(w[SUM_SCALE]);
  const float *y = address(l, w[SUM_SEGMENTS], 2, w[SUM_Y]);
  if (n > THREADS || count > LOADS) { // by fours, where that pays and they are aligned
    u32 places = n | (src.runs ? src.apart : 0);
    for (u32 k = THREAD % 32; k < items; k += 32)
      places |= src.items[k];
    bool fours = ((u64)base | (u64)dst) % 16 == 0 && places % 4 == 0;
    if (__all_sync(0xFFFFFFFFu, fours))
      return sum_runs<4>(dst, base, src, n / 4, count, fn, flags, scale, y, scratch);
  }
  sum_runs<1>(dst, base, src, n, count, fn, flags, scale, y, scratch);
}
#else
// Sums NV vectors from element i on. Vectors by hand: compilers find none where a loop runs over
// sources.
template <int NV>
VP u32 sum_vectors(float *dst, const float *base, const Sources &src, u32 i, u32 end, float scale,
                   u32 flags) {
  for (; i + NV * VW <= end; i += NV * VW) {
    V s[NV];
    for (int v = 0; v < NV; v++)
      s[v] = (V){};
    for (u32 k = 0; k < src.count; k++) {
      const float *a = base + src(k) + i;
      for (int v = 0; v < NV; v++)
        s[v] += load(a + v * VW);
    }
    for (int v = 0; v < NV; v++) {
      float *to = dst + i + v * VW;
      V x = s[v] * scale;
      store(to, canonical(flags & FLAG_ACC ? load(to) + x : x));
    }
  }
  return i;
}

// Sums n elements in the order of the sources.
VP void sum_elements(float *dst, const float *base, const Sources &src, u32 n, float scale,
                     u32 flags) {
  u32 i = sum_vectors<8>(dst, base, src, 0, n, scale, flags);
  i = sum_vectors<1>(dst, base, src, i, n, scale, flags);
  for (; i < n; i++) {
    float s = 0.0f;
    for (u32 k = 0; k < src.count; k++)
      s += base[src(k) + i];
    put(dst + i, scale * s, flags);
  }
}

VP void sum(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 items, float * /*scratch*/) {
  const u32 n = w[SUM_N];
  float *dst = address(l, w[SUM_SEGMENTS], 0, w[SUM_DST]);
  const float *y = address(l, w[SUM_SEGMENTS], 2, w[SUM_Y]);
  sum_elements(dst, address(l, w[SUM_SEGMENTS], 1, 0), Sources(w, items), n, FLOAT_OF(w[SUM_SCALE]),
               flags);
  if (fn != FN_COPY)
    for (u32 i = 0; i < n; i++)
      dst[i] = canonical(apply_behind(fn, dst[i], stands_behind(fn, true) ? y[i] : 0.0f));
}
#endif
