// Chain: a run of operations like those of Map, over slots whose values stay with the thread. What
// it leaves is what the same operations leave as single maps, bit for bit.
#pragma once

// The words before the items. The function in w[0] is the number of slots.
struct ChainWords {
  u32 slots, operations;
  const u32 *kinds, *first, *items; // a byte for each slot; the operations
  VP_MEMBER explicit ChainWords(const u32 *w)
      : slots(w[0] >> 8 & 255u), operations(w[CHAIN_OPERATIONS]), kinds(w + CHAIN_ITEMS),
        first(kinds + (slots + 3) / 4), items(first + CHAIN_OP_WORDS * operations) {}
  VP_MEMBER u32 kind(u32 slot) const { return kinds[slot / 4] >> (8 * (slot % 4)) & 255u; }
};

// The k-th slot of an operation: 0 is written, the others are inputs.
VP u32 chain_slot(u32 operation, u32 k) { return operation >> (8 + 5 * k) & (MAX_SLOTS - 1u); }
VP u32 chain_flags(u32 operation) { return operation >> 28 & 1u ? (u32)FLAG_ACC : 0; }

#ifdef VPPS_GPU
// A warp's memory: for a piece of 32 * EACH elements slot s has as many floats from 32 * EACH * s
// on. After them is where the vector of each slot is.
struct ChainMemory {
  float *slots; // aligned to what they take: a slot's address is put together without adding
  float **vector;

  VP_MEMBER ChainMemory(float *shared, u32 warp) {
    constexpr u32 SIZE = 4 * 32 * MAX_SLOTS;
    u32 at = (u32)__cvta_generic_to_shared(shared), skip = (SIZE - at % SIZE) % SIZE;
    float *first = shared + skip / 4;
    slots = first + warp * (SIZE / 4);
    vector = (float **)(first + VPPS_CHAINS * (SIZE / 4)) + warp * MAX_SLOTS;
  }
};

// A piece, of which a lane computes EACH elements, 1 or 4. Lanes move runs of 4 elements, 8 * EACH
// lanes those of one slot: in turn k slots 4 / EACH * k and so on.
template <u32 EACH> struct ChainPiece {
  enum : u32 { TURNS = MAX_SLOTS / 4, LANES_OF_SLOT = 8 * EACH, SLOTS_OF_TURN = 4 / EACH };
  const ChainMemory &m;
  u32 element, left; // the first of the lane's runs, and how many there are from it on
  u32 group;         // the lane's slot in turn 0

  VP_MEMBER ChainPiece(const ChainMemory &m, u32 first, u32 n)
      : m(m), element(first + THREAD % LANES_OF_SLOT * 4), left(element < n ? n - element : 0),
        group(THREAD % 32 / LANES_OF_SLOT) {}
  VP_MEMBER float *run(u32 k) const { return m.slots + 4 * (THREAD % 32) + 128 * k; }
  VP_MEMBER float *vector(u32 k) const { return m.vector[SLOTS_OF_TURN * k + group] + element; }

  // Of the slots of a bit mask, each 16 bytes if they are aligned and there are so many.
  VP_MEMBER void load(u32 mask, bool aligned) const {
    u32 mine = mask >> group;
    if (aligned && left >= 4) {
      float *x[TURNS];
#pragma unroll
      for (u32 k = 0; k < TURNS; k++)
        x[k] = vector(k);
#pragma unroll
      for (u32 k = 0; k < TURNS; k++)
        if (mine >> SLOTS_OF_TURN * k & 1u)
          copy_async((u32 *)run(k), (const u32 *)x[k]);
    } else
#pragma unroll 1
      for (u32 k = 0; k < TURNS; k++)
#pragma unroll 1
        for (u32 i = 0; mine >> SLOTS_OF_TURN * k & 1u && i < 4 && i < left; i++)
          copy_word(run(k) + i, vector(k) + i);
    commit_copies();
    wait_for_all_copies();
    __syncwarp();
  }
  VP_MEMBER void store(u32 mask, bool aligned) const {
    u32 mine = mask >> group;
    __syncwarp();
    if (aligned && left >= 4) {
#pragma unroll
      for (u32 k = 0; k < TURNS; k++)
        if (mine >> SLOTS_OF_TURN * k & 1u)
          *(float4 *)vector(k) = *(const float4 *)run(k);
    } else
#pragma unroll 1
      for (u32 k = 0; k < TURNS; k++)
#pragma unroll 1
        for (u32 i = 0; mine >> SLOTS_OF_TURN * k & 1u && i < 4 && i < left; i++)
          vector(k)[i] = run(k)[i];
    __syncwarp();
  }
};

