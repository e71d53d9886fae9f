// The checking build (VPPS_CHECK=1): before an instruction runs, its length is held against its
// items and every operand against the tensor table that ends the script. An operand's first and
// last element must lie in one tensor.
#pragma once

// What the words of a resident matrix must be: struct vpps_matrix.
struct Shape {
  u32 rows, cols, offset;
};

// Why an instruction is refused: the code and the details of a stop (persist/isa/stop.go).
struct Refusal {
  u32 code, item, operand, segment, first, last;
};

// Whether elements first..last of a segment lie in one tensor.
VP bool in_one_tensor(const u32 *script, u32 segment, u64 first, u64 last) {
  const u32 *table = script + script[HEAD_TENSORS];
  u32 lo = 0, hi = (script[HEAD_TENSOR_END] - script[HEAD_TENSORS]) / TENSOR_WORDS;
  while (lo < hi) { // how many begin at or before first
    u32 mid = (lo + hi) / 2;
    const u32 *t = table + mid * TENSOR_WORDS;
    u32 s = t[0] & 255u;
    if (s < segment || (s == segment && t[1] <= first))
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == 0)
    return false;
  const u32 *t = table + (lo - 1) * TENSOR_WORDS;
  return (t[0] & 255u) == segment && last < (u64)t[1] + t[2];
}

// Whether words words of the script, beginning at from, are among its lists.
VP bool in_lists(const u32 *script, u64 from, u32 words) {
  return from >= script[HEAD_LISTS] && from + words <= script[HEAD_LIST_END];
}

// One instruction being checked. Threads take its items in turn; thread 0 has what stands
// before them.
struct Check {
  const Launch &l;
  const u32 *w;
  u32 flags;
  Refusal &r;

  // The elements from offset to offset + extent of a slot's segment.
  VP_MEMBER void range(u32 item, u32 slot, u64 offset, u64 extent) const {
    u32 segment = (w[0] & 255u) == OP_CHAIN ? ChainWords(w).kind(slot) : w[2] >> (4 * slot);
    segment &= 15u;
    if (r.code || in_one_tensor(l.script, segment, offset, offset + extent))
      return;
    u64 last = offset + extent;
    r.code = STOPPED_OUTSIDE_TENSORS;
    r.item = item;
    r.operand = slot;
    r.segment = segment;
    r.first = (u32)offset;
    r.last = last > 0xFFFFFFFFu ? 0xFFFFFFFFu : (u32)last;
  }
  VP_MEMBER void vector(u32 item, u32 slot, u64 offset, u64 n) const {
    if (n > 0)
      range(item, slot, offset, n - 1);
  }
  VP_MEMBER void nonsense() const { r.code = STOPPED_NO_INSTRUCTION; }
};

// How far the last element of one of Strided's operands is from its first; false: there is none.
VP bool strided_extent(const Axes &x, u32 slot, u64 *extent) {
  *extent = 0;
  for (u32 a = 0; a < x.all; a++) {
    if (x.sizes[a] == 0)
      return false;
    *extent += (u64)(x.sizes[a] - 1) * x.strides[slot * x.all + a];
  }
  return true;
}

VP void check_strided(const Check &c, u32 fn, u32 count) {
  Axes x = axes_of(c.w, fn);
  for (u32 e = THREAD; e < count; e += THREADS)
    for (u32 s = 0; s < x.slots; s++) {
      u64 extent;
      if (strided_extent(x, s, &extent))
        c.range(e, s, x.items[e * x.slots + s], extent);
    }
}

