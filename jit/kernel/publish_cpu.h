// A published result on the CPU: the instruction runs item by item into memory of its own, and each
// element goes from there to where others poll it with a releasing store. Whoever sees
// it sees all that was done before.
#pragma once

// Where the private copy of the instruction writes.
#define SEG_PRIVATE SEGMENTS

VP void release_stores(float *to, const float *from, u32 lo, u32 hi) {
  for (u32 i = lo; i < hi; i++)
    __atomic_store_n((u32 *)to + i, BITS_OF(from[i]), __ATOMIC_RELEASE);
}

// Runs one item of the instruction and publishes its n elements, of which those of the processor's
// rows, if it is a product.
template <class Device>
static void publish_item(Device &d, Launch &l, const vpps_residency &res, Processor &p,
                         const u32 *w, u32 head, u32 words, const u32 *item, float *to, u32 n) {
  u32 own[32];
  float *mine = l.segment[SEG_PRIVATE];
  for (u32 i = 0; i < head; i++)
    own[i] = w[i];
  for (u32 i = 0; i < words; i++)
    own[head + i] = item[i];
  u32 op = w[0] & 255u, flags = w[0] >> 16;
  own[0] &= ~((u32)FLAG_LISTED << 16);
  own[1] = (head + words) | 1u << 16;
  own[2] = (own[2] & ~15u) | SEG_PRIVATE;
  own[head] = 0;
  if (op == OP_PRODUCT)
    own[PRODUCT_APART] = 0;
  if (op == OP_PRODUCT_T)
    own[PRODUCT_T_APART] = 0;
  execute(d, l, p, own, d.head(own));
  if (op == OP_PRODUCT) {
    const u32 *first = res.first + w[PRODUCT_MATRIX] * res.processors + p.id;
    for (u32 k = first[0]; k < first[1]; k++)
      release_stores(to, mine, res.parts[k].row, res.parts[k].row + res.parts[k].rows);
    return;
  }
  Range r = owned(n, op == OP_PRODUCT_T ? 0 : flags, p);
  if (op == OP_PRODUCT_T) {
    const u32 first = res.first[w[PRODUCT_T_MATRIX] * res.processors + p.id];
    r.lo = res.parts[first].column;
    r.hi = r.lo + res.parts[first].columns;
  }
  release_stores(to, mine, r.lo, r.hi);
}

template <class Device> static void publish_sum(Device &d, Launch &l, Processor &p, const u32 *w) {
  u32 own[MAX_WORDS], length = w[1] & 0xFFFFu;
  for (u32 i = 0; i < length; i++)
    own[i] = w[i];
  own[2] = (own[2] & ~15u) | SEG_PRIVATE;
  own[SUM_DST] = 0;
  execute(d, l, p, own, d.head(own));
  Range r = owned(w[SUM_N], w[0] >> 16, p);
  release_stores(address(l, w[2], 0, w[SUM_DST]), l.segment[SEG_PRIVATE], r.lo, r.hi);
}

// False: there is no memory, or the instruction cannot be published.
template <class Device>
static bool publish(Device &d, const Launch &launch, const vpps_residency &res, Processor &p,
                    const u32 *w) {
  u32 op = w[0] & 255u, fn = w[0] >> 8 & 255u, count = w[1] >> 16;
  u32 n, head, words;
  switch (op) {
  case OP_FILL:
    n = w[FILL_N], head = FILL_ITEMS, words = 1;
    break;
  case OP_MAP:
    n = w[MAP_N], head = MAP_ITEMS, words = arity(fn) + 1;
    break;
  case OP_RANDOM:
    n = w[RANDOM_N], head = RANDOM_ITEMS;
    words = fn == RANDOM_NOISE || fn == RANDOM_DROP ? 3 : 2;
    break;
  case OP_PRODUCT:
    n = res.matrix[w[PRODUCT_MATRIX]].rows, head = PRODUCT_ITEMS, words = 2;
    break;
  case OP_PRODUCT_T:
    n = res.matrix[w[PRODUCT_T_MATRIX]].cols, head = PRODUCT_T_ITEMS, words = 2;
    break;
  case OP_SUM:
    n = w[SUM_N], head = 0, words = 0;
    break;
  default:
    return false;
  }
  float few[512], *mine = n <= 512 ? few : (float *)malloc(sizeof(float) * n);
  if (!mine)
    return false;
  Launch l = launch;
  l.segment[SEG_PRIVATE] = mine;
  const u32 results = results_of(res, p, w);
  if (op == OP_SUM)
    publish_sum(d, l, p, w);
  else
    for (u32 e = 0; e < count; e++) {
      const u32 *item = d.items(l, p, w, head) + e * words;
      publish_item(d, l, res, p, w, head, words, item, address(l, w[2], 0, item[0]) + results, n);
    }
  if (mine != few)
    free(mine);
  return true;
}
