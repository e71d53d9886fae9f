// The GPU's matrix routines, sums and functions of rows on the CPU, thread by thread, against sums
// of doubles: which thread has which element, and who adds what, without a GPU. Waiting for copies
// and what is particular to newer devices is not tried here.
#include "cuda.h"

#include <algorithm>
#include <cfloat>

#define VPPS_CHAINS 8
#define VPPS_EMULATED
#ifndef VPPS_GEMM_WARPS
#define VPPS_GEMM_WARPS 8
#endif
#define VPPS_CROWDED true
#define VPPS_SUMS 32
#ifndef VPPS_OUTER_FLIGHT
#define VPPS_OUTER_FLIGHT 3
#endif
#define VPPS_OUTER_ITEMS 16
#include "device.h"
#include "isa.h"
#include "math.h"
#include "special.h"
#include "formulas.h"
#include "philox.h"
#include "processor.h"
#include "elementwise.h"
#include "team.h"
#include "strided.h"
#include "sum.h"
#include "rows.h"
#include "random.h"
#include "update.h"
#include "gpu.h"
#include "bulk_gpu.h"
#include "chain.h"
#include "check.h"
#include "clocks.h"
#include "tile_gpu.h"
#include "parts_gpu.h"
#include "gemm_tiles.h"
#include "gemm_blocks.h"
#include "gemm.h"
#include "outer_blocks.h"
#include "matrix_gpu.h"
#define VPPS_DEPTH 64
#include "matrix_stream.h"
#include "matrix_vector.h"

