// Row on a CPU. Elements of a row that are apart in memory are neighbours of other rows' elements.
// Softmax and its kin have a vector of numbers, one of each of some lines; for other functions
// lines side by side are copied, so that each is a row of neighbours.
#pragma once

// Where numbers of some lines are. TOGETHER: side by side, else each line begins apart.
template <bool TOGETHER> struct Places {
  float *first;
  u32 lines, apart; // TOGETHER: 1
  VP_MEMBER V operator*() const {
    if (TOGETHER)
      return load_some(first, lines);
    float some[VW] = {};
    for (size_t j = 0; j < lines; j++)
      some[j] = first[j * apart];
    return load(some);
  }
};
template <bool TOGETHER> VP void put(const Places<TOGETHER> &to, V v, u32 flags) {
  v = canonical(flags & FLAG_ACC ? *to + v : v);
  if (TOGETHER)
    return store_some(to.first, v, to.lines);
  float some[VW];
  store(some, v);
  for (size_t j = 0; j < to.lines; j++)
    to.first[j * to.apart] = some[j];
}

// The elements of lines. TOGETHER: those at one place in the lines are neighbours, else those of
// one line are.
template <bool TOGETHER> struct LinesView {
  typedef V Number;
  float *v;
  u32 n, stride, lines;
  VP_MEMBER Places<TOGETHER> at(size_t i) const {
    return {v + i * stride, lines, TOGETHER ? 1 : n};
  }
  VP_MEMBER V get(size_t i) const { return *at(i); }
};
template <bool TOGETHER> struct ItemLines {
  typedef LinesView<TOGETHER> Row;
  struct ShortRows {
    static constexpr bool all = false;
  } team;
  const Launch &l;
  const u32 *w, *item;
  u32 line, lines;
  VP_MEMBER Row row(u32 k) const {
    return {line_of(one_warp(), l, w, item, k, line, w[ROW_N]), w[ROW_N], w[ROW_STRIDE], lines};
  }
  VP_MEMBER Places<true> one(u32 k) const {
    return {address(l, w[ROW_SEGMENTS], k, item[k]) + line, lines, 1};
  }
  VP_MEMBER V picked(const Row &x, u32 k) const {
    float some[VW] = {};
    for (u32 j = 0; j < lines; j++) {
      const Places<TOGETHER> at = x.at(label_of(l, w, item, k, line + j));
      some[j] = at.first[j * at.apart];
    }
    return load(some);
  }
};
VP bool is_softmax(u32 fn) {
  switch (fn) {
    CASES_OF_SOFTMAX
    return true;
  default:
    return false;
  }
}
template <bool TOGETHER>
VP_SLOW void softmax_lines(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 side = TOGETHER ? w[ROW_STRIDE] : VW; // lines side by side
  for (u32 k = 0, words = row_words(fn); k < count; k++)
    for (u32 line = 0, lines; line < w[ROW_LINES]; line += lines) {
      const u32 left = w[ROW_LINES] - line, beside = side - line % side;
      lines = beside < VW ? beside : (u32)VW;
      lines = left < lines ? left : lines;
      softmax_item(ItemLines<TOGETHER>{{}, l, w, w + ROW_ITEMS + k * words, line, lines}, fn,
                   flags);
    }
}

template <bool DENSE>
VP_SLOW void row_items(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  for (u32 k = 0, words = row_words(fn); k < count; k++)
    for (u32 line = 0; line < w[ROW_LINES]; line++)
      row_item<DENSE>(Team{w[ROW_N] >= LONG_ROW, nullptr}, l, w, fn, flags,
                      w + ROW_ITEMS + k * words, line);
}

