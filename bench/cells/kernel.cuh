// The interpreter: one kernel for every script. UNITS units a warp, THREADS threads a processor.
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
#ifndef PENDING_LATE
#define PENDING_LATE 0 // 1: the next gather begins behind the whole chain
#endif

struct Launch {
  float *memory;
  const u32 *script, *stages;
  const Group *groups;
  u32 stage_words, script_words; // script_words: the longest group's
  long long *clocks;             // STAMPS an instruction for each group, or null
  u32 clocks_of_group;
};

__device__ __forceinline__ uint4 load16(const float *p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3},[%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ void publish(float *p, float v) {
  u32 w = __float_as_uint(v);
  w = w == EMPTY ? 0x7FFFFFFFu : w;
  asm volatile("st.relaxed.gpu.global.u32 [%0],%1;" ::"l"(p), "r"(w) : "memory");
}
__device__ __forceinline__ bool empty(uint4 v) {
  return !ABLATION && (v.x == EMPTY || v.y == EMPTY || v.z == EMPTY || v.w == EMPTY);
}
template <int BYTES> __device__ __forceinline__ void copy_async(float *to, const float *from) {
  u32 d = (u32)__cvta_generic_to_shared(to);
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(d), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(d), "l"(from) : "memory");
}
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ __forceinline__ float function(u32 kind, float x) {
  float y = __fdividef(1.0f, 1.0f + __expf(kind == TANH ? -2.0f * x : -x));
  float r = kind == LOGISTIC ? y : x;
  r = kind == TANH ? fmaf(2.0f, y, -1.0f) : r;
  r = kind == LOGISTIC_SLOPE ? x * (1.0f - x) : r;
  return kind == TANH_SLOPE ? fmaf(-x, x, 1.0f) : r;
}

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

template <int UNITS> struct Weights {
  float w[UNITS][SLOTS][8];

  // Row k of n matrices: lane l has elements 4 l to 4 l + 3 of each half.
  __device__ __forceinline__ void load(const float *matrices, u32 n, u32 k, u32 lane) {
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
      if (s < n)
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
          for (int h = 0; h < 2; h++) {
            const float *p = matrices + ((size_t)s * WIDTH + k + u) * WIDTH + h * 128 + lane * 4;
            float4 v = __ldcg((const float4 *)p);
            w[u][s][4 * h] = v.x, w[u][s][4 * h + 1] = v.y;
            w[u][s][4 * h + 2] = v.z, w[u][s][4 * h + 3] = v.w;
          }
  }
};

// The terms of NB cells, whose vectors are at x: sums to the items' register files.
template <int UNITS, int NB, int SUMS>
__device__ __forceinline__ void products(const Weights<UNITS> &m, const Stage &g, const float *x,
                                         float *file, const float *bias, u32 lane) {
  constexpr int N = NB * UNITS * SUMS, PARTIAL = NB == 1 && SUMS == 2 ? 2 : 1;
  float a[PARTIAL][N] = {};
  float4 v[NB][2], next[2];
  const u32 stride = g.gathers * WIDTH, slots = g.slots, advance = g.advance;
  x += lane * 4;
  if (NB == 1)
    next[0] = *(const float4 *)x, next[1] = *(const float4 *)(x + 128);
#pragma unroll
  for (int s = 0; s < SLOTS; s++)
    if (s < slots) {
      if (advance >> s & 1) {
        if (NB == 1) {
          v[0][0] = next[0], v[0][1] = next[1], x += WIDTH;
          next[0] = *(const float4 *)x, next[1] = *(const float4 *)(x + 128);
        } else {
#pragma unroll
          for (int n = 0; n < NB; n++)
            v[n][0] = *(const float4 *)(x + n * stride),
            v[n][1] = *(const float4 *)(x + n * stride + 128);
          x += WIDTH;
        }
      }
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < NB; n++)
#pragma unroll
          for (int u = 0; u < UNITS; u++) {
            float &r = a[h % PARTIAL][(n * UNITS + u) * SUMS + s % SUMS];
            const float *w = m.w[u][s] + 4 * h;
            r = fmaf(w[0], v[n][h].x, r), r = fmaf(w[1], v[n][h].y, r);
            r = fmaf(w[2], v[n][h].z, r), r = fmaf(w[3], v[n][h].w, r);
          }
    }
  if (PARTIAL == 2)
