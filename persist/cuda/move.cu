// Copies runs of floats, a block each.
struct Run {
  const float *from;
  float *to;
  unsigned long long n;
};
struct Arguments {
  const Run *list;
  unsigned count;
};

extern "C" __global__ void vpps_move(const Arguments a) {
  for (unsigned k = blockIdx.x; k < a.count; k += gridDim.x) {
    const Run r = a.list[k];
    for (unsigned long long i = threadIdx.x; i < r.n; i += blockDim.x)
      r.to[i] = r.from[i];
  }
}
