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
#include "check.h"
#include "launch_cpu.h"
// Matrix routines may contract to FMA, the formulas above may not.
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#include "matrix_cpu.h"
#pragma GCC pop_options

enum Step { MOVED, BLOCKED, HALTED, STOPPED };

VP u32 *counter(const Launch &l, u32 barrier) {
  return l.script + l.script[HEAD_COUNTERS] + barrier * BARRIER_STRIDE;
}

// Executes an instruction with operands. False: there is no such instruction.
VP bool execute(const Launch &l, const vpps_residency &res, Processor &p, const u32 *w) {
  u32 op = w[0] & 255u, fn = w[0] >> 8 & 255u, flags = w[0] >> 16, count = w[1] >> 16;
  switch (op) {
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
    update(l, p, w, fn, flags, count);
    break;
  default:
    return false;
  }
  return true;
}

#include "publish_cpu.h"

// Goes one instruction on from p.pc; refusal says why not, where the launch has to stop.
VP Step step(const Launch &l, const vpps_launch &run, Processor &p, Refusal &refusal) {
  const u32 *w = l.script + p.pc;
  u32 op = w[0] & 255u, flags = w[0] >> 16;
  if (op == OP_HALT)
    return HALTED;
  if (run.check) {
    check(l, p, w, (const Shape *)run.residency->matrix, run.residency->matrices, refusal);
    if (refusal.code)
      return STOPPED;
  }
  switch (op) {
  case OP_SIGNAL:
    __atomic_fetch_add(counter(l, w[SIGNAL_BARRIER]), 1u, __ATOMIC_RELEASE);
    break;
  case OP_WAIT:
    if (__atomic_load_n(counter(l, w[WAIT_BARRIER]), __ATOMIC_ACQUIRE) < w[WAIT_EXPECTED])
      return BLOCKED;
    break;
  case OP_POLL: {
    u32 offset;
    if (unwritten(l, p, w, &offset))
      return BLOCKED;
    break;
  }
  default:
    if (!(flags & FLAG_PUBLISHED ? publish(l, *run.residency, p, w)
                                 : execute(l, *run.residency, p, w))) {
      refusal.code = STOPPED_NO_INSTRUCTION;
      return STOPPED;
    }
  }
  p.pc += w[1] & 0xFFFFu;
  return MOVED;
}

// One pass over a thread's processors. Returns how many have not halted.
static u32 pass(vpps_launch *run, u32 thread, u32 threads, bool *moved) {
  const Launch l = launch_of(run);
  Processor *all = (Processor *)run->processors;
  u32 live = 0;
  for (u32 i = thread; i < l.processors; i += threads) {
    Processor &p = all[i];
    if (p.pc == 0)
      continue; // halted
    Step s;
    Refusal refusal = {};
    while ((s = step(l, *run, p, refusal)) == MOVED)
      *moved = true;
    if (s == HALTED) {
      p.pc = 0;
      *moved = true;
      continue;
    }
    live++;
    if (s == STOPPED) {
      vpps_cpu_give_up(run, refusal.code, i, p.pc, &refusal.item);
      return live;
    }
  }
  return live;
}
