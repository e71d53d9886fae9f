// Chain: a run of operations like those of Map, over slots whose values stay with the thread. What
// it leaves is what the same operations leave as single maps, bit for bit.
#pragma once

// What stands before the items: w[0]'s function is how many slots there are.
struct ChainWords {
  u32 slots, operations;
  const u32 *kinds, *first, *items; // a byte for each slot; the operations
  VP_MEMBER explicit ChainWords(const u32 *w)
      : slots(w[0] >> 8 & 255u), operations(w[CHAIN_OPERATIONS]), kinds(w + CHAIN_ITEMS),
        first(kinds + (slots + 3) / 4), items(first + CHAIN_OP_WORDS * operations) {}
  VP_MEMBER u32 kind(u32 slot) const { return kinds[slot / 4] >> (8 * (slot % 4)) & 255u; }
};

// The k-th slot of an operation: what is written, then the inputs.
VP u32 chain_slot(u32 operation, u32 k) { return operation >> (8 + 5 * k) & (MAX_SLOTS - 1u); }
VP u32 chain_flags(u32 operation) { return operation >> 28 & 1u ? (u32)FLAG_ACC : 0; }

#ifdef VPPS_GPU
// Warps take pieces of 32 elements, over all items; VPPS_CHAINS warps have memory for their slots.
// A thread reads of it only what it has written itself.
VP_SLOW void chain(const Launch &l, const Processor &, const u32 *w, u32 flags, u32 count,
                   float *shared) {
  if (!(flags & FLAG_SYNC))
    __syncthreads(); // the memory is free
  const ChainWords c(w);
  u32 n = w[CHAIN_N], pieces = (n + 31) / 32, lane = THREAD % 32, step = min(WARPS, VPPS_CHAINS);
  if (THREAD / 32 >= step)
    return;
  float *slots = shared + THREAD / 32 * 32 * MAX_SLOTS + lane;
  u32 end = pieces * count;
  for (u32 k = THREAD / 32; k < end; k += step) {
    u32 e = k / pieces, i = (k - e * pieces) * 32 + lane;
    const u32 *item = c.items + e * c.slots;
    if (i < n)
      for (u32 s = 0; s < c.slots; s++)
        if (c.kind(s) & CHAIN_READ)
          copy_word(slots + 32 * s, l.segment[c.kind(s) & 15u] + item[s] + i);
    commit_copies();
    wait_for_all_copies();
    if (i >= n)
      continue;
    for (u32 o = 0; o < c.operations; o++) {
      const u32 *x = c.first + CHAIN_OP_WORDS * o;
      u32 fn = x[0] & 255u, in = arity(fn);
      float *dst = slots + 32 * chain_slot(x[0], 0), old = -0.0f, v[3];
#pragma unroll
      for (u32 s = 0; s < 3; s++)
        v[s] = s < in ? slots[32 * chain_slot(x[0], s + 1)] : 0.0f;
      if (chain_flags(x[0]))
        old = *dst;
      *dst = canonical(old + apply(fn, v[0], v[1], v[2], 0.0f, FLOAT_OF(x[1]), FLOAT_OF(x[2])));
    }
    for (u32 s = 0; s < c.slots; s++)
      if (c.kind(s) & CHAIN_WRITTEN)
        l.segment[c.kind(s) & 15u][item[s] + i] = slots[32 * s];
  }
}
#else
enum : u32 { CHAIN_BLOCK = 128 }; // elements that all operations are done for before the next ones

// Where the operations find a slot: its vector, if nothing else than its value before or behind the
// chain is kept there, else memory of the processor.
struct ChainPlace {
  u32 segment, offset;
};

// Each operation is a Map over a block. Slots are in their vectors where these may be written or
// need not be.
static void chain(const Launch &launch, const Processor &p, const u32 *w, u32 /*flags*/, u32 count,
                  float * /*shared*/) {
  const ChainWords c(w);
  float own[MAX_SLOTS * CHAIN_BLOCK];
  Launch l = launch;
  l.segment[SEGMENTS] = own;
  u32 results = 0;
  for (u32 k = 0; k < c.operations; k++)
    results |= 1u << chain_slot(c.first[CHAIN_OP_WORDS * k], 0);
  for (u32 e = 0; e < count; e++)
    for (u32 i = 0; i < w[CHAIN_N]; i += CHAIN_BLOCK) {
      const u32 *item = c.items + e * c.slots;
      u32 n = w[CHAIN_N] - i < CHAIN_BLOCK ? w[CHAIN_N] - i : CHAIN_BLOCK;
      ChainPlace at[MAX_SLOTS];
      for (u32 s = 0; s < c.slots; s++) {
        u32 kind = c.kind(s);
        if (kind & CHAIN_WRITTEN || !(results >> s & 1u)) {
          at[s] = {kind & 15u, item[s] + i};
          continue;
        }
        at[s] = {SEGMENTS, s * CHAIN_BLOCK};
        if (kind & CHAIN_READ)
          __builtin_memcpy(own + s * CHAIN_BLOCK, l.segment[kind & 15u] + item[s] + i, 4 * n);
      }
      for (u32 k = 0; k < c.operations; k++) {
        const u32 *o = c.first + CHAIN_OP_WORDS * k;
        u32 fn = o[0] & 255u;
        u32 map_words[MAP_ITEMS + 4] = {OP_MAP, 0, 0, n, o[1], o[2]};
        for (u32 s = 0; s <= arity(fn); s++) {
          const ChainPlace &x = at[chain_slot(o[0], s)];
          map_words[MAP_SEGMENTS] |= x.segment << (4 * s);
          map_words[MAP_ITEMS + s] = x.offset;
        }
        map(l, p, map_words, fn, chain_flags(o[0]), 1);
      }
    }
}
#endif