// Chain: what it does with slots that there are, in an order in which all have a value.
VP void check_chain(const Check &c, u32 count) {
  const ChainWords x(c.w);
  u32 valued = 0, results = 0;
  for (u32 s = 0; s < x.slots; s++)
    valued |= (x.kind(s) & CHAIN_READ ? 1u : 0u) << s;
  for (u32 k = 0; k < x.operations; k++) {
    u32 o = x.first[CHAIN_OP_WORDS * k], fn = o & 255u, dst = 1u << chain_slot(o, 0);
    u32 used = chain_flags(o) ? dst : 0;
    for (u32 s = 1; s <= arity(fn); s++)
      used |= 1u << chain_slot(o, s);
    if (fn >= FN_COUNT || chain_slot(o, 0) >= x.slots || used & ~valued)
      return c.nonsense();
    valued |= dst;
    results |= dst;
  }
  for (u32 s = 0; s < x.slots; s++)
    if (x.kind(s) & CHAIN_WRITTEN && !(results >> s & 1u))
      return c.nonsense();
  for (u32 e = THREAD; e < count; e += THREADS)
    for (u32 s = 0; s < x.slots; s++)
      if (x.kind(s) & (CHAIN_READ | CHAIN_WRITTEN))
        c.vector(e, s, x.items[e * x.slots + s], c.w[CHAIN_N]);
}

// Row: which words of an item are rows, parts of rows and single elements, and whether the last is
// a label.
VP void check_row(const Check &c, u32 fn, u32 count) {
  u32 rows = 0, scalars = 0, parts = 0, label = 0, words = row_words(fn), n = c.w[ROW_N];
  const u32 stride = c.w[ROW_STRIDE], lines = c.w[ROW_LINES];
  if (stride == 0 || lines == 0 || (lines > stride && lines % stride != 0)) {
    c.nonsense();
    return;
  }
#define ROW(NAME, ROWS, SCALARS, PARTS, LABEL, WORDS)                                              \
  if (fn == ROW_##NAME) {                                                                          \
    rows = ROWS;                                                                                   \
    scalars = SCALARS;                                                                             \
    parts = PARTS;                                                                                 \
    label = LABEL;                                                                                 \
  }
  ROW_FUNCTIONS(ROW)
#undef ROW
  for (u32 e = THREAD; e < count; e += THREADS) {
    const u32 *item = c.w + ROW_ITEMS + e * words;
    if (has_labels(c.w, words - 1) && label) {
      c.vector(e, words - 1, item[words - 1], lines);
      if (parts || fn == ROW_INVERT)
        c.nonsense();
      for (u32 k = 0; k < lines && !c.r.code; k++)
        if (label_of(c.l, c.w, item, words - 1, k) >= n)
          c.nonsense();
    } else if (label && item[words - 1] >= n)
      c.nonsense();
    if (fn == ROW_INVERT && (u64)(item[words - 1] + 1) * (item[words - 1] + 1) != n)
      c.nonsense();
    for (u32 k = 0; k < words - label && n > 0; k++)
      if ((rows | scalars | parts) >> k & 1) {
        const u64 last = rows >> k & 1 ? n - 1 : parts >> k & 1 ? item[words - 1] : 0;
        const u64 line =
            lines > stride ? (lines / stride - 1) * stride * (last + 1) + stride : lines;
        c.range(e, k, item[k], last * stride + line - 1);
      }
  }
}

VP void check_gemm(const Check &c, u32 count) {
  const u32 *w = c.w;
  if (w[GEMM_M] == 0 || w[GEMM_N] == 0 || w[GEMM_K] == 0)
    return;
  u64 m = w[GEMM_M] - 1, n = w[GEMM_N] - 1, k = w[GEMM_K] - 1;
  for (u32 e = THREAD; e < count; e += THREADS) {
    const u32 *item = w + GEMM_ITEMS + 3 * e;
    c.range(e, 0, item[0], m * w[GEMM_C_ROW] + n * w[GEMM_C_COL]);
    c.range(e, 1, item[1], m * w[GEMM_A_ROW] + k * w[GEMM_A_COL]);
    c.range(e, 2, item[2], k * w[GEMM_B_ROW] + n * w[GEMM_B_COL]);
  }
  if (w[0] >> 16 & FLAG_BIAS && THREAD == 0)
    c.range(0, 3, w[GEMM_BIAS], m);
}

