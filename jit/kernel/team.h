// The threads of a GPU that work on one sum or row: a warp, some lanes of it for a short one, or
// all threads for a long one.
#pragma once

// The least elements for which a row or a sum has 256 lanes instead of 32, and on the GPU all
// threads.
enum : u32 { LONG_ROW = 2048, LONG_LANES = 256 };

#ifdef VPPS_GPU
struct Team {
  u32 first, step;
  float *scratch; // of all threads
};
VP Team one_warp() { return Team{THREAD % 32, 32, nullptr}; }
// The sum or maximum over a team, known to all of it: of all threads' values, those of neighbouring
// warps last, as the CPU adds its lanes.
template <class Join> VP float over_team(const Team &team, float v, const Join &join) {
  if (team.step == THREADS) {
    __syncthreads(); // scratch is free
    team.scratch[THREAD] = v;
    __syncthreads();
    float lanes[WARPS];
#pragma unroll
    for (u32 k = 0; k < WARPS; k++)
      lanes[k] = team.scratch[THREAD % 32 + 32 * k];
#pragma unroll
    for (u32 d = WARPS / 2; d > 0; d /= 2)
#pragma unroll
      for (u32 k = 0; k < WARPS / 2; k++)
        if (k < d)
          lanes[k] = join(lanes[k], lanes[k + d]);
    v = lanes[0];
  }
#pragma unroll 1
  for (u32 d = min(team.step, 32u) / 2; d > 0; d /= 2)
    v = join(v, __shfl_xor_sync(0xFFFFFFFFu, v, d));
  return v;
}
struct Plus {
  VP_MEMBER float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  VP_MEMBER float operator()(float a, float b) const { return fmaxf(a, b); }
};
// The least of all threads' numbers.
VP u32 least_of_team(const Team &team, u32 v) {
  if (team.step == THREADS) {
    __syncthreads(); // scratch is free
    u32 *numbers = (u32 *)team.scratch;
    numbers[THREAD] = v;
    __syncthreads();
    for (u32 k = 0; k < WARPS; k++)
      v = numbers[THREAD % 32 + 32 * k] < v ? numbers[THREAD % 32 + 32 * k] : v;
  }
#pragma unroll
  for (u32 d = 16; d > 0; d /= 2) {
    u32 other = __shfl_xor_sync(0xFFFFFFFFu, v, d);
    v = other < v ? other : v;
  }
  return v;
}
#endif
