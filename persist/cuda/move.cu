// Copies runs of numbers, a block each. Those of floats become bfloat16, the upper half of a
// float's bits, or come from it.
struct Run {
  const void *from;
  void *to;
  unsigned long long n;
};
struct Arguments {
  const Run *list;
  unsigned count;
  float scale; // of what becomes bfloat16
};

// To nearest, ties to even. NaN stays NaN; what is beyond the largest number becomes infinite.
__device__ unsigned rounded(float x) {
  const unsigned b = __float_as_uint(x);
  if (x != x)
    return b >> 16 | 0x40; // quiet: the bits that are left may be 0
  return (b + 0x7fff + (b >> 16 & 1)) >> 16;
}

// How many numbers of a run go by four: all but the last ones, if they lie as loads and stores of
// four need it.
__device__ unsigned long long by_four(const void *floats, const void *halves,
                                      unsigned long long n) {
  const bool even = (unsigned long long)floats % 16 == 0 && (unsigned long long)halves % 8 == 0;
  return even ? n & ~3ull : 0;
}

extern "C" __global__ void __launch_bounds__(256) vpps_move(const Arguments a) {
  for (unsigned k = blockIdx.x; k < a.count; k += gridDim.x) {
    const Run r = a.list[k];
    for (unsigned long long i = threadIdx.x; i < r.n; i += blockDim.x)
      ((float *)r.to)[i] = ((const float *)r.from)[i];
  }
}

// From floats, each multiplied by the scale.
extern "C" __global__ void __launch_bounds__(256) vpps_move_pack(const Arguments a) {
  for (unsigned k = blockIdx.x; k < a.count; k += gridDim.x) {
    const Run r = a.list[k];
    const float *from = (const float *)r.from;
    unsigned short *to = (unsigned short *)r.to;
    const unsigned long long n = by_four(from, to, r.n);
    for (unsigned long long i = threadIdx.x; i < n / 4; i += blockDim.x) {
      const float4 x = ((const float4 *)from)[i];
      uint2 y;
      y.x = rounded(a.scale * x.x) | rounded(a.scale * x.y) << 16;
      y.y = rounded(a.scale * x.z) | rounded(a.scale * x.w) << 16;
      ((uint2 *)to)[i] = y;
    }
    for (unsigned long long i = n + threadIdx.x; i < r.n; i += blockDim.x)
      to[i] = (unsigned short)rounded(a.scale * from[i]);
  }
}

// To floats.
extern "C" __global__ void __launch_bounds__(256) vpps_move_unpack(const Arguments a) {
  for (unsigned k = blockIdx.x; k < a.count; k += gridDim.x) {
    const Run r = a.list[k];
    const unsigned short *from = (const unsigned short *)r.from;
    float *to = (float *)r.to;
    const unsigned long long n = by_four(to, from, r.n);
    for (unsigned long long i = threadIdx.x; i < n / 4; i += blockDim.x) {
      const uint2 x = ((const uint2 *)from)[i];
      float4 y;
      y.x = __uint_as_float(x.x << 16);
      y.y = __uint_as_float(x.x & 0xffff0000);
      y.z = __uint_as_float(x.y << 16);
      y.w = __uint_as_float(x.y & 0xffff0000);
      ((float4 *)to)[i] = y;
    }
    for (unsigned long long i = n + threadIdx.x; i < r.n; i += blockDim.x)
      to[i] = __uint_as_float((unsigned)from[i] << 16);
  }
}
