// The CPU's interpreter: steps a processor until it halts or meets an unsatisfied wait, so
// that any number of processors runs on any number of threads. Included once per
// instruction set level, in a namespace of its own.
#pragma once

#include "device.h"
#include "isa.h"
#include "math.h"
#include "formulas.h"
#include "philox.h"
#include "processor.h"
#include "elementwise.h"
#include "rows.h"
#include "random.h"
#include "gemm.h"
#include "update.h"
// Matrix routines may contract to FMA, the formulas above may not.
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#include "matrix_cpu.h"
#pragma GCC pop_options

enum Step { MOVED, BLOCKED, HALTED, BAD };

VP u32 *counter(const Launch &l, u32 barrier) {
  return l.script + l.script[HEAD_COUNTERS] + barrier * BARRIER_STRIDE;
}

VP bool written(const Launch &l, const Processor &p, const u32 *w, u32 flags, u32 count) {
  Range r = owned(w[POLL_N], flags, p);
  for (u32 k = 0; k < count; k++) {
    const u32 *a = (const u32 *)address(l, w[POLL_SEGMENTS], 0, w[POLL_ITEMS + k]);
    for (u32 i = r.lo; i < r.hi; i++)
      if (__atomic_load_n(a + i, __ATOMIC_RELAXED) == SENTINEL)
        return false;
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return true;
}

// Executes the instruction at p.pc.
VP Step step(const Launch &l, const vpps_residency &res, Processor &p) {
  const u32 *w = l.script + p.pc;
  u32 op = w[0] & 255u, fn = w[0] >> 8 & 255u, flags = w[0] >> 16;
  if (op == OP_HALT)
    return HALTED;
  u32 length = w[1] & 0xFFFFu, count = w[1] >> 16;
  switch (op) {
  case OP_SIGNAL:
    __atomic_fetch_add(counter(l, w[SIGNAL_BARRIER]), 1u, __ATOMIC_RELEASE);
    break;
  case OP_WAIT:
    if (__atomic_load_n(counter(l, w[WAIT_BARRIER]), __ATOMIC_ACQUIRE) < w[WAIT_EXPECTED])
      return BLOCKED;
    break;
  case OP_POLL:
    if (!written(l, p, w, flags, count))
      return BLOCKED;
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
    sum(l, p, w, flags, count);
    break;
  case OP_PRODUCT:
    product(l, res, p, w, flags, count);
    break;
  case OP_PRODUCT_T:
    product_t(l, res, p, w, flags, count);
    break;
  case OP_OUTER:
    outer(l, res, p, w, flags, count);
    break;
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
    norm(l, w, flags, count);
    break;
  case OP_CLIP:
    clip(l, p, w, flags);
    break;
  case OP_UPDATE:
    update(l, p, w, count);
    break;
  default:
    return BAD;
  }
  p.pc += length;
  return MOVED;
}

// One pass over a thread's processors. Returns how many have not halted.
static u32 pass(vpps_launch *run, u32 thread, u32 threads, bool *moved) {
  Launch l;
  for (int s = 0; s < SEGMENTS; s++)
    l.segment[s] = run->segment[s];
  l.script = run->script;
  l.status = run->status;
  l.batch = run->batch;
  l.processors = run->script[HEAD_PROCESSORS];
  Processor *all = (Processor *)run->processors;
  u32 live = 0;
  for (u32 i = thread; i < l.processors; i += threads) {
    Processor &p = all[i];
    if (p.pc == 0)
      continue; // halted
    Step s;
    while ((s = step(l, *run->residency, p)) == MOVED)
      *moved = true;
    if (s == HALTED) {
      p.pc = 0;
      *moved = true;
      continue;
    }
    live++;
    if (s == BAD) {
      run->error = VPPS_RUN_BAD_OPCODE;
      run->error_processor = i;
      run->error_word = p.pc;
      __atomic_store_n(&run->stop, 1u, __ATOMIC_RELEASE);
      return live;
    }
  }
  return live;
}
