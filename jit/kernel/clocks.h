// Where a processor's time goes: a build with clocks (VPPS_CLOCKS=1) notes, by phase and opcode,
// how long instructions take and how many there are, and what is read of the parameters. What a
// record holds is in persist/isa/clocks.go; Go sums the records.
//
// On a GPU thread 0 looks at the clock. The time until the others have met it counts for the
// instruction that they meet after.
#pragma once

#if defined(VPPS_GPU) && !defined(VPPS_CLOCKS)
// No clocks: nothing is left of this.
struct Clocks {
  VP_MEMBER void start(u64 *, u64 *) {}
  VP_MEMBER void resume(u64 *, u64 *) {}
  VP_MEMBER void loaded(u32) {}
  VP_MEMBER void streamed(u32) {}
  VP_MEMBER void started() {}
  VP_MEMBER void fetched() {}
  VP_MEMBER void begin(const u32 *) {}
  VP_MEMBER void end(const Processor &, const u32 *, bool) {}
  VP_MEMBER void stop() {}
};
#else
#ifdef VPPS_GPU
VP u64 ticks() { return (u64)clock64(); }
#else
VP u64 clock_ns() { return vpps_cpu_ns(); }
#if defined(__x86_64__)
VP u64 ticks() { return __builtin_ia32_rdtsc(); }
#else
VP u64 ticks() {
  u64 t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
}
#endif
#endif

// Floats of segment param that an instruction reads, again for each use; matrices' rows in
// registers and biases are not among them.
VP u64 streamed_by(const u32 *w) {
  u32 fn = w[0] >> 8 & 255u, count = w[1] >> 16, slots = 0;
  u64 n = count;
  switch (w[0] & 255u) {
  case OP_MAP:
    slots = arity(fn), n *= w[MAP_N];
    break;
  case OP_STRIDED: {
    Axes x = axes_of(w, fn);
    slots = arity(fn);
    for (u32 a = 0; a < x.all; a++)
      n *= x.sizes[a];
    break;
  }
  case OP_CHAIN: {
    u64 vectors = 0;
    for (u32 s = 0; s < fn; s++)
      vectors += (ChainWords(w).kind(s) & ~(u32)CHAIN_WRITTEN) == (CHAIN_READ | SEG_PARAM);
    return vectors * n * w[CHAIN_N];
  }
  case OP_SUM:
    slots = 1, n = (u64)Sources(w, count).count * w[SUM_N];
    break;
  case OP_GEMM:
    slots = 2, n *= (u64)w[GEMM_M] * w[GEMM_N] * w[GEMM_K];
    break;
  }
  u64 all = 0;
  for (u32 s = 1; s <= slots; s++)
    if ((w[2] >> (4 * s) & 15u) == SEG_PARAM)
      all += n;
  return all;
}

VP u64 updated_by(const u32 *w) {
  u32 count = w[1] >> 16, words = rule_words(w[0] >> 8 & 255u);
  u64 n = 0;
  if ((w[UPDATE_SEGMENTS] & 15u) == SEG_PARAM)
    for (u32 k = 0; k < count; k++)
      n += w[UPDATE_ITEMS + words * k + 2];
  return n;
}

struct Clocks {
  u64 *record; // 0: none
  u64 *levels; // where levels are noted

  VP_MEMBER bool off() const { return record == 0 || THREAD != 0; }
  VP_MEMBER void note(u32 at) {
    u64 t = ticks();
    record[at] += t - record[CLOCK_LAST];
    record[CLOCK_LAST] = t;
  }
  VP_MEMBER u64 phase() const { return (record[CLOCK_CELL] - CLOCK_CELLS) / OPCODES; }

  VP_MEMBER void resume(u64 *to, u64 *levels_to) { record = to, levels = levels_to; }
  // The record is all zeros, or of a processor that goes on. What comes up to started is the start.
  VP_MEMBER void start(u64 *to, u64 *levels_to) {
    resume(to, levels_to);
    if (off() || record[CLOCK_LAST])
      return;
    record[CLOCK_BEGIN] = clock_ns();
    record[CLOCK_LAST] = ticks();
    record[CLOCK_TICKS] = 0 - record[CLOCK_LAST];
    record[CLOCK_CELL] = CLOCK_CELLS;
  }
  VP_MEMBER void started() {
    if (!off() && record[CLOCK_CELL] == CLOCK_CELLS)
      note(CLOCK_CELLS);
  }
  // Every thread says how many floats of matrices it has taken into registers.
  VP_MEMBER void loaded(u32 floats) {
#ifdef VPPS_GPU
    for (u32 d = 16; d > 0; d /= 2)
      floats += __shfl_xor_sync(0xFFFFFFFFu, floats, d);
    if (THREAD % 32 == 0)
      atomicAdd(record + CLOCK_LOADED, (u64)floats);
#else
    (void)floats;
#endif
  }
  // A product has read so many floats of a matrix from memory.
  VP_MEMBER void streamed(u32 floats) {
    if (!off())
      record[CLOCK_STREAMED] += floats;
  }
  // The next instruction is there. A wait that goes on is not left in between.
  VP_MEMBER void fetched() {
    if (!off())
      note(record[CLOCK_BLOCKED] ? (u32)record[CLOCK_CELL] : (u32)CLOCK_FETCH);
  }
  // The threads have met, as far as it depends on the one before; it begins.
  VP_MEMBER void begin(const u32 *w) {
    if (off())
      return;
    u64 phase = w[0] >> PHASE_SHIFT;
    if (w[0] >> 16 & FLAG_SYNC)
      note((u32)record[CLOCK_CELL]);
    record[CLOCK_CELL] = CLOCK_CELLS + (phase ? phase : this->phase()) * OPCODES + (w[0] & 255u);
  }
  VP_MEMBER void end(const Processor &p, const u32 *w, bool over) {
    if (off())
      return;
    note((u32)record[CLOCK_CELL]);
    record[CLOCK_BLOCKED] = !over;
    if (!over)
      return;
    note_level(w);
    record[CLOCK_COUNTS - CLOCK_CELLS + record[CLOCK_CELL]]++;
    if ((w[0] & 255u) == OP_UPDATE)
      record[CLOCK_UPDATED] += p.commit ? updated_by(w) : 0;
    else
      record[CLOCK_STREAMED] += streamed_by(w);
  }
  // Notes opcodes since the last wait, and with a signal when it was given.
  VP_MEMBER void note_level(const u32 *w) {
    const u64 op = w[0] & 255u;
    if (op == OP_WAIT) {
      record[CLOCK_DONE] = 0;
    } else if (op != OP_SIGNAL) {
      record[CLOCK_DONE] = record[CLOCK_DONE] << 8 | op;
    } else if (record[CLOCK_NOTED] < MOST_LEVELS) {
      u64 *level = levels + LEVEL_WORDS * record[CLOCK_NOTED]++;
      level[0] = w[SIGNAL_BARRIER], level[1] = clock_ns(), level[2] = record[CLOCK_DONE];
    }
  }
  VP_MEMBER void stop() {
    if (!off()) {
      record[CLOCK_TICKS] += ticks();
      record[CLOCK_END] = clock_ns();
    }
  }
};
#endif
