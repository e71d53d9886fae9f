// The CPU's interpreter: steps a processor until it halts or meets an unsatisfied wait, so
// that any number of processors runs on any number of threads. Included once per
// instruction set level, in a namespace of its own. Compiled with fp-contract=off, so that both
// devices give the same bits, and with no-trapping-math: else selects become branches, and below
// AVX-512 loops over tanh, the logistic function or e^x go element by element, 5 times as slow.
#pragma once

#include "device.h"
#include "isa.h"
#include "math.h"
#include "special.h"
#include "formulas.h"
#include "philox.h"
#include "processor.h"
#include "vector_cpu.h"
#include "elementwise.h"
#include "team.h"
#include "strided.h"
#include "strided_cpu.h"
#include "sum.h"
#include "chain.h"
#include "rows.h"
#include "random.h"
#include "update.h"
#include "check.h"
#include "clocks.h"
#include "launch_cpu.h"
// Matrix routines may contract to FMA, the formulas above may not.
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#include "panels_cpu.h"
#include "matrix_cpu.h"
#include "outer_cpu.h"
#include "gemm_cpu.h"
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC pop_options
#endif
#include "interpreter.h"

// The interpreter's device. Refusal says why a launch has to stop.
struct Device {
  const vpps_launch &run;
  Refusal refusal;
  float *scratch, *shared; // nothing: a processor is one thread
  Clocks clocks;

  VP_MEMBER const u32 *instruction(const Launch &l, u32 pc) const { return l.script + pc; }
  VP_MEMBER Head head(const u32 *w) const { return {w[0], w[0] ? w[1] : 0}; }
  VP_MEMBER bool held(const Head &head) const { return run.hold && head.op() == OP_UPDATE; }
  VP_MEMBER void begin(const Processor &, const u32 *, const Head &) const {}
  VP_MEMBER const u32 *items(const Launch &l, const Processor &, const u32 *w, u32 head) const {
    return w[0] >> 16 & FLAG_LISTED ? l.script + list_of(w) : w + head;
  }
  // Where another thread has given up this one ends, too, with the instruction before.
  VP_MEMBER bool sound(const Launch &l, const Processor &p, const u32 *w) {
    if (__atomic_load_n(&run.stop, __ATOMIC_RELAXED))
      return false;
    if (!run.check)
      return true;
    check(l, w, items(l, p, w, 0), (const Shape *)run.residency->matrix, run.residency->matrices,
          results_of(*run.residency, p, w), refusal);
    return refusal.code == STOPPED_NONE;
  }
  VP_MEMBER void refuse(const Processor &) { refusal.code = STOPPED_NO_INSTRUCTION; }

  VP_MEMBER void signal(const Launch &l, const u32 *w) const {
    __atomic_fetch_add(counter(l, w[SIGNAL_BARRIER]), 1u, __ATOMIC_RELEASE);
  }
  VP_MEMBER Step wait(const Launch &l, const Processor &, const u32 *w) const {
    u32 have = __atomic_load_n(counter(l, w[WAIT_BARRIER]), __ATOMIC_ACQUIRE);
    return have < w[WAIT_EXPECTED] ? BLOCKED : MOVED;
  }

  VP_MEMBER void resident_product(const Work &work, const Processor &p) const {
    product(work, *run.residency, p);
  }
  VP_MEMBER void resident_product_t(const Work &work, const Processor &p) const {
    product_t(work, *run.residency, p);
  }
  VP_MEMBER void resident_outer(const Work &work, const Processor &p) const {
    outer(work, *run.residency, p);
  }
};

// One pass over a thread's processors. Returns how many have not halted and are not held.
static u32 pass(vpps_launch *run, u32 thread, u32 threads, bool *moved) {
  const Launch l = launch_of(run);
  Processor *all = (Processor *)run->processors;
  u32 live = 0;
  for (u32 i = thread; i < l.processors; i += threads) {
    Processor &p = all[i];
    if (p.pc == 0)
      continue; // halted
    u64 *record = run->clocks ? (u64 *)run->clocks + (u64)i * CLOCK_WORDS : 0;
    Device d = {*run, {}, 0, 0, {}};
    u32 from = p.pc;
    d.clocks.start(record, record ? record + CLOCK_LEVELS : 0);
    d.clocks.started();
    Step s = interpret<BOTH>(d, l, p);
    *moved |= p.pc != from;
    if (s == HALTED) {
      d.clocks.stop();
      p.pc = 0;
      *moved = true;
      continue;
    }
    if (s == HELD)
      continue;
    live++;
    if (s == STOPPED) {
      vpps_cpu_give_up(run, d.refusal.code, i, p.pc, &d.refusal.item);
      return live;
    }
  }
  return live;
}