// Where the k-th slot of an operation is, of a lane whose slot 0 is at mine.
template <u32 EACH> VP u32 chain_place(u32 mine, u32 operation, u32 k) {
  const u32 slot = EACH == 1 ? operation >> (1 + 5 * k) : chain_slot(operation, k) << 7;
  return mine | (slot & 128 * (MAX_SLOTS - 1u)) * EACH;
}

// The operations on the element of a lane, whose slot 0 is at mine. An operation's first word is
// fetched while the one before is computed; that behind the last is an item's.
VP void chain_operations(const u32 *w, u32 operations, u32 mine) {
  u32 word = w[0];
#pragma unroll 1
  for (; operations > 0; operations--) {
    u32 to = chain_place<1>(mine, word, 0);
    float a = load_shared_word(chain_place<1>(mine, word, 1)); // none: of slot 0
    float b = load_shared_word(chain_place<1>(mine, word, 2));
    float c = load_shared_word(chain_place<1>(mine, word, 3));
    float old = load_shared_word(to), p = FLOAT_OF(w[1]), q = FLOAT_OF(w[2]);
    u32 fn = same(word & 255u);
    old = chain_flags(word) ? old : -0.0f;
    w += CHAIN_OP_WORDS;
    word = w[0];
    if (found<SELDOM>(fn)) { // what was loaded is loaded again, so that registers are free
      const float v = apply_seldom(fn, a, b, c, 0.0f, p, q);
      const u32 again = *(w - CHAIN_OP_WORDS);
      to = chain_place<1>(mine, again, 0);
      old = chain_flags(again) ? load_shared_word(to) : -0.0f;
      store_shared_word(to, canonical(old + v));
      word = w[0];
      continue;
    }
    store_shared_word(to, canonical(old + apply(fn, a, b, c, 0.0f, p, q)));
  }
}

// The same on four elements of a lane.
VP void chain_operations_on_four(const u32 *w, u32 operations, u32 mine) {
#pragma unroll 1
  for (; operations > 0; operations--, w += CHAIN_OP_WORDS) {
    const u32 word = w[0], to = chain_place<4>(mine, word, 0);
    float x[3][4], v[4][3], old[4];
    UNROLL
    for (u32 s = 0; s < 3; s++)
      load_shared_four(x[s], chain_place<4>(mine, word, s + 1));
    load_shared_four(old, to);
    UNROLL
    for (u32 j = 0; j < 4; j++)
      v[j][0] = x[0][j], v[j][1] = x[1][j], v[j][2] = x[2][j];
    apply_run<4>(same(word & 255u), v, FLOAT_OF(w[1]), FLOAT_OF(w[2]));
    UNROLL
    for (u32 j = 0; j < 4; j++)
      old[j] = canonical((chain_flags(word) ? old[j] : -0.0f) + v[j][0]);
    store_shared_four(to, old);
  }
}

// Warps take pieces of 32 * EACH elements, over all items.
template <u32 EACH>
VP_SLOW void chain_pieces(const Launch &l, const u32 *w, u32 count, float *shared) {
  const ChainWords c(w);
  u32 lane = THREAD % 32, slot = lane < c.slots ? lane : 0, kind = c.kind(slot),
      n = same(w[CHAIN_N]);
  u32 warp = same(THREAD / 32), first = warp * 32 * EACH;
  const ChainMemory m(shared, warp);
  const float *base = l.segment[kind & 15u];
  bool reads = lane < c.slots && kind & CHAIN_READ, writes = lane < c.slots && kind & CHAIN_WRITTEN;
  u32 read = __ballot_sync(0xFFFFFFFFu, reads), written = __ballot_sync(0xFFFFFFFFu, writes);
  const u32 *item = c.items;
#pragma unroll 1
  for (;;) {
    while (first >= n && count > 0) {
      first -= (n + 32 * EACH - 1) / (32 * EACH) * (32 * EACH);
      item += c.slots;
      count--;
    }
    if (count == 0)
      return;
    float *x = (float *)base + item[slot];
    m.vector[lane] = x;
    bool odd = (reads || writes) && (u64)x % 16 != 0;
    bool aligned = !__any_sync(0xFFFFFFFFu, odd);
    const ChainPiece<EACH> piece(m, first, n);
    __syncwarp();
    piece.load(read, aligned);
    const u32 mine = (u32)__cvta_generic_to_shared(m.slots + EACH * lane);
    if (EACH == 1)
      chain_operations(c.first, c.operations, mine);
    else
      chain_operations_on_four(c.first, c.operations, mine);
    piece.store(written, aligned);
    first += 32 * EACH * min(WARPS, VPPS_CHAINS);
  }
}

