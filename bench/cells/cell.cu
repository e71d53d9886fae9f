// An experiment: can an interpreted CELL instruction keep up with a kernel written by hand for one
// model? Runs the recurrence of a Tree-LSTM and of a recursive net, forward and backward, as two
// scripts of one kernel; compares with float64 on the CPU; prints times as CSV.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 bench/cells/cell.cu -o cell
//   ./cell bench/cells/shapes.txt > cells.csv
//
// Exit code 1: a result is wrong. 2: no device, or no trees.
#include "kernel.cuh"
#include "reference.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#define CHECK(X)                                                                                   \
  do {                                                                                             \
    cudaError_t error = (X);                                                                       \
    if (error != cudaSuccess) {                                                                    \
      fprintf(stderr, "%s at line %d: %s\n", #X, __LINE__, cudaGetErrorString(error));             \
      exit(2);                                                                                     \
    }                                                                                              \
  } while (0)

enum : u32 { PROCESSORS = 128, SHARED = 232448, MOST_CLOCKS = 4096 };

struct Kernel {
  u32 group, threads; // group: processors of one
  void *function;
};

struct Random {
  u32 state;
  float next(float scale) {
    state = state * 1664525u + 1013904223u;
    return ((state >> 8) * (2.0f / 16777216) - 1) * scale;
  }
};

// What a batch's script reads: matrices as rows and as columns, leaves, gradients of the loss.
static std::vector<float> inputs(const Model &m, const Batch &b, u32 seed) {
  std::vector<float> x(b.at.published);
  Random r = {seed};
  const u32 side = m.cell ? 4 : 1;
  for (u32 s = 0; s < m.matrices; s++) {
    u32 column = m.cell ? 2 * (s % side) + s / side : s;
    for (u32 k = 0; k < WIDTH; k++)
      for (u32 j = 0; j < WIDTH; j++) {
        float w = r.next(0.09f);
        x[b.at.rows + (s * WIDTH + k) * WIDTH + j] = w;
        x[b.at.columns + (column * WIDTH + j) * WIDTH + k] = w;
      }
  }
  for (u32 i = 0; i < SLOTS * WIDTH; i++)
    x[b.at.row_biases + i] = r.next(0.1f);
  for (u32 i = b.at.leaf_h; i < b.at.loss; i++)
    x[i] = r.next(0.5f);
  for (u32 i = b.at.loss; i < b.at.zero; i++)
    x[i] = r.next(0.1f);
  return x;
}

class Device {
public:
  Device() {
    CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    CHECK(cudaMalloc(&clocks, 8 * MOST_CLOCKS * sizeof(long long)));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  void put(const Model &m, const Batch &b, const std::vector<float> &in) {
    std::vector<Group> groups;
    for (auto &p : b.parts)
      groups.push_back(p.group);
    reserve(memory, room[0], b.at.end * sizeof(float));
    reserve(script, room[1], b.words.size() * 4);
    reserve(stages, room[2], m.stages.words.size() * 4);
    reserve(parts, room[3], groups.size() * sizeof(Group));
    copy(memory, in.data(), in.size() * 4);
    copy(script, b.words.data(), b.words.size() * 4);
    copy(stages, m.stages.words.data(), m.stages.words.size() * 4);
    copy(parts, groups.data(), groups.size() * sizeof(Group));
    launch = {memory,    script, stages,     parts, (u32)m.stages.words.size(),
              b.longest, clocks, MOST_CLOCKS};
    batch = &b;
  }
  // Returns the kernel's time in µs.
  float run(const Kernel &k) {
    const Layout &at = batch->at;
    CHECK(cudaMemset(memory + at.published, 0xFF, (size_t)(at.end - at.published) * 4));
    void *arguments[] = {&launch};
    CHECK(cudaEventRecord(begin));
    CHECK(cudaLaunchCooperativeKernel(k.function, dim3(PROCESSORS), dim3(k.threads), arguments,
                                      SHARED, nullptr));
    CHECK(cudaEventRecord(end));
    CHECK(cudaDeviceSynchronize());
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms * 1e3f;
  }
  std::vector<float> fetch(u32 at, size_t floats) const {
    std::vector<float> x(floats);
    CHECK(cudaMemcpy(x.data(), memory + at, floats * 4, cudaMemcpyDeviceToHost));
    return x;
  }
  // Stamps of a group, in µs.
  std::vector<double> stamps(u32 group, u32 n) const {
    std::vector<long long> c(n);
    CHECK(cudaMemcpy(c.data(), clocks + group * MOST_CLOCKS, n * 8, cudaMemcpyDeviceToHost));
    std::vector<double> us;
    for (long long x : c)
      us.push_back((x - c[0]) * 1e3 / khz);
    return us;
  }

private:
  template <class T> static void reserve(T *&p, size_t &has, size_t bytes) {
    if (bytes <= has)
      return;
    CHECK(cudaFree(p));
    CHECK(cudaMalloc(&p, bytes));
    has = bytes;
  }
  static void copy(void *to, const void *from, size_t bytes) {
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  }
  float *memory = nullptr;
  u32 *script = nullptr, *stages = nullptr;
  Group *parts = nullptr;
  long long *clocks = nullptr;
  size_t room[4] = {};
  int khz = 0;
  cudaEvent_t begin, end;
  Launch launch = {};
  const Batch *batch = nullptr;
};

static Batch make(const Model &m, const Kernel &k, const std::vector<const Tree *> &trees) {
  const u32 warps = k.threads / 32;
  const u32 fixed = 2 * STAGED * WIDTH + warps * ITEMS * FILE_WORDS + (u32)m.stages.words.size();
  // A tenth more words than this group's, since the longest group's script has to fit.
  Batch b(m, trees, PROCESSORS / k.group, [&](u32 words) {
    u32 taken = fixed + words + words / 10 + 64;
    return taken < SHARED / 4 ? (SHARED / 4 - taken) / warps : 0;
  });
  if ((fixed + b.longest + warps * b.most_own) * 4 > SHARED)
    throw std::runtime_error("a script has no room in shared memory");
  for (auto &p : b.parts)
    if ((p.instructions + 1) * STAMPS > MOST_CLOCKS)
      throw std::runtime_error("a script has too many instructions");
  return b;
}

// The largest difference, of the largest value. A word that was never published gives infinity.
static double difference(const std::vector<float> &x, const std::vector<double> &y) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < y.size(); i++) {
    double d = std::fabs(x[i] - y[i]);
    worst = d == d ? std::max(worst, d) : INFINITY;
    largest = std::max(largest, std::fabs(y[i]));
  }
  return worst / largest;
}

