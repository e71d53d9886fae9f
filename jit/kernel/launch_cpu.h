// What the CPU's interpreter and its host share: a launch as the processors see it, and what a poll
// waits for.
#pragma once

VP Launch launch_of(const vpps_launch *run) {
  Launch l;
  for (int s = 0; s <= SEGMENTS; s++)
    l.segment[s] = run->segment[s];
  l.script = run->script;
  l.counters = l.script + l.script[HEAD_COUNTERS];
  l.status = run->status;
  l.batch = run->batch;
  l.processors = run->script[HEAD_PROCESSORS];
  return l;
}

// Whether an operand of a Poll still holds the sentinel, and where. Acquires what the others'
// writers had done.
VP bool unwritten(const Launch &l, const Processor &p, const u32 *w, u32 *offset) {
  u32 flags = w[0] >> 16, count = w[1] >> 16;
  Range r = owned(w[POLL_N], flags, p);
  for (u32 k = 0; k < count; k++) {
    const u32 *a = (const u32 *)address(l, w[POLL_SEGMENTS], 0, w[POLL_ITEMS + k]);
    for (u32 i = r.lo; i < r.hi; i++)
      if (__atomic_load_n(a + i, __ATOMIC_ACQUIRE) == SENTINEL) {
        *offset = w[POLL_ITEMS + k] + i;
        return true;
      }
  }
  return false;
}