#pragma unroll
    for (int i = 0; i < N; i++)
      a[0][i] += a[PARTIAL - 1][i];
  float sum = warp_sums<N>(a[0], lane);
  u32 i = lane / (32 / N), item = i / SUMS, s = i % SUMS;
  if (lane % (32 / N) == 0)
    file[item * FILE_WORDS + s] = sum + bias[item % UNITS * SLOTS + s];
}

template <int UNITS, int THREADS> struct Processor {
  static constexpr u32 WARPS = THREADS / 32, CELLS = ITEMS / UNITS;
  static constexpr int PENDING = UNITS == 1 ? 3 : 2; // loads of a gather under way

  float *memory;
  float *staging; // two buffers
  float *files;   // of this warp
  float *bias;    // of this warp
  float *own;     // of this warp's first unit
  const u32 *stages, *script;
  u32 own_values, lane, unit; // unit: the warp's first
  Weights<UNITS> weights;
  uint4 value[PENDING];
  u32 source[PENDING];
  bool ahead; // the gather of this instruction was begun by the one before

  __device__ __forceinline__ const float *address(const Stage &g, u32 first, u32 e) const {
    u32 v = e >> 6, cell = v * g.reciprocal >> 16, j = v - cell * g.gathers;
    u32 p = (j < 4 ? g.pattern[0] >> 8 * j : g.pattern[1] >> 8 * (j - 4)) & 255u;
    u32 operand = script[first + cell * g.record + (p & 15u)];
    return memory + (operand & ~MEMORY) + (p >> 4) * WIDTH + (e & 63u) * 4;
  }

  // Begins the gathers of an instruction's first cells.
  __device__ __forceinline__ void begin(const Stage &g, u32 n, u32 first) {
    u32 total = min(n, g.chunk) * g.gathers * 64;
#pragma unroll
    for (int k = 0; k < PENDING; k++) {
      u32 e = threadIdx.x + k * THREADS;
      if (e < total) {
        const float *p = address(g, first, e);
        source[k] = (u32)(p - memory);
        if (ABLATION < 2)
          value[k] = load16(p);
      }
    }
  }
  // Polls all words under way together until they are published.
  __device__ __forceinline__ void finish(u32 e0, u32 total, float *to) {
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
  __device__ __forceinline__ void gather(const Stage &g, u32 first, u32 total, float *to) {
    finish(threadIdx.x, total, to);
    for (u32 e0 = threadIdx.x + PENDING * THREADS; e0 < total; e0 += PENDING * THREADS) {
#pragma unroll
      for (int k = 0; k < PENDING; k++)
        if (e0 + k * THREADS < total) {
          const float *p = address(g, first, e0 + k * THREADS);
          source[k] = (u32)(p - memory), value[k] = load16(p);
        }
      finish(e0, total, to);
    }
  }
  // The same for cells that are most likely there: copies now, looks at them later.
  __device__ __forceinline__ void copy(const Stage &g, u32 first, u32 total, float *to) {
    for (u32 e = threadIdx.x; e < total; e += THREADS)
      copy_async<16>(to + 4 * e, address(g, first, e));
  }
  __device__ __forceinline__ void settle(const Stage &g, u32 first, u32 total, float *to) {
    await_copies();
    for (u32 e = threadIdx.x; e < total; e += THREADS) {
      uint4 v = *(const uint4 *)(to + 4 * e);
      if (empty(v)) {
        const float *p = address(g, first, e);
        for (u32 spins = 0; empty(v = load16(p));)
          if (++spins > 1u << 20)
            __trap();
        *(uint4 *)(to + 4 * e) = v;
      }
    }
  }

  // Brings operands of the items of m cells into their register files.
  __device__ __forceinline__ void loads(const Stage &g, u32 first, u32 items) {
    for (u32 b = 0; b < g.loads; b++) {
      u32 w = stages[g.loads_at + b * LANES + lane % LANES];
      u32 to = w >> 16 & 255u;
      for (u32 item = lane / LANES; item < items; item += 32 / LANES) {
        if (to == TRASH)
          continue;
        u32 unit_of = item % UNITS, operand = script[first + item / UNITS * g.record + (w & 255u)];
        u32 shift = w >> 8 & 255u;
        float *d = files + item * FILE_WORDS + to;
        if (operand & MEMORY)
          copy_async<4>(d, memory + (operand & ~MEMORY) + shift * WIDTH + unit + unit_of);
        else
          *d = own[unit_of * own_values + operand + shift];
      }
    }
  }
  template <int SUMS> __device__ __forceinline__ void terms(const Stage &g, const float *x, u32 m) {
    u32 i = 0;
    const u32 stride = g.gathers * WIDTH;
    constexpr int MOST = SUMS == 2 ? 4 : 4 / UNITS;
    for (; i + MOST <= m; i += MOST)
      products<UNITS, MOST, SUMS>(weights, g, x + i * stride, files + i * UNITS * FILE_WORDS, bias,
                                  lane);
    if (MOST == 4 && i + 2 <= m)
      products<UNITS, 2, SUMS>(weights, g, x + i * stride, files + i * UNITS * FILE_WORDS, bias,
                               lane),
          i += 2;
    if (i < m)
      products<UNITS, 1, SUMS>(weights, g, x + i * stride, files + i * UNITS * FILE_WORDS, bias,
                               lane);
  }
  // Bundles from up to to, on up to 4 * PASSES items.
  template <int PASSES>
  __device__ __forceinline__ void chain(const Stage &g, u32 first, u32 items, u32 from, u32 to) {
    const uint2 *table = (const uint2 *)(stages + g.bundles_at) + lane % LANES;
    float *f = files + lane / LANES * FILE_WORDS;
    constexpr u32 PASS = 32 / LANES;
    uint2 w = table[from * LANES];
    for (u32 b = from; b < to; b++) {
      uint2 next = table[(b + 1) * LANES]; // of the last one: not used
      u32 store = g.stores >> b & 1u ? w.y >> 12 & 3u : NOWHERE;
      u32 operand[PASSES];
      float r[PASSES];
#pragma unroll
      for (int p = 0; p < PASSES; p++) {
        u32 item = lane / LANES + p * PASS;
        if (store != NOWHERE && item < items)
          operand[p] = script[first + item / UNITS * g.record + (w.y >> 16 & 255u)];
        const float *v = f + p * PASS * FILE_WORDS;
        r[p] = v[w.x & 255u] * v[w.x >> 8 & 255u];
        r[p] = fmaf(v[w.x >> 16 & 255u], v[w.x >> 24], r[p]);
      }
      if (g.functions >> b & 1u)
#pragma unroll
        for (int p = 0; p < PASSES; p++)
          r[p] = function(w.y >> 8 & 15u, r[p]);
#pragma unroll
      for (int p = 0; p < PASSES; p++) {
        u32 item = lane / LANES + p * PASS, unit_of = item % UNITS;
        if (store != NOWHERE && item < items) {
          if (store == PUBLISH || operand[p] & MEMORY)
            publish(memory + (operand[p] & ~MEMORY) + (w.y >> 24) * WIDTH + unit + unit_of, r[p]);
          else
            own[unit_of * own_values + operand[p] + (w.y >> 24)] = r[p];
        }
        f[p * PASS * FILE_WORDS + (w.y & 255u)] = r[p];
      }
      __syncwarp();
      w = next;
    }
  }
  __device__ __forceinline__ void chain(const Stage &g, u32 first, u32 items, u32 from, u32 to) {
    if (items <= 32 / LANES)
      chain<1>(g, first, items, from, to);
    else
      chain<4>(g, first, items, from, to);
  }
};

template <int UNITS, int THREADS>
__global__ void __launch_bounds__(THREADS, 1) interpret(const __grid_constant__ Launch l) {
  typedef Processor<UNITS, THREADS> P;
  constexpr u32 PER_PROCESSOR = P::WARPS * UNITS, SIZE = WIDTH / PER_PROCESSOR;
  extern __shared__ __align__(16) float shared[];
  const u32 t = threadIdx.x, warp = t / 32, group = blockIdx.x / SIZE;
  const Group part = l.groups[group];
  P p;
  p.memory = l.memory;
  p.lane = t % 32;
  p.unit = blockIdx.x % SIZE * PER_PROCESSOR + warp * UNITS;
  p.staging = shared;
  p.files = shared + 2 * STAGED * WIDTH + warp * ITEMS * FILE_WORDS;
  float *biases = shared + 2 * STAGED * WIDTH + P::WARPS * ITEMS * FILE_WORDS;
  p.bias = biases + warp * UNITS * SLOTS;
  u32 *stages = (u32 *)(biases + PER_PROCESSOR * SLOTS), *script = stages + l.stage_words;
  p.stages = stages, p.script = script;
  p.own_values = part.own;
  p.own = (float *)(script + l.script_words) + warp * UNITS * part.own;
  p.ahead = false;
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
    p.files[i] = i % FILE_WORDS == ONE ? 1.0f : 0.0f;
  for (u32 i = p.lane; i < UNITS * part.own; i += 32)
    p.own[i] = 0.0f;
  __syncthreads();

  const Instruction *next = (const Instruction *)script;
  Instruction in = *next;
  u32 buffer = 0;
  while (in.op != OP_END) {
    const Instruction following = *++next;
    part_stamp();
    if (in.op == OP_MATRICES) {
      p.weights.load(p.memory + in.stage, in.n, p.unit, p.lane);
      for (u32 i = p.lane; i < UNITS * SLOTS; i += 32)
        p.bias[i] = __ldcg(p.memory + in.first + i % SLOTS * WIDTH + p.unit + i / SLOTS);
      __syncwarp();
      for (int i = 1; i < STAMPS - 1; i++)
        part_stamp();
    } else {
      const Stage &g = *(const Stage *)(stages + in.stage);
      const Stage &g2 = *(const Stage *)(stages + (following.op == OP_CELL ? following.stage : 0));
      if (g.gathers && !p.ahead)
        p.begin(g, in.n, in.first);
      p.ahead = false;
      for (u32 c0 = 0; c0 < in.n; c0 += g.chunk, buffer ^= g.gathers ? 1 : 0) {
        const u32 cells = min(g.chunk, in.n - c0), at = in.first + c0 * g.record;
        float *x = p.staging + buffer * STAGED * WIDTH;
        const bool last = c0 + g.chunk >= in.n;
        if (g.gathers) {
          if (c0 == 0) {
            p.loads(g, at, min(cells, P::CELLS) * UNITS);
            p.gather(g, at, cells * g.gathers * 64, x);
          } else
            p.settle(g, at, cells * g.gathers * 64, x);
          if (c0 == 0)
            part_stamp();
          __syncthreads();
          if (c0 == 0)
            part_stamp();
          if (!last)
            p.copy(g, at + g.chunk * g.record, min(g.chunk, in.n - c0 - g.chunk) * g.gathers * 64,
                   p.staging + (buffer ^ 1) * STAGED * WIDTH);
        } else if (c0 == 0)
          part_stamp(), part_stamp();
        for (u32 b0 = 0; b0 < cells; b0 += P::CELLS) {
          const u32 m = min(P::CELLS, cells - b0), r = at + b0 * g.record, items = m * UNITS;
          const bool end = last && b0 + P::CELLS >= cells;
          if (!g.gathers || c0 || b0)
            p.loads(g, r, items);
          if (g.sums == 8)
            p.template terms<8>(g, x + b0 * g.gathers * WIDTH, m);
          else if (g.slots)
            p.template terms<2>(g, x + b0 * g.gathers * WIDTH, m);
          if (g.loads)
            await_copies();
          __syncwarp();
          if (end)
            part_stamp();
          p.chain(g, r, items, 0, g.early);
          if (end)
            part_stamp();
          if (PENDING_LATE)
            p.chain(g, r, items, g.early, g.bundles);
          if (end && following.op == OP_CELL && g2.gathers) {
            p.begin(g2, following.n, following.first);
            p.ahead = true;
          }
          if (!PENDING_LATE)
            p.chain(g, r, items, g.early, g.bundles);
        }
      }
    }
    stamp();
    in = following;
  }
}
