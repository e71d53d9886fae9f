// The kernel's entry. A checking build has VPPS_CHECK, one with clocks VPPS_CLOCKS; VPPS_CHAINS is
// how many warps have memory for a chain's slots. Struct Matrices is generated for the plan
// (jit/source.go): the register arrays, and calls of the matrix routines.
#pragma once

// The interpreter's device. M: Matrices, or NoMatrices where there are no more products.
template <class M> struct Device {
  const Arguments &a;
  Window &window;
  float *scratch, *shared; // shared: of chains and the matrix routines
  u32 piece;               // of the stream, which is being interpreted
  u32 list;                // the list fetched last: 2 * its instruction's pc + which of the buffers
  bool arrived;            // nothing is on its way that was asked for before this instruction
  Clocks clocks;
  BulkCopies bulk;
  M matrices;

  VP_MEMBER Device(const Arguments &a, Window &window, float *scratch, float *shared,
                   const BulkCopies &bulk)
      : a(a), window(window), scratch(scratch), shared(shared), piece(0), list(~0u), arrived(false),
        bulk(bulk) {}

  VP_MEMBER void load(const Launch &l) { matrices.load(l, shared, clocks); }
  VP_MEMBER void resident_product(const Work &work, const Processor &) {
    matrices.product(work, bulk, shared, clocks);
  }
  VP_MEMBER void resident_product_t(const Work &work, const Processor &) {
    matrices.product_t(work, shared, clocks);
  }
  VP_MEMBER void resident_outer(const Work &work, const Processor &) { outer(work, shared); }

  VP_MEMBER const u32 *instruction(const Launch &, u32 pc) {
    arrived = pc / PIECE != piece;
    if (arrived) { // so has the piece after this one; the one behind is free when all are here
      piece = pc / PIECE;
      wait_for_all_copies();
      __syncthreads();
      fetch(window, piece + 2);
    }
    return window.words + pc % (PIECES * PIECE);
  }
  VP_MEMBER Head head(const u32 *w) const { return {same(w[0]), same(w[1])}; }
  // Fetches the list of the instruction at pc, if it has one; what comes before it is short, so its
  // first words are here. The buffer is free: its last reader came before the latest listed
  // instruction, where threads met.
  VP_MEMBER void ahead(u32 pc) {
    const u32 *w = window.words + pc % (PIECES * PIECE);
    if (w[0] >> 16 & FLAG_LISTED)
      take_list(pc, w);
  }
  VP_MEMBER void take_list(u32 pc, const u32 *w) {
    u32 from = list_of(w), words = listed_words(w);
#ifdef VPPS_CHECK
    if (!in_lists(a.script, from, words))
      words = 0; // check will refuse it
#endif
    list = 2 * pc + (~list & 1);
    fetch_list(window.lists[list & 1], a.script, from, words);
  }
  VP_MEMBER bool held(const Head &) const { return false; }
  // Lists are fetched while the instruction before them waits, or, behind another list, works.
  VP_MEMBER void begin(const Processor &p, const u32 *w, const Head &head) {
    u32 flags = head.flags();
    if (flags & FLAG_LISTED) {
      if (list / 2 != p.pc) {
        take_list(p.pc, w);
        arrived = false;
      }
      if (!arrived)
        wait_for_all_copies();
    }
    if (flags & (FLAG_SYNC | FLAG_LISTED))
      __syncthreads();
    if (flags & FLAG_LISTED)
      ahead(p.pc + head.length());
  }
  VP_MEMBER const u32 *items(const Launch &, const Processor &p, const u32 *w, u32 head) const {
    if (!(w[0] >> 16 & FLAG_LISTED))
      return w + head;
    return window.lists[list / 2 == p.pc ? list & 1 : ~list & 1] + list_of(w) % 4;
  }
#ifdef VPPS_CHECK
  VP_MEMBER u32 place(const u32 *w) const {
    return (w[0] & 255u) == OP_PRODUCT_T ? matrices.place(w) : 0;
  }
#endif
  VP_MEMBER bool sound(const Launch &l, const Processor &p, const u32 *w) const {
#ifdef VPPS_CHECK
    Refusal refusal;
    check(l, w, items(l, p, w, 0), shapes, SHAPES, place(w), refusal);
    if (refusal.code)
      give_up(a, refusal.code, p.pc, refusal.item, refusal.operand, refusal.segment, refusal.first,
              refusal.last);
    return !__syncthreads_or(refusal.code);
#else
    return true;
#endif
  }
  VP_MEMBER void refuse(const Processor &p) const {
    if (THREAD == 0)
      give_up(a, STOPPED_NO_INSTRUCTION, p.pc, 0, 0, 0);
  }

  VP_MEMBER void signal(const Launch &l, const u32 *w) const {
    __syncthreads();
    if (THREAD == 0)
      add_release(counter(l, w[SIGNAL_BARRIER]));
  }
  VP_MEMBER Step wait(const Launch &l, const Processor &p, const u32 *w) {
    ahead(p.pc + WAIT_ITEMS);
    return wait_for(a, l, w, p.pc) ? MOVED : STOPPED;
  }
};

