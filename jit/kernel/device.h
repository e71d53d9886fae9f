// What differs between the two devices, behind a handful of names: on a GPU a
// processor is a CTA of 256 threads, on a CPU it is one wide thread.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __CUDACC_RTC__
#define VPPS_GPU 1
#define VP static __device__ __forceinline__
#define VP_SLOW static __device__ __noinline__
#define VP_SELDOM VP_SLOW // many callers, none of which is often run: compiled once
#define VP_MEMBER __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1") // a loop that seldom runs need not be fast
#define THREADS 256u
#define WARPS 8u
#define THREAD (threadIdx.x)
#define BITS_OF(x) __float_as_uint(x)
#define FLOAT_OF(x) __uint_as_float(x)
#define MULHI(a, b) __umulhi(a, b)
#define FMA(a, b, c) __fmaf_rn(a, b, c)
#define MEET() __syncthreads() // the processor's threads wait for each other
#else
// Inlined even where matrix_cpu.h contracts and the callee does not.
#define VP static inline __attribute__((always_inline))
#define VP_SLOW static
#define VP_SELDOM VP
#define VP_MEMBER inline __attribute__((always_inline))
#define UNROLL
#define ROLLED
#define THREADS 1u
#define THREAD 0u
#define RESTRICT __restrict__
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define MEET() ((void)0)
// The iterations of the next loop do not depend on each other. Clang finds that out when they run.
#if defined(__clang__)
#define VP_INDEPENDENT
#else
#define VP_INDEPENDENT _Pragma("GCC ivdep")
#endif
VP u32 BITS_OF(float x) {
  u32 r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}
VP float FLOAT_OF(u32 x) {
  float r;
  __builtin_memcpy(&r, &x, 4);
  return r;
}
VP u32 MULHI(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
#endif

// What all lanes of a warp have, so that the compiler knows it, too: behind branches on it they
// need not meet.
VP u32 same(u32 x) {
#if defined(VPPS_GPU) && __CUDA_ARCH__ >= 800
  return __reduce_or_sync(0xFFFFFFFFu, x);
#else
  return x;
#endif
}

// A store turns every NaN into this one, so that no result is ever the sentinel.
VP float canonical(float x) { return x == x ? x : FLOAT_OF(0x7FC00000u); }
