// Products of parts of numbers on a GPU's tensor cores, which multiply numbers of 11 bits and add
// them up in FP32. A number is the sum of a high and a low part of that size. Of two numbers three
// products are formed, all but that of the low parts, which is less than 2^-21 of the whole.
#pragma once

#ifndef VPPS_PARTS
#ifdef __CUDA_ARCH__
#define VPPS_PARTS (__CUDA_ARCH__ >= 800)
#else
#define VPPS_PARTS 1
#endif
#endif

#ifdef __CUDA_ARCH__
// The same number, which the compiler takes for another one each time, lest it prepare what depends
// on it and keep that in registers.
VP u32 as_new(u32 x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Waits for the other warps of a group of four.
VP void meet_in_group(u32 group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }
#endif

// In the checking build a group meets this many times more, so that both have met equally often.
// racecheck, which counts a warp's barriers whatever their names are, needs that: else it takes one
// group's barriers for the other's and reports races that are none.
#ifdef VPPS_CHECK
VP void meet_as_often(u32 group, u32 more) {
#pragma unroll 1
  for (u32 i = 0; i < more; i++)
    meet_in_group(group);
}
#else
VP void meet_as_often(u32, u32) {}
#endif

// D += A B of a warp: D of 16 x 8 floats, A of 16 x 8 and B of 8 x 8 parts. With g = lane / 4 and
// t = lane % 4, d is at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1), a at (g, t), (g + 8,
// t), (g, t + 4), (g + 8, t + 4) and b at (t, g), (t + 4, g). What is summed over may come in any
// order.
#if defined(__CUDA_ARCH__) && VPPS_PARTS
VP void multiply_parts(float *d, const u32 *a, const u32 *b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// The parts of N numbers.
template <int N> struct Split {
  u32 high[N], low[N];
  VP_MEMBER void set(int i, float x) {
    high[i] = (BITS_OF(x) + 0x1000u) & 0xFFFFE000u;
    low[i] = BITS_OF(x - FLOAT_OF(high[i]));
  }
};