// In the second half there are no products: no such instruction gets here.
struct NoMatrices {
  VP_MEMBER void product(const Work &, const BulkCopies &, float *, Clocks &) {}
  VP_MEMBER void product_t(const Work &, float *, Clocks &) {}
  VP_MEMBER u32 place(const u32 *) const { return 0; }
};

// The script's second half, from an instruction on, by another interpreter: the registers of the
// matrices are free here.
VP_SLOW Step form_gradients(const Arguments &a, Window &window, float *scratch, float *shared,
                            BulkCopies::Shared &copies, const Launch &l, Processor p, u32 list,
                            u64 *record, u64 *levels) {
  Device<NoMatrices> d(a, window, scratch, shared, BulkCopies(copies, true));
  d.piece = p.pc / PIECE, d.list = list;
  d.clocks.resume(record, levels);
  return interpret<GRADIENTS>(d, l, p);
}

extern "C" __global__ void VPPS_BOUNDS vpps_run(const Arguments a) {
  __shared__ Window window;
  __shared__ __align__(16) float scratch[4 * THREADS];
  __shared__ BulkCopies::Shared copies;
  extern __shared__ __align__(16) float shared[];
  if (a.status[0] != 0)
    return;
  // In shared memory, for segments are indexed by what the script says.
  __shared__ Launch l;
  __shared__ Arguments arguments;
  if (THREAD == 0) {
    arguments = a;
#pragma unroll
    for (int s = 0; s < SEGMENTS; s++)
      l.segment[s] = a.segment[s];
    l.script = a.script;
    l.counters = a.script + a.script[HEAD_COUNTERS]; // once: each wait empties the cache
    l.status = a.status;
    l.batch = a.batch;
    l.segment[SEG_INPUT] = (float *)(a.script + a.script[HEAD_INPUTS]);
    window.stream = a.script + a.script[HEAD_WORDS + blockIdx.x * PROC_WORDS + PROC_START];
  }
  __syncthreads();
  Device<Matrices> d(a, window, scratch, shared, BulkCopies(copies));
  u64 *record = 0, *levels = 0;
#ifdef VPPS_CLOCKS
  __shared__ u64 records[CLOCK_LEVELS];
  u64 *left = a.clocks + (u64)blockIdx.x * CLOCK_WORDS;
  record = records, levels = left + CLOCK_LEVELS;
  for (u32 i = THREAD; i < CLOCK_LEVELS; i += THREADS)
    record[i] = 0;
  __syncthreads();
  d.clocks.start(record, levels);
#endif
  Processor p;
  p.id = blockIdx.x;
  p.pc = 0;
  p.scale = 1.0f;
  p.commit = 0;
  fetch(window, 0);
  fetch(window, 1);
  fetch(window, 2);
  __syncthreads();
  d.load(l);
  wait_for_all_copies();
  __syncthreads();
  d.clocks.started();
  Step last = interpret<PRODUCTS>(d, l, p);
  __syncthreads(); // else the compiler would note for each instruction where threads go on together
  if (last == MULTIPLIED)
    last = form_gradients(arguments, window, scratch, shared, copies, l, p, d.list, record, levels);
#ifdef VPPS_CLOCKS
  d.clocks.stop();
  __syncthreads();
  for (u32 i = THREAD; i < CLOCK_LEVELS && last == HALTED; i += THREADS)
    left[i] = record[i];
#else
  (void)last;
#endif
}