namespace {

const unsigned FLOATS = 1 << 20;
alignas(16) float memory[FLOATS];
std::vector<float> before; // what was in memory
unsigned cases, wrong;
BulkCopies::Shared copies;
const BulkCopies bulk(copies); // none here

// The attribute is written as libstdc++ 13 writes it, which no macro above may break.
__attribute__((__noinline__)) void expect(const char *what, unsigned item, unsigned element,
                                          float have, double want) {
  if (std::fabs(have - want) <= 2e-5 * (1 + std::fabs(want)))
    return;
  if (wrong++ < 20)
    std::printf("case %u, %s of item %u, element %u: %g, want %g\n", cases, what, item, element,
                double(have), want);
}

// A launch whose segments are all the same memory, full of random numbers.
Launch fresh() {
  Launch l = {};
  for (float *&s : l.segment)
    s = memory;
  static std::vector<float> numbers; // of all cases, each of which begins at another one
  for (std::mt19937 rng(1); numbers.size() < FLOATS + 4096;)
    numbers.push_back(std::uniform_real_distribution<float>(-1, 1)(rng));
  before.assign(&numbers[cases % 4096], &numbers[cases % 4096] + FLOATS);
  std::copy(before.begin(), before.end(), memory);
  cases++;
  return l;
}

// Some rows of a matrix of so many columns at 0, and items of vectors behind it.
struct Case {
  u32 rows, columns, row, count;
  u32 top = 0;
  std::vector<u32> items = {};
  u32 place(u32 floats) {
    const u32 at = top;
    top += (floats + 3) & ~3u;
    if (top > FLOATS)
      std::abort();
    return at;
  }
  void place_items(u32 result, u32 vector) {
    items.clear();
    for (u32 i = 0; i < count; i++) {
      items.push_back(place(result));
      items.push_back(place(vector));
    }
  }
  Work work(const Launch &l, const u32 *w, u32 flags) const {
    return {l, w, items.data(), flags, count};
  }
};

template <int RPW, int COLS> Partition partition(const Case &c) {
  const u32 height = std::min(c.rows - c.row, 8u * RPW);
  return {0, (u16)height, COLS, 0, 1, (u16)(c.row / (8 * RPW)), c.row, c.rows, 0};
}

// Products with the function behind them.
template <int RPW, int COLS, int VECTORS> void try_product(Case c) {
  const Launch l = fresh();
  const u32 bias = (c.top = c.rows * COLS, c.place(0), c.place(c.rows));
  c.place_items(c.rows, COLS);
  const Partition part = partition<RPW, COLS>(c);
  u32 w[16] = {OP_PRODUCT | FN_TANH << 8, c.count << 16};
  w[PRODUCT_SCALE] = BITS_OF(2.0f), w[PRODUCT_BIAS] = bias, w[PRODUCT_BIAS_SCALE] = BITS_OF(1.0f);
  launch([&] {
    Clocks clocks;
    float r[RPW * iterations(COLS)];
    load_rows<RPW, COLS>(r, memory, part, clocks);
    product_rows<RPW, COLS, 8, VECTORS, VECTORS>(r, bulk, c.work(l, w, FLAG_BIAS), part, shared);
  });
  for (u32 i = 0; i < c.count; i++)
    for (u32 q = c.row; q < part.end(); q++) {
      double y = before[bias + q];
      for (u32 k = 0; k < COLS; k++)
        y += 2.0 * before[c.items[2 * i + 1] + k] * before[q + k * c.rows];
      expect("a product", i, q, memory[c.items[2 * i] + q], std::tanh(y));
    }
}

// Transposed products, from rows of shared memory as the generated code has them.
template <int RPW, int COLS> void try_transposed(Case c) {
  const Launch l = fresh();
  c.top = c.rows * COLS, c.place(0);
  c.place_items(COLS, c.rows);
  const Partition part = partition<RPW, COLS>(c);
  launch([&] {
    constexpr int STAGE = 16, ROWS = 8 * RPW, BATCH = transposed_batch<RPW, COLS, STAGE>();
    Clocks clocks;
    float r[RPW * iterations(COLS)];
    load_rows<RPW, COLS>(r, memory, part, clocks);
    for (u32 first = 0; first < c.count; first += STAGE) {
      const u32 *list = &c.items[2 * first], here = std::min(c.count - first, (u32)STAGE);
      __syncthreads();
      stage<ROWS, STAGE, 1>(shared, memory + part.row, list + 1, here, 0, part.height);
      commit_copies();
      wait_for_all_copies();
      __syncthreads();
      for (u32 e = 0; e < here; e += BATCH) {
        TransposedSums<RPW, COLS, BATCH> sums;
        sums.add(r, shared + e * ROWS);
        sums.store(l.segment[0], 2.0f, list + 2 * e, here - e, FLAG_ACC);
      }
    }
  });
  for (u32 i = 0; i < c.count; i++)
    for (u32 k = 0; k < COLS; k++) {
      const u32 at = c.items[2 * i] + k;
      double t = before[at];
      for (u32 q = c.row; q < part.end(); q++)
        t += 2.0 * before[c.items[2 * i + 1] + q] * before[q + k * c.rows];
      expect("a transposed product", i, k, memory[at], t);
    }
}

// Products with a matrix in memory, as the generated code has them, of a processor that is one of
// some. The matrix and the vectors begin apart floats after a place that is aligned.
void try_beyond(u32 rows, u32 columns, u32 processors, u32 count, u32 apart) {
  const auto share = [=](u32 n, u32 of) {
    return (n + processors * of - 1) / (processors * of) * of;
  };
  for (bool transposed : {false, true}) {
    const Launch l = fresh();
    Case c = {rows, columns, 0, count};
    c.top = apart;
    const Residence m = {rows,       columns,          c.place(rows * columns), 1, share(rows, 16),
                         NOT_SHARED, share(columns, 4)};
    const u32 bias = c.place(rows);
    c.place_items(transposed ? columns : rows, transposed ? rows : columns);
    u32 w[16] = {OP_PRODUCT | FN_TANH << 8, count << 16};
    w[PRODUCT_SCALE] = BITS_OF(2.0f), w[PRODUCT_BIAS] = bias, w[PRODUCT_BIAS_SCALE] = BITS_OF(1.0f);
    if (transposed)
      w[PRODUCT_T_SCALE] = BITS_OF(2.0f);
    gridDim.x = processors;
    for (blockIdx.x = 0; blockIdx.x < processors; blockIdx.x++)
      launch([&] {
        Clocks clocks;
        const u32 *items = c.items.data();
        if (transposed) {
          const u32 few = product_t_few(l, w, items, FLAG_ACC, count, m, shared, clocks);
          product_t_streamed<4>(l, w, items, FLAG_ACC, count - few, m, shared, clocks);
        } else {
          const u32 few = product_few(l, w, items, FLAG_BIAS, count, m, shared, clocks);
          product_streamed<16>(l, w, items, FLAG_BIAS, count - few, m, shared, 0, clocks);
        }
      });
    blockIdx.x = 0, gridDim.x = 1;
    const auto element = [&](u32 r, u32 k) { return double(before[m.offset + r + k * rows]); };
    for (u32 i = 0; i < count; i++) {
      const u32 y = c.items[2 * i], x = c.items[2 * i + 1];
      for (u32 o = 0; o < (transposed ? columns : rows); o++) {
        double sum = before[transposed ? y + o : bias + o];
        for (u32 t = 0; t < (transposed ? rows : columns); t++)
          sum += 2.0 * before[x + t] * (transposed ? element(t, o) : element(o, t));
        expect(transposed ? "a transposed product beyond" : "a product beyond", i, o, memory[y + o],
               transposed ? sum : std::tanh(sum));
      }
    }
  }
}

// A matrix's gradient, whose blocks so many processors form: on tensor cores (blocks), or as many
// items ask for. Of each item both vectors begin apart floats after a place that is aligned. An
// infinite number makes infinite sums of its row.
struct GradientCase {
  u32 rows, columns, tall, processors, apart;
};
void try_gradient(const GradientCase &of, u32 count, bool blocks, bool infinite) {
  const Launch l = fresh();
  Case c = {of.rows, of.columns, 0, count};
  const u32 dst = c.place(c.rows * c.columns);
  c.place_items(c.rows + of.apart, c.columns + of.apart);
  for (u32 &at : c.items)
    at += of.apart;
  u32 w[16] = {OP_OUTER | FLAG_ACC << 16, count << 16};
  w[OUTER_SCALE] = BITS_OF(2.0f), w[OUTER_DST] = dst;
  const u32 large = c.items[0] + c.rows / 2;
  if (infinite)
    memory[large] = before[large] = 3.4e38f;
  const u32 height = of.tall ? 64 : 32, width = of.tall ? 64 : 128;
  const u32 down = (c.rows + height - 1) / height;
  const Grid grid = {c.rows, c.columns, of.tall, down, down * ((c.columns + width - 1) / width), 1};
  gridDim.x = of.processors;
  for (blockIdx.x = 0; blockIdx.x < of.processors; blockIdx.x++)
    launch([&] {
      const Work work = c.work(l, w, FLAG_ACC);
      if (blocks)
        outer_blocks(work, grid, *(OuterMemory *)shared);
      else
        outer_of(work, grid, shared);
    });
  blockIdx.x = 0;
  for (u32 k = 0; k < c.columns; k++)
    for (u32 q = 0; q < c.rows; q++) {
      double g = before[dst + q + k * c.rows];
      for (u32 i = 0; i < count; i++)
        g += 2.0 * before[c.items[2 * i] + q] * before[c.items[2 * i + 1] + k];
      if (std::fabs(g) < FLT_MAX)
        expect("a gradient", q, k, memory[dst + q + k * c.rows], g);
      else if (memory[dst + q + k * c.rows] != float(g))
        expect("an infinite gradient", q, k, 0, 1);
    }
}

// A sum of n elements of so many runs of vectors and single ones.
void try_sum(u32 n, u32 runs, u32 each, u32 single, u32 fn, u32 flags) {
  const Launch l = fresh();
  const u32 dst = 16, y = 4096, apart = (n + 3) & ~3u;
  u32 w[32] = {OP_SUM | fn << 8};
  w[SUM_N] = n, w[SUM_SCALE] = BITS_OF(0.5f), w[SUM_DST] = dst, w[SUM_RUNS] = runs | each << 16;
  w[SUM_APART] = apart, w[SUM_Y] = y;
  for (u32 k = 0, at = 8192; k < runs + single; k++, at += apart * (k <= runs ? each : 1))
    w[SUM_ITEMS + k] = at;
  launch([&] { sum(l, w, fn, flags, runs + single, shared); });
  for (u32 i = 0; i < n; i++) {
    double s = 0;
    for (u32 k = 0; k < runs + single; k++)
      for (u32 e = 0; e < (k < runs ? each : 1); e++)
        s += 0.5 * before[w[SUM_ITEMS + k] + e * apart + i];
    if (flags & FLAG_ACC)
      s += before[dst + i];
    if (fn == FN_TANH)
      s = std::tanh(s);
    if (fn == FN_TANH_B)
      s *= 1 - double(before[y + i]) * before[y + i];
    expect("a sum", 0, i, memory[dst + i], s);
  }
}

typedef std::vector<double> Line;

// How many elements of a line an item's word of a function of rows is of.
u32 line_size(u32 fn, u32 word, u32 n, u32 label) {
#define ROW(NAME, ROWS, SCALARS, PARTS, LABEL, WORDS)                                              \
  if (fn == ROW_##NAME)                                                                            \
    return (ROWS) >> word & 1 ? n : (PARTS) >> word & 1 ? label + 1 : 1;
  ROW_FUNCTIONS(ROW)
#undef ROW
  return 0;
}

// A function of rows with so many words an item, of which the first is the result's, of size
// elements. want makes it of the others.
template <class F>
void try_rows(u32 fn, u32 words, u32 label, u32 n, u32 stride, float p, u32 size, F want) {
  const Launch l = fresh();
  const u32 count = 9, apart = 4096, all = words + (label != ~0u);
  const u32 lines = 2 * n * stride > apart || fn == ROW_INVERT ? 1 : 2 * stride;
  const bool each = label < n && fn < ROW_K_MAX && stride > 1 && lines <= 16; // line has its label
  u32 w[256] = {OP_ROW | fn << 8};
  w[ROW_SEGMENTS] = each ? SEG_INPUT << 4 * words : 0;
  w[ROW_N] = n, w[ROW_STRIDE] = stride, w[ROW_P] = BITS_OF(p), w[ROW_LINES] = lines;
  for (u32 e = 0; e < count; e++) {
    for (u32 k = 0; k < words; k++)
      w[ROW_ITEMS + e * all + k] = 16 + (e * words + k) * apart;
    if (label != ~0u)
      w[ROW_ITEMS + e * all + words] = each ? 0 : label;
  }
  for (u32 k = 0; each && k < lines; k++)
    memory[k] = FLOAT_OF(label);
  launch([&] { row(l, w, fn, 0, count, shared); });
  for (u32 k = 0; k < count * lines; k++) {
    const u32 *item = w + ROW_ITEMS + k / lines * all, line = k % lines;
    const auto begin = [&](u32 word) {
      return item[word] + line / stride * stride * line_size(fn, word, n, label) + line % stride;
    };
    std::vector<Line> rows;
    for (u32 word = 0; word < words; word++) {
      rows.emplace_back();
      for (u32 i = 0; i < n; i++)
        rows.back().push_back(before[begin(word) + i * stride]);
    }
    const Line y = want(rows);
    for (u32 i = 0; i < size; i++)
      expect("a row", k, i, memory[begin(0) + i * stride], y[i]);
  }
}

double log_sum(const Line &x) {
  double s = 0;
  for (double v : x)
    s += std::exp(v);
  return std::log(s);
}

// The places of the k largest, or smallest, in order.
std::vector<u32> largest(const Line &x, u32 k, double sign) {
  std::vector<u32> at(x.size());
  for (u32 i = 0; i < x.size(); i++)
    at[i] = i;
  std::stable_sort(at.begin(), at.end(), [&](u32 i, u32 j) { return sign * x[i] > sign * x[j]; });
  at.resize(k);
  std::sort(at.begin(), at.end());
  return at;
}

double threshold(Line x) {
  std::sort(x.begin(), x.end(), [](double a, double b) { return a > b; });
  double sum = 0, tau = 0;
  for (u32 k = 0; k < x.size(); k++) {
    sum += x[k];
    if (1 + (k + 1) * x[k] > sum)
      tau = (sum - 1) / (k + 1);
  }
  return tau;
}

// Those that have a label.
void try_labels(u32 n, u32 stride, u32 label) {
  typedef const std::vector<Line> &Rows;
  try_rows(ROW_PICK, 2, label, n, stride, 0, 1, [=](Rows r) { return Line(1, r[1][label]); });
  try_rows(ROW_PICK_B, 2, label, n, stride, 0, n, [=](Rows r) {
    Line y(n);
    y[label] = r[1][0];
    return y;
  });
  try_rows(ROW_NEG_LOG_PICK, 3, label, n, stride, 0, 1,
           [=](Rows r) { return Line(1, log_sum(r[1]) - r[1][label]); });
  try_rows(ROW_NEG_LOG_PICK_B, 4, label, n, stride, 0, n, [=](Rows r) {
    Line y;
    for (double x : r[1])
      y.push_back(r[3][0] * std::exp(x - r[2][0]));
    y[label] -= r[3][0];
    return y;
  });
  try_rows(ROW_HINGE, 2, label, n, stride, 1, 1, [=](Rows r) {
    double sum = 0;
    for (u32 i = 0; i < n; i++)
      sum += i == label ? 0 : std::max(0.0, 1 - r[1][label] + r[1][i]);
    return Line(1, sum);
  });
  try_rows(ROW_HINGE_B, 3, label, n, stride, 1, n, [=](Rows r) {
    Line y;
    double active = 0;
    for (u32 i = 0; i < n; i++) {
      const bool is = i != label && 1 - r[1][label] + r[1][i] > 0;
      y.push_back(is ? r[2][0] : 0);
      active += is;
    }
    y[label] = -active * r[2][0];
    return y;
  });
}

// Those that look for elements, and sums up to each.
void try_searches(u32 n, u32 stride, const std::vector<u32> &chosen) {
  typedef const std::vector<Line> &Rows;
  for (u32 k : chosen)
    for (float sign : {1.f, -1.f}) {
      try_rows(ROW_K_MAX, 2, k - 1, n, stride, sign, k, [=](Rows r) {
        Line y;
        for (u32 i : largest(r[1], k, sign))
          y.push_back(r[1][i]);
        return y;
      });
      try_rows(ROW_K_MAX_B, 3, k - 1, n, stride, sign, n, [=](Rows r) {
        Line y(n);
        u32 j = 0;
        for (u32 i : largest(r[1], k, sign))
          y[i] = r[2][j++];
        return y;
      });
    }
  for (float back : {0.f, 1.f})
    try_rows(ROW_CUM_SUM, 2, ~0u, n, stride, back, n, [=](Rows r) {
      Line y(n);
      double s = 0;
      for (u32 i = 0; i < n; i++) {
        const u32 at = back != 0 ? n - 1 - i : i;
        y[at] = s += r[1][at];
      }
      return y;
    });
  try_rows(ROW_ARG_MAX, 2, ~0u, n, stride, 0, n, [=](Rows r) {
    Line y(n);
    y[largest(r[1], 1, 1)[0]] = 1;
    return y;
  });
}

void try_log_sums(u32 n, u32 stride) {
  typedef const std::vector<Line> &Rows;
  try_rows(ROW_LOG_SUM_EXP, 2, ~0u, n, stride, 0, 1, [](Rows r) { return Line(1, log_sum(r[1])); });
  try_rows(ROW_LOG_SUM_EXP_B, 4, ~0u, n, stride, 0, n, [](Rows r) {
    Line y;
    for (double x : r[1])
      y.push_back(r[3][0] * std::exp(x - r[2][0]));
    return y;
  });
  try_labels(n, stride, n / 2);
}

void try_all_rows(u32 n, u32 stride) {
  typedef const std::vector<Line> &Rows;
  try_log_sums(n, stride);
  try_searches(n, stride, {1u, std::min(n, 3u), n});
  try_rows(ROW_SPARSEMAX, 2, ~0u, n, stride, 0, n, [](Rows r) {
    Line y;
    for (double x : r[1])
      y.push_back(std::max(0.0, x - threshold(r[1])));
    return y;
  });
  try_rows(ROW_SPARSEMAX_B, 3, ~0u, n, stride, 0, n, [](Rows r) {
    double sum = 0, inside = 0;
    for (u32 i = 0; i < r[1].size(); i++)
      if (r[1][i] > 0)
        sum += r[2][i], inside++;
    Line y;
    for (u32 i = 0; i < r[1].size(); i++)
      y.push_back(r[1][i] > 0 ? r[2][i] - sum / inside : 0);
    return y;
  });
}

// Sums of so many terms along two axes, or one if the second has length 1, of products whose
// factors lie side by side or apart.
void try_strided(u32 outputs, u32 terms, u32 rest, bool neighbours, u32 flags) {
  const Launch l = fresh();
  const u32 x = 4096, y = 1 << 19, count = 2, all = terms * rest;
  const u32 of_output = neighbours ? 1 : all, of_term = neighbours ? outputs : 1;
  u32 w[64] = {OP_STRIDED | FN_MUL << 8};
  w[STRIDED_AXES] = 1 | (rest == 1 ? 1 : 2) << 8, w[STRIDED_P] = BITS_OF(2.f);
  std::vector<u32> words = {outputs, terms, rest, 1, 0, 0};
  for (int k = 0; k < 2; k++)
    words.insert(words.end(), {of_output, of_term, of_term * terms});
  if (rest == 1) // one axis
    for (u32 at : {11, 8, 5, 2})
      words.erase(words.begin() + at);
  words.insert(words.end(), {16, x, y, 2048, x + 8, y + 8});
  std::copy(words.begin(), words.end(), w + STRIDED_ITEMS);
  launch([&] { strided(l, w, FN_MUL, flags, count, shared); });
  for (u32 e = 0; e < count; e++)
    for (u32 o = 0; o < outputs; o++) {
      const u32 at = (e ? 2048 : 16) + o;
      double sum = flags & FLAG_ACC ? before[at] : 0;
      for (u32 t = 0; t < all; t++)
        sum += 2.0 * before[x + 8 * e + o * of_output + t * of_term] *
               before[y + 8 * e + o * of_output + t * of_term];
      expect("a sum of products", e, o, memory[at], sum);
    }
}

// A function of three operands, some of them not aligned.
void try_map(u32 n, u32 count, u32 flags) {
  const Launch l = fresh();
  u32 w[64] = {OP_MAP | FN_MUL_DIV << 8};
  w[MAP_N] = n, w[MAP_P] = BITS_OF(1.f);
  Case place = {};
  for (u32 k = 0; k < 4 * count; k++)
    w[MAP_ITEMS + k] = place.place(n + 3) + k % 3;
  launch([&] { map(l, w, FN_MUL_DIV, flags, count); });
  for (u32 e = 0; e < count; e++) {
    const u32 *x = w + MAP_ITEMS + 4 * e;
    for (u32 i = 0; i < n; i++)
      expect("elements", e, i, memory[x[0] + i],
             (flags & FLAG_ACC ? before[x[0] + i] : 0) +
                 (double)(float)(before[x[1] + i] * before[x[2] + i]) / before[x[3] + i]);
    expect("what lies after the elements", e, n, memory[x[0] + n], before[x[0] + n]);
  }
}

// A chain of four operations, one of which adds to its result: of so many vectors, which have items
// that are aligned or not. Slots that no operation uses are read.
void try_chain(u32 n, u32 slots, u32 count, bool aligned) {
  const Launch l = fresh();
  Case place = {};
  u32 w[MAX_WORDS] = {OP_CHAIN | slots << 8}, k = CHAIN_ITEMS + (slots + 3) / 4;
  w[CHAIN_N] = n, w[CHAIN_OPERATIONS] = 4;
  for (u32 s = 0; s < slots; s++) {
    const u32 how = s == 3 ? 0 : s == 2 || s == 4 ? (u32)CHAIN_WRITTEN : (u32)CHAIN_READ;
    w[CHAIN_ITEMS + s / 4] |= (how | (s == 4 ? (u32)CHAIN_READ : 0)) << (8 * (s % 4));
  }
  const auto operation = [&](u32 fn, u32 to, u32 a, u32 b, bool adds, float p) {
    w[k++] = fn | to << 8 | a << 13 | b << 18 | (adds ? 1u << 28 : 0);
    w[k++] = BITS_OF(p), w[k++] = 0;
  };
  operation(FN_MUL, 2, 0, 1, false, 2.f);
  operation(FN_SQUARE, 3, 2, 0, false, 0.f);
  operation(FN_ADD, 4, 3, 1, true, 0.f);
  operation(FN_MUL, 2, 2, 4, false, 1.f);
  const u32 *item = w + k;
  for (u32 s = 0; s < slots * count; s++)
    w[k++] = place.place(n + 3) + (aligned ? 0 : s % 3);
  launch([&] { chain(l, w, 0, count, shared); });
  for (u32 e = 0; e < count; e++, item += slots)
    for (u32 i = 0; i < n; i++) {
      const double a = before[item[0] + i], b = before[item[1] + i], product = 2 * a * b;
      const double sum = before[item[4] + i] + product * product + b;
      expect("a chain's sum", e, i, memory[item[4] + i], sum);
      expect("a chain's product", e, i, memory[item[2] + i], product * sum);
      expect("a chain's own", e, i, memory[item[3] + i], before[item[3] + i]);
    }
}

// Products of elements along three axes; one factor is a column of every second row, the other
// stays along the second axis.
void try_axes(u32 rows, u32 columns, u32 layers, u32 flags) {
  const Launch l = fresh();
  const u32 x = 1 << 18, y = 1 << 19, z = 1 << 17, count = 2, all = rows * columns * layers;
  u32 w[64] = {OP_STRIDED | FN_MUL << 8};
  w[STRIDED_AXES] = 3, w[STRIDED_P] = BITS_OF(1.f);
  const u32 words[] = {rows, columns, layers, 1, rows, rows * columns, 2,     2 * rows, 1, 1,
                       0,    rows,    z,      x, y,    z + all,        x + 5, y + 7};
  std::copy(std::begin(words), std::end(words), w + STRIDED_ITEMS);
  launch([&] { strided(l, w, FN_MUL, flags, count, shared); });
  for (u32 e = 0; e < count; e++)
    for (u32 i = 0; i < all; i++) {
      const u32 row = i % rows, column = i / rows % columns, layer = i / rows / columns;
      const u32 at = z + e * all + i;
      const double old = flags & FLAG_ACC ? before[at] : 0;
      expect("elements along axes", e, i, memory[at],
             old + (double)before[x + 5 * e + 2 * row + 2 * rows * column + layer] *
                       before[y + 7 * e + row + rows * layer]);
    }
  for (u32 e = z + count * all; e < z + count * all + 64; e++)
    expect("what lies after the elements", count, e, memory[e], before[e]);
}

// Where element (i, j) of an operand of Gemm is: by rows, by columns, or neither.
struct View {
  u32 row, col;
  View(u32 kind, u32 rows, u32 cols)
      : row(kind == 0   ? 1
            : kind == 1 ? cols
                        : 2),
        col(kind == 0   ? rows
            : kind == 1 ? 1
                        : 2 * rows + 3) {}
  u32 at(u32 i, u32 j) const { return i * row + j * col; }
};

// Products of two operands. Added to what is there, the last item adds to the first one's result.
void try_gemm(u32 m, u32 n, u32 depth, u32 kind, u32 count, u32 flags = FLAG_ACC | FLAG_BIAS) {
  const Launch l = fresh();
  const View a(kind % 3, m, depth), b(kind / 3, depth, n), c((kind + 1) % 3, m, n);
  Case place = {};
  const u32 matrices[] = {c.at(m, n), a.at(m, depth), b.at(depth, n)}, bias = FLOATS - m;
  std::vector<u32> w = {OP_GEMM, 0,     0,     m,     n,     depth,         c.row,
                        c.col,   a.row, a.col, b.row, b.col, BITS_OF(2.0f), bias};
  if (w.size() != GEMM_ITEMS)
    std::abort();
  const bool again = count > 1 && flags & FLAG_ACC;
  for (u32 i = 0; i < count; i++)
    for (u32 k = 0; k < 3; k++)
      w.push_back(i + 1 == count && k == 0 && again ? w[GEMM_ITEMS] : place.place(matrices[k]));
  w[0] |= flags << 16, w[1] = count << 16;
  const auto set = [](u32 at, float x) { memory[at] = before[at] = x; };
  set(w[GEMM_ITEMS + 1] + a.at(m / 2, depth / 2), FLT_MAX); // whose high part would be infinite
  for (u32 j = 0; j < n; j++)
    set(w[GEMM_ITEMS + 2] + b.at(depth / 2, j), 2e-38f);
  alignas(16) static float scratch[4 * THREADS];
  launch([&] { gemm(l, w.data(), flags, count, shared, scratch); });
  for (u32 e = 0; e + again < count; e++)
    for (u32 i = 0; i < m; i++)
      for (u32 j = 0; j < n; j++) {
        const u32 at = w[GEMM_ITEMS + 3 * e] + c.at(i, j);
        double y = flags & FLAG_ACC ? before[at] : 0;
        for (u32 other = e; other < count; other += e == 0 && again ? count - 1 : count) {
          y += flags & FLAG_BIAS ? before[bias + i] : 0;
          const u32 *item = &w[GEMM_ITEMS + 3 * other];
          for (u32 k = 0; k < depth; k++)
            y += 2.0 * before[item[1] + a.at(i, k)] * before[item[2] + b.at(k, j)];
        }
        expect("a product of two operands", e, i * n + j, memory[at], y);
      }
}

} // namespace

int main() {
  for (u32 kind = 0; kind < 9; kind++) {
    try_gemm(1, 1, 70, kind, 1);
    try_gemm(1, 300, 20, kind, 2);
    try_gemm(70, 3, 37, kind, 3);
    try_gemm(1, 20, 256, kind, 3, 0);
    try_gemm(20, 1, 200, kind, 1);
    try_gemm(250, 2, 21, kind, 2, FLAG_BIAS);
    try_gemm(33, 17, 100, kind, 3);
    try_gemm(20, 50, 5, kind, 1);
    try_gemm(16, 12, 19, kind, 2);
    try_gemm(64, 32, 32, kind, 2);
    try_gemm(40, 70, 150, kind, 2);
    try_gemm(64, 64, 96, kind, 3);
    try_gemm(64, 64, 80, kind, 1); // one group has a stage more
    try_gemm(60, 132, 48, kind, 1);
    try_gemm(320, 40, 20, kind, 2);
  }
  for (u32 n : {1, 5, 33, 100})
    for (u32 stride : {1, 3})
      try_all_rows(n, stride);
  for (u32 n : {2100, 4096}) // all threads', with less and with no rest
    try_log_sums(n, 1);
  try_searches(2100, 1, {1, 3});
  for (u32 terms : {1, 33, 800})
    for (bool neighbours : {false, true}) {
      try_strided(1, terms / 2 + 1, 3, neighbours, terms == 33 ? FLAG_ACC : 0); // few sums
      try_strided(3, terms, 3, neighbours, 0);
      for (u32 outputs : {1, 40})
        try_strided(outputs, terms, 1, neighbours, 0);
      try_strided(40, terms, 2, neighbours, FLAG_ACC);
    }
  for (u32 n : {1, 100, 1023, 1024, 1025, 4000})
    try_map(n, n % 3 + 1, n % 2 ? FLAG_ACC : 0);
  for (u32 n : {1, 31, 32, 200, 600, 1027})
    for (u32 slots : {5, 8, 9, 16, 17, 32})
      for (u32 count : {1, 3})
        try_chain(n, slots, count, slots % 2 == count % 2);
  for (u32 rows : {1, 32, 33, 64, 65, 100, 300, 301, 512})
    for (u32 columns : {1, 5})
      try_axes(rows, columns, columns == 5 && rows > 64 ? 7 : 1, rows % 2 ? FLAG_ACC : 0);
  for (u32 count : {1, 3, 17}) {
    try_product<4, 128, 16>({70, 128, 64, count});
    try_product<2, 96, 16>({64, 96, 0, count});
    try_transposed<4, 128>({70, 128, 64, count});
    try_transposed<2, 96>({64, 96, 0, count});
  }
  try_product<8, 64, 8>({96, 64, 0, 9});
  try_product<1, 512, 8>({21, 512, 8, 5});
  try_transposed<8, 64>({96, 64, 0, 9});
  try_transposed<1, 32>({21, 32, 8, 5});
  try_transposed<2, 512>({70, 512, 48, 16});
  for (u32 count : {1, 2, 4, 7, 33, 36}) // straight from memory, in stages, and both
    for (u32 apart : {0, 1}) {
      try_beyond(80, 70, 3, count, apart);
      try_beyond(78, 20, 1, count, apart); // rows that are no multiple of 4
    }
  for (u32 rows :
       {8, 12, 16, 20, 64, 300, 1400}) // whose threads are none to all of a warp, or more
    try_beyond(rows, rows < 300 ? 90 : 37, 1, rows % 8 ? 1 : 3, 0);
  try_beyond(260, 9, 2, 1, 0); // several warps have a block of columns
  for (u32 count : {1, 16, 17, 40, 65})
    for (bool blocks : {false, true}) {
      try_gradient({128, 64, 1, 1, 0}, count, blocks, false);      // two blocks
      try_gradient({192, 128, 1, 5, 0}, count, blocks, false);     // one or two a processor
      try_gradient({64, 256, 0, 3, 0}, count, blocks, false);      // of few rows
      try_gradient({81, 84, 1, 2, 0}, count, blocks, count == 40); // less than whole ones
      try_gradient({31, 150, 0, 1, 0}, count, blocks, count == 40);
      try_gradient({73, 75, 1, 3, 1}, count, blocks, false); // not aligned
      try_gradient({45, 131, 0, 4, 1}, count, blocks, false);
    }
  for (u32 n : {1, 70, 512, 2000}) {
    try_sum(n, 2, 4, 0, FN_TANH, 0);
    try_sum(n, 2, 16, 1, FN_TANH_B, 0);
    try_sum(n, 1, 33, 3, FN_COPY, FLAG_ACC);
  }
  std::printf("%u cases, %u wrong numbers\n", cases, wrong);
  return wrong != 0;
}