// The products with a resident matrix: slot and length of an item's two vectors, and what stands
// before the items. Whole vectors, whichever rows the processor has.
VP void check_matrix(const Check &c, const u32 *items, u32 op, u32 count, const Shape &m,
                     u32 results) {
  const u32 *w = c.w;
  bool outer = op == OP_OUTER;
  u32 first = op == OP_PRODUCT_T ? m.cols : m.rows, second = op == OP_PRODUCT_T ? m.rows : m.cols;
  for (u32 e = THREAD; e < count; e += THREADS) {
    c.vector(e, outer ? 1 : 0, (u64)items[2 * e] + results, first);
    c.vector(e, outer ? 2 : 1, items[2 * e + 1], second);
  }
  if (THREAD != 0)
    return;
  if (outer)
    c.vector(0, 0, w[OUTER_DST], (u64)m.rows * m.cols);
  if (op == OP_PRODUCT && (c.flags & FLAG_BIAS))
    c.vector(0, 2, w[PRODUCT_BIAS], m.rows);
}

// Update: a value, its gradient if it has one, and the rule's states.
VP void check_update(const Check &c, u32 fn, u32 count) {
  u32 words = rule_words(fn), states = rule_states(fn);
  for (u32 e = THREAD; e < count; e += THREADS) {
    const u32 *item = c.w + UPDATE_ITEMS + words * e;
    c.vector(e, 0, item[0], item[2]);
    if (!(c.flags & FLAG_NOGRAD))
      c.vector(e, 1, item[1], item[2]);
    for (u32 k = 0; k < states; k++)
      c.vector(e, 2, item[3 + k], item[2]);
    if (fn == RULE_EG && (item[4] == 0 || item[4] > item[2]))
      c.nonsense();
  }
}

// Words of the items' head and of an item; false: no instruction has this opcode.
VP bool layout(const u32 *w, u32 op, u32 fn, u32 *head, u32 *words) {
  switch (op) {
#define FIXED(OP, WORDS)                                                                           \
  case OP_##OP:                                                                                    \
    *head = OP##_ITEMS;                                                                            \
    *words = WORDS;                                                                                \
    return fn == 0;
    FIXED(SIGNAL, 0)
    FIXED(WAIT, 0)
    FIXED(FILL, 1)
    FIXED(PRODUCT_T, 2)
    FIXED(OUTER, 2)
    FIXED(GEMM, 3)
    FIXED(NORM, 2)
    FIXED(CLIP, 0)
#undef FIXED
  case OP_MAP:
    *head = MAP_ITEMS;
    *words = arity(fn) + 1;
    return fn < FN_COUNT;
  case OP_STRIDED: {
    u32 kept = w[STRIDED_AXES] & 255u, reduced = w[STRIDED_AXES] >> 8;
    *words = arity(fn) + 1;
    *head = STRIDED_ITEMS + (kept + reduced) * (*words + 1);
    return fn < FN_COUNT && kept <= 5 && reduced <= 5;
  }
  case OP_CHAIN:
    if (w[CHAIN_OPERATIONS] > MAX_WORDS / CHAIN_OP_WORDS || fn > MAX_SLOTS)
      return false;
    *head = (u32)(ChainWords(w).items - w);
    *words = fn;
    return fn > 0 && !(w[0] >> 16 & ((1u << (PHASE_SHIFT - 16)) - 1) & ~(u32)FLAG_SYNC);
  case OP_SUM:
    *head = SUM_ITEMS;
    *words = 1;
    return stands_behind(fn, false) || stands_behind(fn, true);
  case OP_PRODUCT:
    *head = PRODUCT_ITEMS;
    *words = 2;
    return stands_behind(fn, false);
  case OP_ROW:
    *head = ROW_ITEMS;
    *words = row_words(fn);
    return fn < ROW_COUNT;
  case OP_UPDATE:
    *head = UPDATE_ITEMS;
    *words = rule_words(fn);
    return fn < RULE_COUNT;
  case OP_RANDOM:
    *head = RANDOM_ITEMS;
    *words = fn == RANDOM_NOISE || fn == RANDOM_DROP ? 3 : 2;
    return fn < RANDOM_COUNT;
  }
  return false;
}

// Items whose every operand is n elements, but for the last words that are none.
VP void check_vectors(const Check &c, u32 n, u32 head, u32 words, u32 slots, u32 count) {
  for (u32 e = THREAD; e < count; e += THREADS)
    for (u32 s = 0; s < slots; s++)
      c.vector(e, s, c.w[head + e * words + s], n);
}

