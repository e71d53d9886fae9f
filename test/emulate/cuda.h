// What the GPU's routines need of CUDA, on the CPU: a CTA is 256 threads, which meet at barriers.
// They are coroutines of one thread: each runs until it waits at a barrier, then the next one does.
// Which one is next is shuffled for each launch, so that a barrier that is missing shows, and the
// same way in every run. Copies are made at once, as on devices without asynchronous ones.
#ifndef VPPS_EMULATE_CUDA_H
#define VPPS_EMULATE_CUDA_H

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#define __CUDACC_RTC__ 1
#define __device__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ // nothing, since libstdc++ writes __attribute__((__noinline__)), too
#define __align__(n) __attribute__((aligned(n)))
// What is written in PTX, asm volatile(...), is for compilers of PTX, and not called here.
#define asm
#define volatile(...) std::abort()

struct Index {
  unsigned x;
};
static Index threadIdx, blockIdx, gridDim;

struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
struct uint4 {
  unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static inline unsigned __float_as_uint(float f) {
  unsigned u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
static inline float __uint_as_float(unsigned u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}
static inline long long __double_as_longlong(double d) {
  long long x;
  std::memcpy(&x, &d, sizeof x);
  return x;
}
static inline double __longlong_as_double(long long x) {
  double d;
  std::memcpy(&d, &x, sizeof d);
  return d;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a * b >> 32);
}
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
template <class A, class B> auto min(A a, B b) -> decltype(a + b) {
  typedef decltype(a + b) C;
  return C(a) < C(b) ? C(a) : C(b);
}
template <class A, class B> auto max(A a, B b) -> decltype(a + b) {
  typedef decltype(a + b) C;
  return C(a) > C(b) ? C(a) : C(b);
}

// A CTA: its threads, where they meet, and what each hands to the others of its warp or CTA.
const unsigned THREADS = 256, WARPS = THREADS / 32, STACK = 1 << 18;
struct Barrier {
  unsigned arrived, rounds;
};
struct Cta {
  jmp_buf caller, threads[THREADS];
  std::vector<char> stacks = std::vector<char>(size_t(THREADS) * STACK);
  unsigned next[THREADS]; // which thread runs after each of those that are not over
  unsigned idle;          // changes of threads since one has passed a barrier
  Barrier all, warps[WARPS], groups[WARPS / 4];
  float values[THREADS];
  bool votes[THREADS];
};
static Cta cta;

// Lets the next thread run.
static inline void yield() {
  const unsigned mine = threadIdx.x;
  if (++cta.idle > 2 * THREADS) {
    std::fprintf(stderr, "threads wait at different barriers\n");
    std::abort();
  }
  threadIdx.x = cta.next[mine];
  if (_setjmp(cta.threads[mine]) == 0)
    _longjmp(cta.threads[threadIdx.x], 1);
}
static inline void meet(Barrier &b, unsigned count) {
  if (++b.arrived == count) {
    b.arrived = cta.idle = 0, b.rounds++;
    return;
  }
  for (const unsigned round = b.rounds; b.rounds == round;)
    yield();
}
static inline void __syncthreads() { meet(cta.all, THREADS); }
static inline void __syncwarp() { meet(cta.warps[threadIdx.x / 32], 32); }
static inline float value_of(unsigned thread, float v) {
  cta.values[threadIdx.x] = v;
  __syncwarp();
  const float other = cta.values[thread];
  __syncwarp();
  return other;
}
static inline float __shfl_xor_sync(unsigned, float v, int d) {
  return value_of(threadIdx.x ^ unsigned(d), v);
}
static inline float __shfl_up_sync(unsigned, float v, unsigned d) {
  return value_of(threadIdx.x - (threadIdx.x % 32 < d ? 0 : d), v);
}
static inline float __shfl_sync(unsigned, float v, unsigned lane) {
  return value_of(threadIdx.x / 32 * 32 + lane, v);
}
static inline unsigned __shfl_xor_sync(unsigned, unsigned v, int d) {
  std::memcpy(&cta.values[threadIdx.x], &v, sizeof v);
  __syncwarp();
  std::memcpy(&v, &cta.values[threadIdx.x ^ unsigned(d)], sizeof v);
  __syncwarp();
  return v;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long all = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (unsigned i = 0; i < 4; i++)
    r |= unsigned(all >> 8 * (selector >> 4 * i & 7u) & 0xFFu) << 8 * i;
  return r;
}
// What a warp's lanes have, 4 words each.
static inline unsigned *words_of(unsigned lane) {
  static unsigned words[256][8];
  return words[threadIdx.x / 32 * 32 + lane];
}
static inline float part_of(unsigned x) { return __uint_as_float(x & 0xFFFFE000u); }
// The tensor cores' (parts_gpu.h).
static inline void multiply_parts(float *d, const unsigned *a, const unsigned *b) {
  unsigned *mine = words_of(threadIdx.x % 32);
  std::memcpy(mine, a, 16);
  std::memcpy(mine + 4, b, 8);
  __syncwarp();
  const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < 8; k++)
      d[i] += part_of(words_of(4 * g + k % 4)[k / 4 * 2 + i / 2]) *
              part_of(words_of(4 * (2 * t + i % 2) + k % 4)[4 + k / 4]);
  __syncwarp();
}
static inline unsigned as_new(unsigned x) { return x; }
static inline void meet_in_group(unsigned group) { meet(cta.groups[group], 128); }
static inline unsigned votes_of(unsigned first, unsigned count, bool vote, void (*meet)()) {
  cta.votes[threadIdx.x] = vote;
  meet();
  unsigned n = 0;
  for (unsigned i = 0; i < count; i++)
    n += cta.votes[first + i];
  meet();
  return n;
}
static inline bool __syncthreads_and(int v) { return votes_of(0, 256, v, __syncthreads) == 256; }
static inline bool __syncthreads_or(int v) { return votes_of(0, 256, v, __syncthreads) > 0; }
static inline bool __all_sync(unsigned, int v) {
  return votes_of(threadIdx.x / 32 * 32, 32, v, __syncwarp) == 32;
}
static inline bool __any_sync(unsigned, int v) {
  return votes_of(threadIdx.x / 32 * 32, 32, v, __syncwarp) > 0;
}
static inline unsigned __ballot_sync(unsigned, int v) {
  cta.votes[threadIdx.x] = v;
  __syncwarp();
  unsigned all = 0;
  for (unsigned i = 0; i < 32; i++)
    all |= unsigned(cta.votes[threadIdx.x / 32 * 32 + i]) << i;
  __syncwarp();
  return all;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
// Of these the routines that are called here have no use.
static inline unsigned long long clock64() { std::abort(); }
template <class T> T atomicCAS(T *, T, T) { std::abort(); }
static inline void __threadfence() {}
static inline void __threadfence_system() {}

// Shared memory. An address of it is its pointer's lower half, of which the array has one upper
// half.
alignas(1 << 18) static float shared[1 << 16];
static inline unsigned long long __cvta_generic_to_shared(const void *p) {
  return (unsigned long long)p & 0xFFFFFFFFu;
}
static inline float *shared_pointer(unsigned at) {
  return (float *)(((unsigned long long)shared & ~0xFFFFFFFFull) | at);
}
static inline float load_shared_word(unsigned at) { return *shared_pointer(at); }
static inline void store_shared_word(unsigned at, float v) { *shared_pointer(at) = v; }
static inline void load_shared_four(float *v, unsigned at) {
  std::copy(shared_pointer(at), shared_pointer(at) + 4, v);
}
static inline void store_shared_four(unsigned at, const float *v) {
  std::copy(v, v + 4, shared_pointer(at));
}

// Runs f on a CTA.
template <class F> struct Body {
  static const F *f;
  // A thread's begin and end. Its stack is given to it by makecontext; later changes are jumps,
  // which ask nothing of the system.
  static void run() {
    const unsigned mine = threadIdx.x;
    if (_setjmp(cta.threads[mine]) == 0)
      _longjmp(cta.caller, 1);
    (*f)();
    const unsigned next = cta.next[mine];
    cta.idle = 0;
    *std::find(cta.next, cta.next + THREADS, mine) = next; // nobody is before it then
    cta.next[mine] = THREADS;
    threadIdx.x = next;
    _longjmp(next == mine ? cta.caller : cta.threads[next], 1);
  }
};
template <class F> const F *Body<F>::f;

template <class F> void launch(const F &f) {
  static std::mt19937 rng(1);
  std::vector<unsigned> order(THREADS);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), rng);
  Body<F>::f = &f;
  for (unsigned k = 0; k < THREADS; k++) {
    const unsigned t = order[k];
    cta.next[t] = order[(k + 1) % THREADS];
    ucontext_t begin;
    getcontext(&begin);
    begin.uc_stack.ss_sp = &cta.stacks[size_t(t) * STACK];
    begin.uc_stack.ss_size = STACK;
    makecontext(&begin, Body<F>::run, 0);
    threadIdx.x = t;
    if (_setjmp(cta.caller) == 0)
      setcontext(&begin);
  }
  threadIdx.x = order[0];
  if (_setjmp(cta.caller) == 0)
    _longjmp(cta.threads[order[0]], 1);
#ifdef VPPS_CHECK
  if (cta.groups[0].rounds != cta.groups[1].rounds) {
    std::fprintf(stderr, "one group of warps has met more often than the other (parts_gpu.h)\n");
    std::abort();
  }
#endif
}

#endif