static bool check(Device &d, const Model &m, const Kernel &k, const std::vector<const Tree *> &t) {
  Batch b = make(m, k, t);
  std::vector<float> in = inputs(m, b, 1);
  d.put(m, b, in);
  d.run(k);
  Reference r(m, b, t, in.data());
  double h = difference(d.fetch(b.at.h, r.h.size()), r.h);
  double gates = difference(d.fetch(b.at.gates, r.gates.size()), r.gates);
  std::vector<float> leaves = d.fetch(b.at.leaf_gradients, r.leaf_gradients.size());
  if (!m.cell) // there is no gradient of c
    for (size_t i = 0; i < leaves.size(); i++)
      if (i / WIDTH % 2)
        leaves[i] = 0;
  double leaf = difference(leaves, r.leaf_gradients);
  bool right = h < 1e-5 && gates < 1e-5 && leaf < 1e-5;
  printf("check,%s,%zu,%u,%.1e,%.1e,%.1e,%s\n", m.name, t.size(), k.group, h, gates, leaf,
         right ? "right" : "WRONG");
  fflush(stdout);
  return right;
}

static double median(std::vector<double> v) {
  if (v.empty())
    return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Times {
  std::vector<double> kernel, load, forward, turn, backward, leaves, levels, cells, one[2];
  std::map<u32, std::vector<double>> level[2]; // by cells of the level: forward, backward
  std::vector<double> part[2][STAMPS];         // of levels of one cell
};

// Adds what group 0's stamps say.
static void add(Times &t, const Part &p, const std::vector<double> &c) {
  auto before = [&](u32 instruction) { return c[instruction * STAMPS]; };
  u32 tall = (u32)p.forward.size();
  double cells = 0;
  for (int way = 0; way < 2; way++)
    for (auto &l : way ? p.backward : p.forward) {
      t.level[way][l.cells].push_back(before(l.at + l.words) - before(l.at));
      if (STAMPS > 1 && l.cells == 1) // backward: parts of the last instruction, then the first
        for (u32 i = 0; i < STAMPS; i++) {
          u32 s = (l.at + l.words - 1) * STAMPS + i;
          t.part[way][i].push_back(c[s + 1] - c[s]);
        }
      cells += way ? 0 : l.cells;
    }
  t.load.push_back(before(1));
  t.forward.push_back(before(1 + tall) - before(1));
  t.turn.push_back(before(2 + tall) - before(1 + tall));
  t.backward.push_back(before(2 + 3 * tall) - before(2 + tall));
  t.leaves.push_back(before(3 + 3 * tall) - before(2 + 3 * tall));
  t.levels.push_back(tall), t.cells.push_back(cells);
}

static double mean(const std::vector<double> &v) {
  double sum = 0;
  for (double x : v)
    sum += x;
  return v.empty() ? 0 : sum / v.size();
}

static void measure(Device &d, const Model &m, const Kernel &k, const std::vector<Tree> &trees,
                    u32 size, u32 batches, u32 repeats) {
  Times all;
  batches = std::min(batches, (u32)trees.size() / size);
  for (u32 i = 0; i < batches; i++) {
    std::vector<const Tree *> t;
    for (u32 j = 0; j < size; j++)
      t.push_back(&trees[i * size + j]);
    Batch b = make(m, k, t);
    d.put(m, b, inputs(m, b, i + 1));
    d.run(k);
    Times one;
    std::vector<double> level[2][256];
    for (u32 r = 0; r < repeats; r++) {
      Times x;
      x.kernel.push_back(d.run(k));
      add(x, b.parts[0], d.stamps(0, b.parts[0].instructions * STAMPS + 1));
      one.kernel.push_back(x.kernel[0]), one.load.push_back(x.load[0]);
      one.forward.push_back(x.forward[0]), one.turn.push_back(x.turn[0]);
      one.backward.push_back(x.backward[0]), one.leaves.push_back(x.leaves[0]);
      for (int way = 0; way < 2; way++) {
        for (auto &l : x.level[way])
          for (double us : l.second)
            all.level[way][l.first].push_back(us);
        for (u32 s = 0; s < STAMPS; s++)
          all.part[way][s].insert(all.part[way][s].end(), x.part[way][s].begin(),
                                  x.part[way][s].end());
      }
      if (r == 0)
        all.levels.push_back(x.levels[0]), all.cells.push_back(x.cells[0]);
    }
    all.kernel.push_back(median(one.kernel)), all.load.push_back(median(one.load));
    all.forward.push_back(median(one.forward)), all.turn.push_back(median(one.turn));
    all.backward.push_back(median(one.backward)), all.leaves.push_back(median(one.leaves));
  }
  double levels = mean(all.levels);
  printf("batch,%s,%u,%u,%.1f,%.1f,%.3f,%.3f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.3f\n", m.name, size,
         k.group, levels, mean(all.cells) / levels, mean(all.forward) / levels,
         mean(all.backward) / levels, mean(all.load), mean(all.forward), mean(all.turn),
         mean(all.backward), mean(all.leaves), mean(all.kernel), mean(all.kernel) / size);
  for (u32 n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
    if (all.level[0][n].size() > 2)
      printf("level,%s,%u,%u,%u,%.3f,%.3f,%zu\n", m.name, size, k.group, n, median(all.level[0][n]),
             median(all.level[1][n]), all.level[0][n].size());
  if (STAMPS > 1 && size == 1)
    for (int way = 0; way < 2; way++) {
      printf("part,%s,%u,%s", m.name, k.group, way ? "backward" : "forward");
      for (u32 s = 0; s < STAMPS; s++)
        printf(",%.3f", median(all.part[way][s]));
      printf("\n");
    }
  fflush(stdout);
}

int main(int arguments, char **argument) try {
  if (arguments < 2) {
    fprintf(stderr, "usage: %s shapes.txt [quick]\n", argument[0]);
    return 2;
  }
  const bool quick = arguments > 2 && !strcmp(argument[2], "quick");
  std::vector<Tree> trees = read_trees(argument[1]);
  const Kernel kernels[] = {{64, 128, (void *)interpret<128>},
                            {32, 256, (void *)interpret<256>},
                            {16, 512, (void *)interpret<512>}};
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  printf("device,%s,%d\n", device.name, device.multiProcessorCount);
  for (auto &k : kernels) {
    cudaFuncAttributes f;
    CHECK(cudaFuncGetAttributes(&f, k.function));
    CHECK(cudaFuncSetAttribute(k.function, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    printf("kernel,%u,%u,%d,%zu\n", k.group, k.threads, f.numRegs, f.localSizeBytes);
  }
  Device d;
  if (arguments > 2 && !strcmp(argument[2], "profile")) { // for ncu: a few runs of one sentence
    const Model m = tree_lstm();
    const Kernel &k = kernels[arguments > 3 ? atoi(argument[3]) : 0];
    Batch b = make(m, k, {&trees[0]});
    d.put(m, b, inputs(m, b, 1));
    for (int i = 0; i < 5; i++)
      d.run(k);
    return 0;
  }
  const Model models[] = {tree_lstm(), tree_rnn()};
  bool right = true;
  printf("check,model,batch,group,h,gates,leaf_gradients,verdict\n");
  if (!ABLATION)
    for (auto &m : models)
      for (auto &k : kernels)
        for (u32 n : {1u, 16u, 128u}) {
          if (n == 128 && (k.group != 16 || quick))
            continue;
          std::vector<const Tree *> t;
          for (u32 i = 0; i < n; i++)
            t.push_back(&trees[i % trees.size()]);
          right = check(d, m, k, t) && right;
        }
  printf("batch,model,batch,group,levels,cells_per_level,forward_us_per_level,"
         "backward_us_per_level,load_us,forward_us,turn_us,backward_us,leaves_us,kernel_us,"
         "us_per_sentence\n");
  printf("level,model,batch,group,cells,forward_us,backward_us,levels\n");
  for (auto &m : models)
    for (auto &k : kernels)
      for (u32 n : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u}) {
        bool asked = n == 1 || n == 16 || n == 128;
        if ((quick && !asked) || (n > 16 && k.group > 16))
          continue;
        measure(d, m, k, trees, n, n == 1 ? 50 : n <= 16 ? 16 : 4, quick ? 3 : 7);
      }
  return right ? 0 : 1;
} catch (const std::exception &e) {
  fprintf(stderr, "%s\n", e.what());
  return 2;
}
