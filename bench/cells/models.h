// The host's side: trees, the stages of two models, and the script of a batch.
#pragma once
#include "script.h"
#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

// Nodes of a binary tree, children first. A leaf has no children.
struct Tree {
  std::vector<int> left, right, height; // left < 0: a leaf
  size_t size() const { return left.size(); }
};

// One tree a line, in prefix order: 1 is an inner node, 0 a leaf.
inline std::vector<Tree> read_trees(const char *file) {
  std::ifstream in(file);
  std::vector<Tree> trees;
  for (std::string s; std::getline(in, s);) {
    Tree t;
    std::vector<int> stack; // read from the end, prefix order has the children before the parent
    for (size_t i = s.size(); i-- > 0;) {
      int l = -1, r = -1, h = 0;
      if (s[i] == '1') {
        if (stack.size() < 2)
          throw std::runtime_error(std::string(file) + ": a line is no binary tree");
        l = stack.back(), stack.pop_back();
        r = stack.back(), stack.pop_back();
        h = 1 + std::max(t.height[l], t.height[r]);
      }
      stack.push_back((int)t.size());
      t.left.push_back(l), t.right.push_back(r), t.height.push_back(h);
    }
    if (stack.size() != 1)
      throw std::runtime_error(std::string(file) + ": a line is no binary tree");
    trees.push_back(t);
  }
  if (trees.empty())
    throw std::runtime_error(std::string("no trees in ") + file);
  return trees;
}

// A lane of a chain, of a load and of a gather. Operands are positions in the record.
struct Micro {
  u32 to, function, a, b, c, d, store = NOWHERE, operand = 0, shift = 0;
};
struct Load {
  u32 to, operand, shift = 0;
};
struct Gather {
  u32 operand, shift = 0;
};
typedef std::vector<std::vector<Micro>> Chain;

// Writes stages one after another.
struct Stages {
  std::vector<u32> words;

  u32 add(u32 record, const std::vector<Gather> &gathers, u32 shape,
          const std::vector<Load> &early_loads, const std::vector<Load> &loads,
          const Chain &chain) {
    Stage s = {};
    s.gathers = (u32)gathers.size(), s.record = record, s.shape = shape;
    s.chunk = s.gathers ? std::min(STAGED / s.gathers, 16u) : 1u << 20;
    s.reciprocal = s.gathers ? 65536 / s.gathers + 1 : 0;
    for (size_t j = 0; j < gathers.size(); j++)
      s.pattern[j / 4] |= (gathers[j].operand | gathers[j].shift << 4) << 8 * (j % 4);
    s.bundles = (u32)chain.size();
    u32 at = (u32)words.size();
    words.resize(at + sizeof s / 4);
    s.loads_at = (u32)words.size();
    s.early_loads = add(early_loads), s.loads = s.early_loads + add(loads);
    s.bundles_at = (u32)words.size();
    for (u32 b = 0; b < s.bundles; b++) {
      if (chain[b].size() > LANES)
        throw std::runtime_error("a bundle has too many micro-operations");
      for (u32 i = 0; i < LANES; i++)
        add(s, b, i < chain[b].size() ? chain[b][i] : Micro{TRASH, PLAIN, ZERO, ZERO, ZERO, ZERO});
    }
    words.resize(words.size() + LANES * sizeof(MicroWords) / 4); // what is read ahead
    std::copy((u32 *)&s, (u32 *)(&s + 1), words.begin() + at);
    return at;
  }

private:
  u32 add(const std::vector<Load> &loads) {
    u32 bundles = (u32)(loads.size() + LANES - 1) / LANES;
    for (size_t i = 0; i < bundles * LANES; i++) {
      Load l = i < loads.size() ? loads[i] : Load{TRASH, 0, 0};
      words.push_back(4 * l.to | 4 * l.operand << 8 | l.shift << 16);
    }
    return bundles;
  }
  void add(Stage &s, u32 bundle, const Micro &m) {
    for (u32 w : {4 * m.a | 4 * m.b << 16, 4 * m.c | 4 * m.d << 16,
                  4 * m.to | m.function << 16 | m.store << 24, 4 * m.operand | m.shift << 16})
      words.push_back(w);
    s.functions |= (m.function != PLAIN) << bundle;
    s.stores |= (m.store != NOWHERE) << bundle;
    if (m.store == PUBLISH)
      s.early = bundle + 1;
  }
};