// An instruction with flag listed.
VP void check_list(const Check &c, u32 op, u32 length, u32 head, u32 count) {
  u32 from = list_of(c.w), words = listed_words(c.w);
  bool may = op >= OP_PRODUCT && op <= OP_OUTER;
  if (!may || length != head + 1 || words > MAX_LISTED || count > MAX_LISTED)
    return c.nonsense();
  if (in_lists(c.l.script, from, words))
    return;
  c.r.code = STOPPED_OUTSIDE_LISTS;
  c.r.item = from;
  c.r.operand = from + words;
}

// Sets r.code where the instruction at w must not run; every thread has its own r. If it is a
// listed one, its items are at list; if a transposed product, the processor's results are behind
// their places by place.
VP_SLOW void check(const Launch &l, const u32 *w, const u32 *list, const Shape *shapes,
                   u32 matrices, u32 place, Refusal &r) {
  u32 op = w[0] & 255u, fn = w[0] >> 8 & 255u, flags = w[0] >> 16;
  u32 length = w[1] & 0xFFFFu, count = w[1] >> 16, head = 0, words = 0;
  const Check c = {l, w, flags, r};
  r.code = STOPPED_NONE;
  bool listed = flags & FLAG_LISTED;
  if (!layout(w, op, fn, &head, &words) || length > MAX_WORDS ||
      (!listed && length != head + count * words))
    return c.nonsense();
  if (listed)
    check_list(c, op, length, head, count);
  if (r.code)
    return;
  switch (op) {
  case OP_SIGNAL:
  case OP_WAIT:
    if (w[SIGNAL_BARRIER] >= l.script[HEAD_BARRIERS])
      c.nonsense();
    break;
  case OP_FILL:
    return check_vectors(c, w[FILL_N], head, words, 1, count);
  case OP_MAP:
    return check_vectors(c, w[MAP_N], head, words, words, count);
  case OP_RANDOM:
    return check_vectors(c, w[RANDOM_N], head, words, words - 1, count);
  case OP_STRIDED:
    return check_strided(c, fn, count);
  case OP_CHAIN:
    return check_chain(c, count);
  case OP_ROW:
    return check_row(c, fn, count);
  case OP_GEMM:
    return check_gemm(c, count);
  case OP_PRODUCT:
  case OP_PRODUCT_T:
  case OP_OUTER:
    if (w[PRODUCT_MATRIX] >= matrices)
      return c.nonsense();
    return check_matrix(c, listed ? list : w + head, op, count, shapes[w[PRODUCT_MATRIX]], place);
  case OP_SUM: {
    const u32 n = w[SUM_N];
    u32 runs = w[SUM_RUNS] & 0xFFFFu, each = w[SUM_RUNS] >> 16;
    if (runs > count || (runs > 0 && (each < 1 || each > MAX_RUN)))
      return c.nonsense();
    Sources src(w, count);
    for (u32 e = THREAD; e < src.count; e += THREADS)
      c.vector(e, 1, src(e), n);
    if (THREAD == 0)
      c.vector(0, 0, w[SUM_DST], n);
    if (THREAD == 0 && stands_behind(fn, true))
      c.vector(0, 2, w[SUM_Y], n);
    break;
  }
  case OP_NORM:
    for (u32 e = THREAD; e < count; e += THREADS)
      c.vector(e, 1, w[NORM_ITEMS + 2 * e], w[NORM_ITEMS + 2 * e + 1]);
    c.vector(0, 0, w[NORM_DST], 2);
    break;
  case OP_CLIP:
    c.vector(0, 1, w[CLIP_PARTIALS], 2 * w[CLIP_N]);
    if (flags & FLAG_LOSS)
      c.vector(0, 2, w[CLIP_LOSS], 1);
    if (flags & FLAG_LAST)
      c.vector(0, 0, w[CLIP_RESULT], 4);
    break;
  case OP_UPDATE:
    return check_update(c, fn, count);
  }
}
