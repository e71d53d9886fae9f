// The kernel's entry. A checking build has VPPS_CHECK; VPPS_REGISTERS declares the register arrays,
// VPPS_LOAD fills them, and VPPS_PRODUCT, VPPS_PRODUCT_T, VPPS_OUTER call the matrix routines: all
// generated for the plan.
#pragma once

extern "C" __global__ void __launch_bounds__(THREADS, 1) vpps_run(const Arguments a) {
  __shared__ Window window;
  __shared__ float scratch[THREADS];
  extern __shared__ float shared[]; // of the matrix routines
  if (a.status[0] != 0)
    return;
  // In shared memory, for segments are indexed by what the script says.
  __shared__ Launch l;
  if (THREAD == 0) {
#pragma unroll
    for (int s = 0; s < SEGMENTS; s++)
      l.segment[s] = a.segment[s];
    l.script = a.script;
    l.status = a.status;
    l.batch = a.batch;
    l.segment[SEG_INPUT] = (float *)(a.script + a.script[HEAD_INPUTS]);
  }
  const u32 *mine = a.script + HEAD_WORDS + blockIdx.x * PROC_WORDS;
  Processor p;
  p.id = blockIdx.x;
  p.rank = mine[PROC_RANK];
  p.group = mine[PROC_GROUP];
  p.scale = 1.0f;
  p.commit = 0;
  const u32 *stream = a.script + mine[PROC_START];
  fetch(window, stream, 0);
  fetch(window, stream, 1);
  fetch(window, stream, 2);
  __syncthreads();
  VPPS_REGISTERS
  VPPS_LOAD
  u32 pc = 0, piece = 0;
  wait_for_copies();
  __syncthreads();
  for (;;) {
    if (pc / PIECE != piece) { // the piece behind is free; the one after next is here
      piece = pc / PIECE;
      __syncthreads();
      fetch(window, stream, piece + 2);
      wait_for_copies();
      __syncthreads();
    }
    const u32 *w = window.words + pc % (PIECES * PIECE);
    u32 op = w[0] & 255u, fn = w[0] >> 8 & 255u, flags = w[0] >> 16;
    if (op == OP_HALT)
      return;
    u32 count = w[1] >> 16;
    if (flags & (FLAG_SYNC | FLAG_PUBLISHED)) {
      __syncthreads();
      if (flags & FLAG_PUBLISHED)
        __threadfence(); // what came before goes out before what is polled
    }
#ifdef VPPS_CHECK
    Refusal refusal;
    check(l, p, w, shapes, SHAPES, refusal);
    if (refusal.code)
      give_up(a, refusal.code, pc, refusal.item, refusal.operand, refusal.segment, refusal.first,
              refusal.last);
    if (__syncthreads_or(refusal.code))
      return;
#endif
    switch (op) {
    case OP_SIGNAL:
      __syncthreads();
      if (THREAD == 0)
        add_release(a.script + a.script[HEAD_COUNTERS] + w[SIGNAL_BARRIER] * BARRIER_STRIDE);
      break;
    case OP_WAIT:
      if (!wait(a, w, pc))
        return;
      break;
    case OP_POLL:
      if (!poll(a, l, p, w, flags, count, pc))
        return;
      break;
    case OP_FILL:
      fill(l, p, w, flags, count);
      break;
    case OP_MAP:
      map(l, p, w, fn, flags, count);
      break;
    case OP_STRIDED:
      strided(l, w, fn, flags, count);
      break;
    case OP_SUM:
      sum(l, p, w, flags, count, scratch);
      break;
    case OP_PRODUCT: {
      VPPS_PRODUCT
      break;
    }
    case OP_PRODUCT_T: {
      VPPS_PRODUCT_T
      break;
    }
    case OP_OUTER: {
      VPPS_OUTER
      break;
    }
    case OP_GEMM:
      gemm(l, w, flags, count);
      break;
    case OP_ROW:
      row(l, w, fn, flags, count);
      break;
    case OP_RANDOM:
      random(l, p, w, fn, flags, count);
      break;
    case OP_NORM:
      norm(l, w, flags, count, scratch);
      break;
    case OP_CLIP:
      __syncthreads();
      clip(l, p, w, flags);
      break;
    case OP_UPDATE:
      update(l, p, w, fn, flags, count);
      break;
    default:
      if (THREAD == 0)
        give_up(a, STOPPED_NO_INSTRUCTION, pc, 0, 0, 0);
      return;
    }
    pc += w[1] & 0xFFFFu;
  }
}