// A model by its stages. Records, in the order of their words:
//   forward   h of left, h of right, c of left, c of right, h, c, kept
//   derive    gradient of h, of c, kept, gradients of gates, gradient of c of left, of right
//   back      gradients of gates, loss's gradient of left, of right, gradient of h of left, right
//   leaf      gradient of h, of c, where both are published
struct Model {
  const char *name;
  u32 matrices, gates, kept; // kept: own values from forward to backward
  bool cell;                 // has a c besides h
  Stages stages;
  u32 forward, derive, back, leaf;
};

// i, o, u read [h of left; h of right], a forget gate its child:
// c = i u + f1 c1 + f2 c2, h = o tanh c. Matrices: i, o, u, f of left, then of right.
inline Model tree_lstm() {
  Model m = {"treelstm", 8, 5, 8, true, {}, 0, 0, 0, 0};
  enum { C1 = 10, C2, I = 20, O, U, F1, F2, P, C, T, H, DI, DO, DU, D1, D2, DT };
  m.forward = m.stages.add(7, {{0}, {1}}, TWO_BY_FOUR, {}, {{C1, 2}, {C2, 3}},
                           {{{I, LOGISTIC, ONE, 0, ONE, 4},
                             {O, LOGISTIC, ONE, 1, ONE, 5},
                             {U, TANH, ONE, 2, ONE, 6},
                             {F1, LOGISTIC, ONE, 3, ZERO, ZERO},
                             {F2, LOGISTIC, ONE, 7, ZERO, ZERO}},
                            {{P, PLAIN, I, U, F1, C1}},
                            {{C, PLAIN, F2, C2, ONE, P, OWN, 5}, {T, TANH, F2, C2, ONE, P}},
                            {{H, PLAIN, O, T, ZERO, ZERO, PUBLISH, 4}},
                            {{DI, LOGISTIC_SLOPE, ONE, I, ZERO, ZERO},
                             {DO, LOGISTIC_SLOPE, ONE, O, ZERO, ZERO},
                             {DU, TANH_SLOPE, ONE, U, ZERO, ZERO},
                             {D1, LOGISTIC_SLOPE, ONE, F1, ZERO, ZERO},
                             {D2, LOGISTIC_SLOPE, ONE, F2, ZERO, ZERO},
                             {DT, TANH_SLOPE, ONE, T, ZERO, ZERO}},
                            {{TRASH, PLAIN, U, DI, ZERO, ZERO, OWN, 6, 0},
                             {TRASH, PLAIN, T, DO, ZERO, ZERO, OWN, 6, 1},
                             {TRASH, PLAIN, I, DU, ZERO, ZERO, OWN, 6, 2},
                             {TRASH, PLAIN, O, DT, ZERO, ZERO, OWN, 6, 3},
                             {TRASH, PLAIN, C1, D1, ZERO, ZERO, OWN, 6, 4},
                             {TRASH, PLAIN, C2, D2, ZERO, ZERO, OWN, 6, 5},
                             {TRASH, PLAIN, ONE, F1, ZERO, ZERO, OWN, 6, 6},
                             {TRASH, PLAIN, ONE, F2, ZERO, ZERO, OWN, 6, 7}}});
  enum { DH = 10, DC, K, DA = 20 }; // K: eight kept values; DA: gradient of c with h's part
  m.derive = m.stages.add(
      6, {}, NO_TERMS,
      {{K, 2, 0},
       {K + 1, 2, 1},
       {K + 2, 2, 2},
       {K + 3, 2, 3},
       {K + 4, 2, 4},
       {K + 5, 2, 5},
       {K + 6, 2, 6},
       {K + 7, 2, 7}},
      {{DH, 0}, {DC, 1}},
      {{{DA, PLAIN, ONE, DC, DH, K + 3}, {TRASH, PLAIN, DH, K + 1, ZERO, ZERO, PUBLISH, 3, 1}},
       {{TRASH, PLAIN, DA, K, ZERO, ZERO, PUBLISH, 3, 0},
        {TRASH, PLAIN, DA, K + 2, ZERO, ZERO, PUBLISH, 3, 2},
        {TRASH, PLAIN, DA, K + 4, ZERO, ZERO, PUBLISH, 3, 3},
        {TRASH, PLAIN, DA, K + 5, ZERO, ZERO, PUBLISH, 3, 4},
        {TRASH, PLAIN, DA, K + 6, ZERO, ZERO, OWN, 4},
        {TRASH, PLAIN, DA, K + 7, ZERO, ZERO, OWN, 5}}});
  // Matrices of backward: i of left, of right, o, u, f likewise; the two f read different gates.
  m.back = m.stages.add(
      5, {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}}, FIVE_TO_TWO, {}, {{10, 1}, {11, 2}},
      {{{TRASH, PLAIN, ONE, 0, ONE, 10, OWN, 3}, {TRASH, PLAIN, ONE, 1, ONE, 11, OWN, 4}}});
  m.leaf = m.stages.add(3, {}, NO_TERMS, {}, {{10, 0}, {11, 1}},
                        {{{TRASH, PLAIN, ONE, 10, ZERO, ZERO, PUBLISH, 2, 0},
                          {TRASH, PLAIN, ONE, 11, ZERO, ZERO, PUBLISH, 2, 1}}});
  return m;
}

