// The interpreter: one kernel for every script. A warp owns a unit.
#pragma once
#include "script.h"

#ifndef ABLATION
#define ABLATION 0 // places time, results are wrong: 1 takes what is there, 2 does not even load
#endif
#ifdef PARTS
enum { STAMPS = 6 }; // of an instruction: start, arrival, barrier, products, publication, end
#else
enum { STAMPS = 1 };
#endif

struct Launch {
  float *memory;
  const u32 *script, *stages;
  const Group *groups;
  u32 stage_words, script_words; // script_words: the longest group's
  long long *clocks;             // STAMPS an instruction for each group, or null
  u32 clocks_of_group;
};

__device__ __forceinline__ uint4 load16(const char *p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3},[%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
__device__ __forceinline__ bool empty(uint4 v) {
  return !ABLATION && (v.x == EMPTY || v.y == EMPTY || v.z == EMPTY || v.w == EMPTY);
}
template <int BYTES> __device__ __forceinline__ void copy_async(u32 to, const char *from) {
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from));
  else
    asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(to), "l"(from));
}
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Shared memory by its address, in bytes.
__device__ __forceinline__ float get(u32 at) {
  float v;
  asm volatile("ld.shared.f32 %0,[%1];" : "=f"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ u32 get_word(u32 at) {
  u32 v;
  asm volatile("ld.shared.u32 %0,[%1];" : "=r"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ uint4 get_words(u32 at) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3},[%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(at));
  return v;
}
__device__ __forceinline__ void set(u32 at, float v) {
  asm volatile("st.shared.f32 [%0],%1;" ::"r"(at), "f"(v));
}

// A function by numbers, so that all lanes do the same.
struct Function {
  float scale, times, plus, square_plus; // of e^x; of the logistic; of -x x
  u32 kind;
  __device__ __forceinline__ explicit Function(u32 kind)
      : scale(kind == TANH ? -2.885390082f : -1.442695041f), times(kind == TANH ? 2.0f : 1.0f),
        plus(kind == TANH ? -1.0f : 0.0f), square_plus(1.0f), kind(kind) {}
  __device__ __forceinline__ float operator()(float x) const {
    float e, y;
    asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(e) : "f"(x * scale));
    asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(1.0f + e));
    float slope = fmaf(-x, x, kind == LOGISTIC_SLOPE ? x : square_plus);
    y = fmaf(times, y, plus);
    y = kind >= LOGISTIC_SLOPE ? slope : y;
    return kind == PLAIN ? x : y;
  }
};

