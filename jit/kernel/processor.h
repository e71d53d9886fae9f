// The state of a virtual processor while it interprets its script.
#pragma once

// One launch, the same for all its processors.
struct Launch {
  float *segment[SEGMENTS + 1]; // the last: memory of one processor for an instruction (CPU)
  u32 *script;                  // all words
  u32 *counters;                // in the script: of the barriers, they count up
  u32 *status;                  // [0] nonzero: an earlier batch failed, do nothing
  u32 batch;                    // this launch's number, for the status word
  u32 processors;
};

// One processor. On the CPU it outlives the call: pc is where it resumes.
struct Processor {
  u32 id;
  u32 pc;      // of the next instruction: word of the script (CPU), of its stream (GPU)
  float scale; // of the gradients, decided by Clip
  u32 commit;  // whether Update may write
};

VP float *address(const Launch &l, u32 segments, u32 slot, u32 offset) {
  return l.segment[(segments >> (4 * slot)) & 15u] + offset;
}

// The first two words of an instruction, of which HALT has one.
struct Head {
  u32 first, second;
  VP_MEMBER u32 op() const { return first & 255u; }
  VP_MEMBER u32 fn() const { return first >> 8 & 255u; }
  VP_MEMBER u32 flags() const { return first >> 16; }
  VP_MEMBER u32 length() const { return second & 0xFFFFu; }
  VP_MEMBER u32 count() const { return second >> 16; }
};

// Where in the script the items of an instruction with flag listed are.
VP u32 list_of(const u32 *w) {
  u32 op = w[0] & 255u;
  return w[op == OP_PRODUCT ? PRODUCT_ITEMS : op == OP_PRODUCT_T ? PRODUCT_T_ITEMS : OUTER_ITEMS];
}

// And how many words they are.
VP u32 listed_words(const u32 *w) { return 2 * (w[1] >> 16); }

// An instruction of a matrix, and items of it: two words each.
struct Work {
  const Launch &l;
  const u32 *w, *items;
  u32 flags, count;
  // The same for n of the items, from one on.
  VP_MEMBER Work part(u32 first, u32 n) const { return {l, w, items + 2 * first, flags, n}; }
};

VP u32 *counter(const Launch &l, u32 barrier) { return l.counters + barrier * BARRIER_STRIDE; }