// h = tanh(W [h of left; h of right] + b). Matrices: of left, of right.
inline Model tree_rnn() {
  Model m = {"treernn", 2, 1, 1, false, {}, 0, 0, 0, 0};
  enum { H = 20, D, DH = 10, K = 12 };
  m.forward = m.stages.add(
      7, {{0}, {1}}, TWO_BY_ONE, {}, {},
      {{{H, TANH, ONE, 0, ONE, 1, PUBLISH, 4}}, {{D, TANH_SLOPE, ONE, H, ZERO, ZERO, OWN, 6}}});
  m.derive = m.stages.add(6, {}, NO_TERMS, {{K, 2}}, {{DH, 0}},
                          {{{TRASH, PLAIN, DH, K, ZERO, ZERO, PUBLISH, 3}}});
  m.back = m.stages.add(
      5, {{0}}, ONE_BY_TWO, {}, {{10, 1}, {11, 2}},
      {{{TRASH, PLAIN, ONE, 0, ONE, 10, OWN, 3}, {TRASH, PLAIN, ONE, 1, ONE, 11, OWN, 4}}});
  m.leaf = m.stages.add(3, {}, NO_TERMS, {}, {{10, 0}},
                        {{{TRASH, PLAIN, ONE, 10, ZERO, ZERO, PUBLISH, 2, 0}}});
  return m;
}

// Where things are in memory, in floats. Inputs come first, then what is published.
struct Layout {
  u32 rows, columns, row_biases, column_biases; // column_biases: zeros
  u32 leaf_h, leaf_c, loss, zero;               // loss: the loss's gradient of every node's h
  u32 published, h, gates, leaf_gradients, spilled, end; // spilled: own values without room
};
struct Level {
  u32 cells, at, words; // at: number of the instruction; words: instructions of the level
};
struct Part {
  Group group;
  std::vector<Level> forward, backward;
  u32 instructions;
};

// The script of a batch: trees to groups, nodes of a group by height.
struct Batch {
  Layout at = {};
  std::vector<u32> words;
  std::vector<Part> parts;
  std::vector<std::vector<int>> leaf, inner; // number of a tree's node among leaves or inner nodes
  u32 leaves = 0, inners = 0, longest = 0, most_own = 0;