// The bits of operands that are rows, or parts, of as many elements as the item's last word says.
VP u32 operands_of(u32 fn, bool parts) {
#define ROW(NAME, ROWS, SCALARS, PARTS, LABEL, WORDS)                                              \
  if (fn == ROW_##NAME)                                                                            \
    return parts ? PARTS : ROWS;
  ROW_FUNCTIONS(ROW)
#undef ROW
  return 0;
}

enum : u32 { ROW_OPERANDS = 4, MOST_LINES = 16, FEW_LINES = 4, MOST_GATHERED = 1 << 16 };

// Copies of lines, side by side in memory, of all operands.
struct GatheredLines {
  float *copy;
  u32 elements[ROW_OPERANDS]; // of a line; 0: the operand is none
  u32 stride, lines;
  VP_MEMBER float *line(u32 operand, u32 j) const {
    float *at = copy;
    for (u32 k = 0; k < operand; k++)
      at += elements[k] * MOST_LINES;
    return at + j * elements[operand];
  }
  VP_MEMBER void gather(u32 operand, const float *from) const {
    float *to = line(operand, 0);
    const size_t n = elements[operand];
    for (size_t e = 0; e < n; e++, from += stride)
      for (size_t j = 0; j < lines; j++)
        to[j * n + e] = from[j];
  }
  VP_MEMBER void scatter(u32 operand, float *to) const {
    const float *from = line(operand, 0);
    const size_t n = elements[operand];
    for (size_t e = 0; e < n; e++, to += stride)
      for (size_t j = 0; j < lines; j++)
        to[j] = from[j * n + e];
  }
};

// The lines of an item. The first operand is the result: what is added to it is read before.
VP_SLOW void gathered_item(GatheredLines &g, const Launch &l, const u32 *w, u32 fn, u32 flags,
                           const u32 *item) {
  for (u32 line = 0; line < w[ROW_LINES]; line += g.lines) {
    const u32 neighbours = g.stride - line % g.stride, left = w[ROW_LINES] - line;
    g.lines = neighbours < MOST_LINES ? neighbours : (u32)MOST_LINES;
    g.lines = left < g.lines ? left : g.lines;
    for (u32 k = flags & FLAG_ACC ? 0 : 1; k < ROW_OPERANDS; k++)
      if (g.elements[k])
        g.gather(k, line_of(one_warp(), l, w, item, k, line, g.elements[k]));
    for (u32 j = 0; j < g.lines; j++) {
      float *at[ROW_OPERANDS];
      for (u32 k = 0; k < ROW_OPERANDS; k++)
        at[k] = g.line(k, j);
      row_item<true>(Team{w[ROW_N] >= LONG_ROW, at}, l, w, fn, flags, item, line + j);
    }
    if (g.elements[0])
      g.scatter(0, line_of(one_warp(), l, w, item, 0, line, g.elements[0]));
  }
}

// Whether there are enough lines side by side for copies of them to pay, and a function reads them
// all.
VP bool gathers(const u32 *w, u32 fn, u32 flags) {
  const bool one = fn == ROW_PICK || (fn == ROW_PICK_B && (flags & FLAG_ACC)) || fn == ROW_INVERT;
  return !one && w[ROW_STRIDE] >= FEW_LINES && w[ROW_LINES] >= FEW_LINES &&
         w[ROW_N] <= MOST_GATHERED;
}

// False: lines were not copied.
VP_SLOW bool gathered_items(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count) {
  const u32 words = row_words(fn), rows = operands_of(fn, false), parts = operands_of(fn, true);
  if (!gathers(w, fn, flags))
    return false;
  GatheredLines g = {nullptr, {}, w[ROW_STRIDE], 0};
  u32 all = 0, longest = 0;
  for (u32 i = 0; parts && i < count; i++) {
    const u32 part = w[ROW_ITEMS + (i + 1) * words - 1] + 1;
    longest = part > longest ? part : longest;
  }
  for (u32 k = 0; k < ROW_OPERANDS; k++) {
    g.elements[k] = rows >> k & 1u ? w[ROW_N] : 0;
    all += parts >> k & 1u ? longest : g.elements[k];
  }
  g.copy = (float *)malloc((size_t)all * MOST_LINES * sizeof(float));
  if (!g.copy)
    return false;
  for (u32 i = 0; i < count; i++) {
    const u32 *item = w + ROW_ITEMS + i * words;
    for (u32 k = 0; k < ROW_OPERANDS; k++)
      if (parts >> k & 1u)
        g.elements[k] = item[words - 1] + 1;
    gathered_item(g, l, w, fn, flags, item);
  }
  free(g.copy);
  return true;
}

VP void row(const Launch &l, const u32 *w, u32 fn, u32 flags, u32 count, float * /*scratch*/) {
  const bool lines = is_softmax(fn) && w[ROW_LINES] >= FEW_LINES && w[ROW_N] < LONG_ROW;
  if (lines && w[ROW_STRIDE] >= FEW_LINES)
    softmax_lines<true>(l, w, fn, flags, count);
  else if (lines && w[ROW_STRIDE] == 1 && w[ROW_N] <= SHORT_ROW)
    softmax_lines<false>(l, w, fn, flags, count);
  else if (w[ROW_STRIDE] == 1)
    row_items<true>(l, w, fn, flags, count);
  else if (!gathered_items(l, w, fn, flags, count))
    row_items<false>(l, w, fn, flags, count);
}