// Sums of N values over a warp, N a power of two: a lane has the one of value lane / (32 / N).
template <int N, int OFFSET> __device__ __forceinline__ void halve(float *a, u32 lane) {
  if constexpr (N > 1) {
    bool up = lane & OFFSET;
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
      float send = up ? a[i] : a[i + N / 2], keep = up ? a[i + N / 2] : a[i];
      a[i] = keep + __shfl_xor_sync(~0u, send, OFFSET);
    }
    halve<N / 2, OFFSET / 2>(a, lane);
  }
}
template <int N> __device__ __forceinline__ float warp_sums(float (&a)[N], u32 lane) {
  halve<N, 16>(a, lane);
  float v = a[0];
#pragma unroll
  for (int o = 16 / N; o > 0; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// A warp's rows of the resident matrices: lane l has elements 4 l to 4 l + 3 of each half.
struct Weights {
  float w[SLOTS][2][4];

  __device__ __forceinline__ void load(const float *matrices, u32 n, u32 unit, u32 lane) {
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
      if (s < n)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const float *p = matrices + ((size_t)s * WIDTH + unit) * WIDTH + h * 128 + lane * 4;
          float4 v = __ldcg((const float4 *)p);
          w[s][h][0] = v.x, w[s][h][1] = v.y, w[s][h][2] = v.z, w[s][h][3] = v.w;
        }
  }
};

// The terms of NB cells, whose vectors are at x, stride floats a cell: sums to the cells' files.
template <class S, int NB>
__device__ __forceinline__ void products(const Weights &m, const float *x, u32 stride, u32 file,
                                         float bias, u32 lane) {
  constexpr int N = NB * S::SUMS, PARTIAL = N <= 4 ? 2 : 1;
  float a[PARTIAL][N] = {};
  float4 v[NB][2];
  x += lane * 4;
  int gather = -1;
#pragma unroll
  for (int s = 0; s < S::USED; s++) {
    if (S::ADVANCE >> s & 1) {
      gather++;
#pragma unroll
      for (int n = 0; n < NB; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
          v[n][h] = *(const float4 *)(x + n * stride + gather * WIDTH + h * 128);
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int n = 0; n < NB; n++) {
        float &r = a[h % PARTIAL][n * S::SUMS + s % S::SUMS];
        const float *w = m.w[s][h];
        r = fmaf(w[0], v[n][h].x, r), r = fmaf(w[1], v[n][h].y, r);
        r = fmaf(w[2], v[n][h].z, r), r = fmaf(w[3], v[n][h].w, r);
      }
  }
  if (PARTIAL == 2)
#pragma unroll
    for (int i = 0; i < N; i++)
      a[0][i] += a[PARTIAL - 1][i];
  float sum = warp_sums<N>(a[0], lane);
  u32 i = lane / (32 / N);
  bias = __shfl_sync(~0u, bias, i % S::SUMS); // lane s has slot s's
  if (lane % (32 / N) == 0)
    set(file + (i / S::SUMS * FILE_WORDS + i % S::SUMS) * 4, sum + bias);
}

template <int THREADS> struct Processor {
  static constexpr u32 GROUP = 32 / LANES; // cells that a warp works on at once
  static constexpr int PENDING = THREADS == 128 ? 3 : THREADS == 256 ? 2 : 1; // loads under way
  static constexpr int PASSES = THREADS == 512 ? 2 : 4; // of a chain, interleaved
  static constexpr int MOST = THREADS == 512 ? 2 : 4;   // cells that share a load of weights

  char *memory, *unit_memory; // unit_memory: the unit's value of the vector at memory
  float *staging;             // two buffers
  u32 file, own;              // addresses of this warp's register files and own values
  u32 stages, script;         // likewise of all warps
  u32 lane;
  float bias;
  Weights weights;
  uint4 value[PENDING];
  u32 source[PENDING], total; // of the next gather; total: words of 16 bytes

  __device__ __forceinline__ const Stage *stage(u32 at) const {
    return (const Stage *)__cvta_shared_to_generic(stages + at * 4);
  }
  __device__ __forceinline__ u32 address(const Stage &g, u32 first, u32 e) const {
    u32 v = e >> 6, cell = v * g.reciprocal >> 16, j = v - cell * g.gathers;
    u32 p = (j < 4 ? g.pattern[0] >> 8 * j : g.pattern[1] >> 8 * (j - 4)) & 255u;
    u32 operand = get_word(script + (first + cell * g.record + (p & 15u)) * 4);
    return (operand & ~MEMORY) + (p >> 4) * (WIDTH * 4) + (e & 63u) * 16;
  }
  // Finds the addresses of an instruction's first gathers; issue() loads from them.
  __device__ __forceinline__ void decode(const Stage &g, u32 n, u32 first) {
    total = min(n, g.chunk) * g.gathers * 64;
#pragma unroll
    for (int k = 0; k < PENDING; k++)
      if (threadIdx.x + k * THREADS < total)
        source[k] = address(g, first, threadIdx.x + k * THREADS);
  }
  __device__ __forceinline__ void issue() {
#pragma unroll
    for (int k = 0; k < PENDING; k++)
      if (ABLATION < 2 && threadIdx.x + k * THREADS < total)
        value[k] = load16(memory + source[k]);
  }
  // Polls all words under way together until they are published.
  __device__ __forceinline__ void finish(u32 e0, u32 total, const u32 (&source)[PENDING],
                                         float *to) {
    u32 spins = 0;
    for (bool again = true; again;) {
      again = false;
      if (++spins > 1u << 20)
        __trap();
#pragma unroll
      for (int k = 0; k < PENDING; k++)
        if (e0 + k * THREADS < total && empty(value[k]))
          value[k] = load16(memory + source[k]), again = true;
    }
#pragma unroll
    for (int k = 0; k < PENDING; k++)
      if (e0 + k * THREADS < total)
        *(uint4 *)(to + 4 * (e0 + k * THREADS)) = value[k];
  }
  // What does not fit the loads under way.
  __device__ __forceinline__ void gather_rest(const Stage &g, u32 first, u32 total, float *to) {
    for (u32 e0 = threadIdx.x + PENDING * THREADS; e0 < total; e0 += PENDING * THREADS) {
      u32 source[PENDING];
#pragma unroll
      for (int k = 0; k < PENDING; k++)
        if (e0 + k * THREADS < total) {
          source[k] = address(g, first, e0 + k * THREADS);
          value[k] = load16(memory + source[k]);
        }
      finish(e0, total, source, to);
    }
  }
  // The same for cells that are most likely there: copies now, looks at them later.
  __device__ __forceinline__ void copy(const Stage &g, u32 first, u32 total, float *to) {
    u32 d = (u32)__cvta_generic_to_shared(to);
    for (u32 e = threadIdx.x; e < total; e += THREADS)
      copy_async<16>(d + 16 * e, memory + address(g, first, e));
  }
  __device__ __forceinline__ void settle(const Stage &g, u32 first, u32 total, float *to) {
    await_copies();
    for (u32 e = threadIdx.x; e < total; e += THREADS) {
      uint4 v = *(const uint4 *)(to + 4 * e);
      if (empty(v)) {
        const char *p = memory + address(g, first, e);
        for (u32 spins = 0; empty(v = load16(p));)
          if (++spins > 1u << 20)
            __trap();
        *(uint4 *)(to + 4 * e) = v;
      }
    }
  }

  // Brings operands of cells into their register files: bundles of loads from up to to.
  __device__ __forceinline__ void loads(const Stage &g, u32 first, u32 cells, u32 from, u32 to) {
    for (u32 b = from; b < to; b++) {
      u32 w = get_word(stages + (g.loads_at + b * LANES + lane % LANES) * 4);
      u32 record = script + (first + lane / LANES * g.record) * 4 + (w >> 8 & 255u);
      u32 d = file + lane / LANES * (FILE_WORDS * 4) + (w & 255u), shift = w >> 16;
      for (u32 cell = lane / LANES; cell < cells; cell += GROUP) {
        if ((w & 255u) != 4 * TRASH) {
          u32 operand = get_word(record);
          if (operand & MEMORY)
            copy_async<4>(d, unit_memory + (operand & ~MEMORY) + shift * (WIDTH * 4));
          else
            set(d, get(own + operand + shift * 4));
        }
        record += GROUP * g.record * 4, d += GROUP * FILE_WORDS * 4;
      }
    }
  }
  template <class S> __device__ __forceinline__ void terms(const float *x, u32 stride, u32 m) {
    u32 i = 0;
    for (; i + MOST <= m; i += MOST)
      products<S, MOST>(weights, x + i * stride, stride, file + i * FILE_WORDS * 4, bias, lane);
    if (MOST == 4 && i + 2 <= m) {
      products<S, 2>(weights, x + i * stride, stride, file + i * FILE_WORDS * 4, bias, lane);
      i += 2;
    }
    if (i < m)
      products<S, 1>(weights, x + i * stride, stride, file + i * FILE_WORDS * 4, bias, lane);
  }
  __device__ __forceinline__ void terms(u32 shape, const float *x, u32 stride, u32 m) {
    if (shape == TWO_BY_FOUR)
      terms<TwoByFour>(x, stride, m);
    else if (shape == FIVE_TO_TWO)
      terms<FiveToTwo>(x, stride, m);
    else if (shape == TWO_BY_ONE)
      terms<TwoByOne>(x, stride, m);
    else if (shape == ONE_BY_TWO)
      terms<OneByTwo>(x, stride, m);
  }

  // Bundles from up to to, on up to GROUP * P cells. Nothing that a bundle needs besides its
  // operands waits for the bundle before.
  template <int P>
  __device__ __forceinline__ void bundles(const Stage &g, u32 first, u32 cells, u32 file, u32 from,
                                          u32 to) {
    constexpr u32 PASS = GROUP * FILE_WORDS * 4;
    const u32 f = file + lane / LANES * (FILE_WORDS * 4);
    const u32 functions = g.functions, stores = g.stores, stride = GROUP * g.record * 4;
    const u32 record = script + (first + lane / LANES * g.record) * 4;
    u32 at = stages + g.bundles_at * 4 + (from * LANES + lane % LANES) * sizeof(MicroWords);
    uint4 w = get_words(at);
    for (u32 b = from; b < to; b++) {
      const u32 pa = f + (w.x & 0xFFFFu), pb = f + (w.x >> 16), pc = f + (w.y & 0xFFFFu),
                pd = f + (w.y >> 16);
      float va[P], vb[P], vc[P], vd[P], r[P];
      u32 operand[P];
      const bool storing = stores >> b & 1u;
#pragma unroll
      for (int p = 0; p < P; p++) {
        va[p] = get(pa + p * PASS), vb[p] = get(pb + p * PASS);
        vc[p] = get(pc + p * PASS), vd[p] = get(pd + p * PASS);
        operand[p] = get_word(record + (w.w & 0xFFFFu) + (P > 1 ? p * stride : 0));
      }
      at += LANES * sizeof(MicroWords);
      const uint4 next = get_words(at);
      const Function function(w.z >> 16 & 255u);
      const u32 store = w.z >> 24, shift = w.w >> 16, d = f + (w.z & 0xFFFFu);
#pragma unroll
      for (int p = 0; p < P; p++)
        r[p] = fmaf(vc[p], vd[p], va[p] * vb[p]);
      if (functions >> b & 1u)
#pragma unroll
        for (int p = 0; p < P; p++)
          r[p] = function(r[p]);
      if (storing)
#pragma unroll
        for (int p = 0; p < P; p++) {
          const bool mine = store != NOWHERE && lane / LANES + p * GROUP < cells;
          const bool out = operand[p] & MEMORY;
          u32 v = __float_as_uint(r[p]);
          v = v == EMPTY ? 0x7FFFFFFFu : v;
          if (mine && out)
            asm volatile("st.relaxed.gpu.global.u32 [%0],%1;" ::"l"(
                             unit_memory + (operand[p] - MEMORY + shift * (WIDTH * 4))),
                         "r"(v));
          if (mine && !out)
            set(own + operand[p] + shift * 4, r[p]);
        }
#pragma unroll
      for (int p = 0; p < P; p++)
        set(d + p * PASS, r[p]);
      __syncwarp();
      w = next;
    }
  }
  __device__ __forceinline__ void chain(const Stage &g, u32 first, u32 cells, u32 from, u32 to) {
    if (from == to)
      return;
    if (cells <= GROUP)
      bundles<1>(g, first, cells, file, from, to);
    else
      for (u32 c = 0; c < cells; c += PASSES * GROUP)
        bundles<PASSES>(g, first + c * g.record, cells - c, file + c * FILE_WORDS * 4, from, to);
  }
};

template <int THREADS>
__global__ void __launch_bounds__(THREADS, 1) interpret(const __grid_constant__ Launch l) {
  typedef Processor<THREADS> P;
  constexpr u32 WARPS = THREADS / 32, SIZE = WIDTH / WARPS;
  extern __shared__ __align__(16) float shared[];
  const u32 t = threadIdx.x, warp = t / 32, group = blockIdx.x / SIZE;
  const Group part = l.groups[group];
  P p;
  p.lane = t % 32;
  const u32 unit = blockIdx.x % SIZE * WARPS + warp;
  p.memory = (char *)l.memory, p.unit_memory = (char *)(l.memory + unit);
  float *file = shared + warp * ITEMS * FILE_WORDS;
  p.staging = shared + WARPS * ITEMS * FILE_WORDS;
  u32 *stages = (u32 *)(p.staging + 2 * STAGED * WIDTH), *script = stages + l.stage_words;
  float *own = (float *)(script + l.script_words) + warp * part.own;
  p.file = (u32)__cvta_generic_to_shared(file), p.own = (u32)__cvta_generic_to_shared(own);
  p.stages = (u32)__cvta_generic_to_shared(stages);
  p.script = (u32)__cvta_generic_to_shared(script);
  p.bias = 0.0f;
  long long *clock =
      l.clocks && blockIdx.x % SIZE == 0 && t == 0 ? l.clocks + group * l.clocks_of_group : nullptr;
  auto stamp = [&] {
    if (clock)
      *clock++ = clock64();
  };
  auto part_stamp = [&] {
    if (STAMPS > 1)
      stamp();
  };
  stamp();
  for (u32 i = t; i < l.stage_words; i += THREADS)
    stages[i] = __ldcg(l.stages + i);
  for (u32 i = t; i < part.words; i += THREADS)
    script[i] = __ldcg(l.script + part.at + i);
  for (u32 i = p.lane; i < ITEMS * FILE_WORDS; i += 32)
    file[i] = i % FILE_WORDS == ONE ? 1.0f : 0.0f;
  for (u32 i = p.lane; i < part.own; i += 32)
    own[i] = 0.0f;
  __syncthreads();

  const Instruction *next = (const Instruction *)script;
  Instruction in = *next;
  u32 buffer = 0;
  bool loaded = false; // the early loads of in are done
  while (in.op != OP_END) {
    const Instruction following = *++next;
    part_stamp();
    const bool gathers_follow = in.flags & DECODE;
    if (in.op == OP_MATRICES) {
      p.weights.load(l.memory + in.stage, in.n, unit, p.lane);
      if (p.lane < SLOTS)
        p.bias = __ldcg(l.memory + in.first + p.lane * WIDTH + unit);
      if (gathers_follow)
        p.decode(*p.stage(in.gather_stage), in.gather_n, in.gather_first);
      if (in.flags & ISSUE)
        p.issue();
      for (int i = 1; i < STAMPS - 1; i++)
        part_stamp();
      stamp();
      in = following;
      continue;
    }
    const Stage g = *p.stage(in.stage);
    bool done = loaded; // those of the first cells
    loaded = false;
    for (u32 c0 = 0; c0 < in.n; c0 += g.chunk) {
      const u32 cells = min(g.chunk, in.n - c0), at = in.first + c0 * g.record;
      float *x = p.staging + buffer * STAGED * WIDTH;
      const bool last = c0 + g.chunk >= in.n;
      bool ready = false;
      if (g.gathers) {
        const u32 total = cells * g.gathers * 64;
        if (c0 == 0) {
          p.loads(g, at, min(cells, ITEMS), done ? g.early_loads : 0, g.loads);
          ready = true;
          u32 source[P::PENDING];
#pragma unroll
          for (int k = 0; k < P::PENDING; k++)
            source[k] = p.source[k];
          if (gathers_follow)
            p.decode(*p.stage(in.gather_stage), in.gather_n, in.gather_first);
          if (last && following.op == OP_CELL && cells <= ITEMS) {
            const Stage &f = *p.stage(following.stage);
            if (!f.gathers && f.early_loads) {
              p.loads(f, following.first, min(following.n, ITEMS), 0, f.early_loads);
              loaded = true;
            }
          }
          p.finish(t, total, source, x);
          p.gather_rest(g, at, total, x);
          part_stamp();
        } else
          p.settle(g, at, total, x);
        __syncthreads();
        if (c0 == 0)
          part_stamp();
        if (!last)
          p.copy(g, at + g.chunk * g.record, min(g.chunk, in.n - c0 - g.chunk) * g.gathers * 64,
                 p.staging + (buffer ^ 1) * STAGED * WIDTH);
        buffer ^= 1;
      } else if (c0 == 0)
        part_stamp(), part_stamp();
      for (u32 b0 = 0; b0 < cells; b0 += ITEMS) {
        const u32 m = min((u32)ITEMS, cells - b0), r = at + b0 * g.record;
        const bool end = last && b0 + ITEMS >= cells;
        if (!ready)
          p.loads(g, r, m, done ? g.early_loads : 0, g.loads);
        ready = done = false;
        p.terms(g.shape, x + b0 * g.gathers * WIDTH, g.gathers * WIDTH, m);
        await_copies();
        __syncwarp();
        if (end)
          part_stamp();
        p.chain(g, r, m, 0, g.early ? g.early : g.bundles);
        if (end) {
          part_stamp();
          if (in.flags & ISSUE)
            p.issue();
        }
        if (g.early)
          p.chain(g, r, m, g.early, g.bundles);
      }
    }
    stamp();
    in = following;
  }
}