  // own: own values of a unit that have room in shared memory, given the words of a script.
  template <class Room>
  Batch(const Model &m, const std::vector<const Tree *> &trees, u32 groups, Room room) {
    std::vector<std::vector<int>> members(groups);
    divide(trees, members);
    leaf.resize(trees.size()), inner.resize(trees.size());
    for (size_t i = 0; i < trees.size(); i++)
      for (size_t v = 0; v < trees[i]->size(); v++) {
        bool in = trees[i]->left[v] >= 0;
        leaf[i].push_back(in ? -1 : (int)leaves++), inner[i].push_back(in ? (int)inners++ : -1);
      }
    lay_out(m);
    for (auto &g : members)
      write(m, trees, g, room);
  }

private:
  void divide(const std::vector<const Tree *> &trees, std::vector<std::vector<int>> &members) {
    std::vector<int> order;
    for (size_t i = 0; i < trees.size(); i++)
      order.push_back((int)i);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return trees[a]->size() != trees[b]->size() ? trees[a]->size() > trees[b]->size() : a < b;
    });
    std::vector<size_t> load(members.size());
    for (int i : order) {
      size_t g = std::min_element(load.begin(), load.end()) - load.begin();
      members[g].push_back(i), load[g] += trees[i]->size();
    }
  }
  void lay_out(const Model &m) {
    u32 p = 0;
    auto take = [&](u32 vectors) {
      u32 x = p;
      p += vectors * WIDTH;
      return x;
    };
    at.rows = take(SLOTS * WIDTH), at.columns = take(SLOTS * WIDTH);
    at.row_biases = take(SLOTS), at.column_biases = take(SLOTS);
    at.leaf_h = take(leaves), at.leaf_c = take(leaves), at.loss = take(leaves + inners);
    at.zero = take(1);
    at.published = p;
    at.h = take(inners), at.gates = take(inners * m.gates), at.leaf_gradients = take(leaves * 2);
    at.spilled = take(inners * m.kept + 2 * leaves + 2 * inners);
    at.end = p;
  }

  template <class Room>
  void write(const Model &m, const std::vector<const Tree *> &trees, const std::vector<int> &group,
             Room room) {
    struct Node {
      int tree, node;
    };
    std::vector<std::vector<Node>> levels(1);
    for (int i : group)
      for (size_t v = 0; v < trees[i]->size(); v++) {
        size_t h = (size_t)trees[i]->height[v];
        levels.resize(std::max(levels.size(), h + 1));
        levels[h].push_back({i, (int)v});
      }
    u32 cells = 0, tall = (u32)levels.size() - 1;
    for (u32 h = 1; h <= tall; h++)
      cells += (u32)levels[h].size();
    Part part = {};
    part.instructions = 2 + tall * 3 + 1;
    u32 bottom = (u32)levels[0].size();
    enum { INSTRUCTION = sizeof(Instruction) / 4 };
    u32 size = (part.instructions + 1) * INSTRUCTION + cells * (7 + 6 + 5) + bottom * 3;
    // Own values: one is always zero; gradients, and c in place of its gradient; what is kept.
    // The highest levels come last forward and first backward, so they have room first.
    u32 left = room(size), own = 0, spilled = 0;
    std::vector<std::vector<u32>> value(trees.size()), kept(trees.size());
    for (int i : group)
      value[i].resize(trees[i]->size()), kept[i].resize(trees[i]->size());
    auto take = [&](u32 n) {
      if (own + n <= left) {
        u32 x = own * 4;
        own += n;
        return x;
      }
      u32 x = (at.spilled + (spilled_before + spilled) * WIDTH) * 4 | MEMORY;
      spilled += n;
      return x;
    };
    for (u32 h = tall + 1; h-- > 0;)
      for (Node n : levels[h])
        value[n.tree][n.node] = take(2);
    for (u32 h = tall; h > 0; h--)
      for (Node n : levels[h])
        kept[n.tree][n.node] = take(m.kept);
    spilled_before += spilled;
    auto second = [](u32 v) { return v & MEMORY ? v + 4 * WIDTH : v + 4; };
    auto memory = [](u32 base, u32 vector) { return (base + vector * WIDTH) * 4 | MEMORY; };
    auto h_of = [&](int i, int v) {
      return leaf[i][v] >= 0 ? memory(at.leaf_h, leaf[i][v]) : memory(at.h, inner[i][v]);
    };
    auto c_of = [&](int i, int v) {
      return leaf[i][v] >= 0 ? memory(at.leaf_c, leaf[i][v]) : second(value[i][v]);
    };
    auto loss_of = [&](int i, int v) {
      return memory(at.loss, leaf[i][v] >= 0 ? leaf[i][v] : leaves + inner[i][v]);
    };
    u32 begin = (u32)words.size();
    std::vector<Instruction> code;
    std::vector<u32> records;
    u32 base = (part.instructions + 1) * INSTRUCTION;
    auto cell = [&](u32 stage, u32 n) {
      code.push_back({OP_CELL, stage, n, base + (u32)records.size(), 0, 0, 0, 0});
    };
    code.push_back({OP_MATRICES, at.rows, m.matrices, at.row_biases, 0, 0, 0, 0});
    for (u32 h = 1; h <= tall; h++) {
      part.forward.push_back({(u32)levels[h].size(), (u32)code.size(), 1});
      cell(m.forward, (u32)levels[h].size());
      for (Node n : levels[h]) {
        int i = n.tree, v = n.node, l = trees[i]->left[v], r = trees[i]->right[v];
        for (u32 w : {h_of(i, l), h_of(i, r), c_of(i, l), c_of(i, r), h_of(i, v),
                      second(value[i][v]), kept[i][v]})
          records.push_back(w);
      }
    }
    code.push_back({OP_MATRICES, at.columns, m.matrices, at.column_biases, 0, 0, 0, 0});
    std::vector<std::vector<char>> root(trees.size());
    for (int i : group) {
      root[i].assign(trees[i]->size(), 0);
      root[i].back() = 1;
    }
    for (u32 h = tall; h > 0; h--) {
      part.backward.push_back({(u32)levels[h].size(), (u32)code.size(), 2});
      cell(m.derive, (u32)levels[h].size());
      for (Node n : levels[h]) {
        int i = n.tree, v = n.node, l = trees[i]->left[v], r = trees[i]->right[v];
        for (u32 w :
             {root[i][v] ? loss_of(i, v) : value[i][v],
              root[i][v] ? memory(at.zero, 0) : second(value[i][v]), kept[i][v],
              memory(at.gates, inner[i][v] * m.gates), second(value[i][l]), second(value[i][r])})
          records.push_back(w);
      }
      cell(m.back, (u32)levels[h].size());
      for (Node n : levels[h]) {
        int i = n.tree, v = n.node, l = trees[i]->left[v], r = trees[i]->right[v];
        for (u32 w : {memory(at.gates, inner[i][v] * m.gates), loss_of(i, l), loss_of(i, r),
                      value[i][l], value[i][r]})
          records.push_back(w);
      }
    }
    cell(m.leaf, bottom);
    for (Node n : levels[0]) {
      int i = n.tree, v = n.node;
      bool alone = trees[i]->size() == 1;
      records.push_back(alone ? loss_of(i, v) : value[i][v]);
      records.push_back(alone ? memory(at.zero, 0) : second(value[i][v]));
      records.push_back(memory(at.leaf_gradients, 2 * leaf[i][v]));
    }
    code.push_back({OP_END, 0, 0, 0, 0, 0, 0, 0});
    look_ahead(m, code);
    if (code.size() != part.instructions + 1 || code.size() * INSTRUCTION + records.size() != size)
      throw std::runtime_error("a script has another size than was said");
    words.insert(words.end(), (u32 *)code.data(), (u32 *)(code.data() + code.size()));
    words.insert(words.end(), records.begin(), records.end());
    while (words.size() % 4)
      words.push_back(0);
    part.group = {begin, size, own | 1u, 0}; // odd: units in different banks
    parts.push_back(part);
    longest = std::max(longest, (size + 3) / 4 * 4), most_own = std::max(most_own, own | 1u);
  }
  // Each gather's addresses are found by the gathering instruction before, or the matrices' load;
  // the loads begin when the instruction directly before has published.
  static void look_ahead(const Model &m, std::vector<Instruction> &code) {
    auto gathers = [&](const Instruction &x) {
      return x.op == OP_CELL && m.stages.words[x.stage] > 0; // Stage's first word
    };
    for (size_t i = 1, decoder = 0; i < code.size(); i++) {
      if (gathers(code[i])) {
        Instruction &d = code[decoder];
        d.flags |= DECODE;
        d.gather_stage = code[i].stage, d.gather_n = code[i].n, d.gather_first = code[i].first;
        code[i - 1].flags |= ISSUE;
      }
      if (gathers(code[i]) || code[i].op == OP_MATRICES)
        decoder = i;
    }
  }
  u32 spilled_before = 0;
};