// VPPS_CHAINS warps have memory for their slots. A lane has four elements if there are enough of
// them and the slots have room: then less time is spent waiting.
VP void chain(const Launch &l, const u32 *w, u32 flags, u32 count, float *shared) {
  const u32 slots = w[0] >> 8 & 255u, pieces = (w[CHAIN_N] + 31) / 32 * count;
  if (!(flags & FLAG_SYNC))
    __syncthreads(); // the memory is free
  if (THREAD / 32 >= VPPS_CHAINS)
    return;
  if (slots <= MAX_SLOTS / 4 && pieces >= 4 * WARPS)
    chain_pieces<4>(l, w, count, shared);
  else
    chain_pieces<1>(l, w, count, shared);
}
#else
enum : u32 { CHAIN_BLOCK = 1024 }; // elements that all operations are done for before the next ones

// A block of a chain: elements first to first + n of some items.
struct ChainBlock {
  const ChainWords &c;
  u32 item, items, first, n;
  u32 own; // slots that are in memory of the processor; the others are in their vectors

  VP_MEMBER u32 segment(u32 slot) const { return own >> slot & 1u ? SEGMENTS : c.kind(slot) & 15u; }
  VP_MEMBER u32 vector(u32 e, u32 slot) const {
    return c.items[(item + e) * c.slots + slot] + first;
  }
  VP_MEMBER u32 offset(u32 e, u32 slot) const {
    return own >> slot & 1u ? slot * CHAIN_BLOCK + e * n : vector(e, slot);
  }
  // Copies the vectors of the slots that are read.
  VP_MEMBER void load(const Launch &l) const {
    for (u32 s = 0; s < c.slots; s++)
      if (own >> s & 1u && c.kind(s) & CHAIN_READ)
        for (u32 e = 0; e < items; e++)
          __builtin_memcpy(l.segment[SEGMENTS] + offset(e, s),
                           l.segment[c.kind(s) & 15u] + vector(e, s), 4 * n);
  }
  // An operation is a Map.
  VP_MEMBER void operate(const Launch &l, const u32 *o) const {
    u32 fn = o[0] & 255u, in = arity(fn), words[MAP_ITEMS + 4 * CHAIN_BLOCK];
    words[MAP_N] = n;
    words[MAP_P] = o[1];
    words[MAP_Q] = o[2];
    words[MAP_SEGMENTS] = 0;
    for (u32 k = 0; k <= in; k++) {
      u32 slot = chain_slot(o[0], k);
      words[MAP_SEGMENTS] |= segment(slot) << (4 * k);
      for (u32 e = 0; e < items; e++)
        words[MAP_ITEMS + e * (in + 1) + k] = offset(e, slot);
    }
    map(l, words, fn, chain_flags(o[0]), items);
  }
};

static void chain(const Launch &launch, const u32 *w, u32 /*flags*/, u32 count,
                  float * /*shared*/) {
  const ChainWords c(w);
  float memory[MAX_SLOTS * CHAIN_BLOCK];
  Launch l = launch;
  l.segment[SEGMENTS] = memory;
  u32 own = 0, n = w[CHAIN_N], together = n > 0 && n < CHAIN_BLOCK ? CHAIN_BLOCK / n : 1;
  for (u32 k = 0; k < c.operations; k++) { // a vector that is not stored stays as it is
    u32 result = chain_slot(c.first[CHAIN_OP_WORDS * k], 0);
    if (!(c.kind(result) & CHAIN_WRITTEN))
      own |= 1u << result;
  }
  for (u32 e = 0; e < count; e += together)
    for (u32 i = 0; i < n; i += CHAIN_BLOCK) {
      const ChainBlock b = {c,
                            e,
                            count - e < together ? count - e : together,
                            i,
                            n - i < CHAIN_BLOCK ? n - i : CHAIN_BLOCK,
                            own};
      b.load(l);
      for (u32 k = 0; k < c.operations; k++)
        b.operate(l, c.first + CHAIN_OP_WORDS * k);
    }
}
#endif
