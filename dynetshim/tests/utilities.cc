// The small headers that programs include: stopwatches, strings, word vectors, allocators,
// functions over tensors.
#include <dynet/c2w.h>
#include <dynet/device-structs.h>
#include <dynet/dynet.h>
#include <dynet/gpu-ops.h>
#include <dynet/index-tensor.h>
#include <dynet/mem.h>
#include <dynet/pretrain.h>
#include <dynet/saxe-init.h>
#include <dynet/str-util.h>
#include <dynet/timing.h>
#include <dynet/training.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

using namespace dynet;

namespace {

struct File {
  std::string name;
  explicit File(const std::string &text = "") : name("utilities.tmp") {
    std::ofstream(name.c_str()) << text;
  }
  ~File() { std::remove(name.c_str()); }
  std::string text() const {
    std::ifstream in(name.c_str());
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
};

} // namespace

TEST(stopwatches) {
  Timing timing;
  usleep(2000);
  CHECK(timing.stop() >= 2);
  timing.start();
  CHECK(timing.stop() < 2000);
  const std::string line = tests::printed(std::cerr, [] { Timer t("all"); });
  CHECK(line.compare(0, 5, "[all ") == 0 && line.substr(line.size() - 5) == " ms]\n");
  const std::string table = tests::printed(std::cout, [] {
    NamedTimer names;
    THROWS(std::invalid_argument, "'b' was not started", names.stop("b"));
    names.start("b");
    names.start("a");
    names.stop("b");
    names.stop("a");
    names.cumtimes["a"] = 1;
    names.cumtimes["b"] = 3;
  });
  EQUAL(table, "Timing Info:\n          1\t25%\ta\n          3\t75%\tb\n          4\t100%\t(total "
               "time)\n");
  EQUAL(tests::printed(std::cout, [] { NamedTimer unused; }), "");
  CHECK(timer.timers.empty());
}

TEST(strings) {
  CHECK(startswith("abc", "ab") && startswith("abc", "") && !startswith("abc", "bc"));
  CHECK(endswith("abc", "bc") && !endswith("c", "bc") && !endswith("abc", "ab"));
  const std::vector<std::string> parts = str_split(",a,,bc,", ',');
  CHECK(parts.size() == 2 && parts[0] == "a" && parts[1] == "bc");
  CHECK(str_split("", ',').empty());
}

TEST(word_vectors_are_written_and_read) {
  const File f;
  ParameterCollection m;
  Dict d;
  d.convert("a");
  d.convert("b");
  LookupParameter l = m.add_lookup_parameters(2, {2}, ParameterInitFromVector({1, -.5f, 3, 4}));
  save_pretrained_embeddings(f.name, d, l);
  EQUAL(f.text(), "a    1 -0.5\nb 3 4\n");
  Dict fresh;
  std::unordered_map<int, std::vector<float>> vectors;
  read_pretrained_embeddings(f.name, fresh, vectors);
  CHECK(vectors.size() == 2);
  CHECK(vectors[fresh.convert("a")] == (std::vector<float>{1, -.5f}));
  // A frozen dictionary takes its own words only, whether it has an unknown word or not.
  Dict frozen;
  frozen.convert("b");
  frozen.freeze();
  vectors.clear();
  read_pretrained_embeddings(f.name, frozen, vectors);
  CHECK(vectors.size() == 1 && vectors.count(0) == 1);
  frozen.set_unk("?");
  vectors.clear();
  read_pretrained_embeddings(f.name, frozen, vectors);
  CHECK(vectors.size() == 1 && vectors.count(0) == 1);
  d.convert("c");
  THROWS(std::invalid_argument, "3 words, but the table has 2",
         save_pretrained_embeddings(f.name, d, l));
  THROWS(std::invalid_argument, "cannot read", read_pretrained_embeddings("none", d, vectors));
}

TEST(damaged_word_vectors_are_refused) {
  Dict d;
  std::unordered_map<int, std::vector<float>> vectors;
  {
    const File f("a 1 2\nb 1\n");
    THROWS(std::runtime_error, "line 2", read_pretrained_embeddings(f.name, d, vectors));
  }
  const File f("a 1 x\n");
  THROWS(std::runtime_error, "'x' is no number", read_pretrained_embeddings(f.name, d, vectors));
}

TEST(allocators) {
  CPUAllocator cpu;
  EQUAL(cpu.round_up_align(33), 64u);
  void *mem = cpu.malloc(1024);
  CHECK(reinterpret_cast<std::uintptr_t>(mem) % 32 == 0);
  static_cast<char *>(mem)[1023] = 99;
  cpu.zero(mem, 1024);
  CHECK(static_cast<char *>(mem)[1023] == 0);
  cpu.free(mem);
  SharedAllocator shared;
  volatile char *both = static_cast<char *>(shared.malloc(16));
  const pid_t child = fork();
  if (child == 0) {
    both[0] = 7;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EQUAL(int(both[0]), 7);
}

TEST(sums_of_exponentials) {
  std::vector<float> x = {1, 2, 3, -1, 0, 5}, m(3), z(3);
  Tensor tx({2, 3}, x.data(), default_device, DeviceMempool::NONE);
  Tensor tm({3}, m.data(), default_device, DeviceMempool::NONE);
  Tensor tz({3}, z.data(), default_device, DeviceMempool::NONE);
  TensorTools::logsumexp(tx, tm, tz);
  for (size_t j = 0; j < 3; ++j) {
    EQUAL(m[j], std::max(x[2 * j], x[2 * j + 1]));
    CHECK(std::abs(z[j] - std::log(std::exp(x[2 * j]) + std::exp(x[2 * j + 1]))) < 1e-5);
  }
  Tensor rm({2}, m.data(), default_device, DeviceMempool::NONE);
  Tensor rz({2}, z.data(), default_device, DeviceMempool::NONE);
  TensorTools::logsumexp_dev(*default_device, tx, rm, rz, 1);
  EQUAL(m[1], 5);
  CHECK(std::abs(z[0] - std::log(std::exp(1.f) + std::exp(3.f) + 1)) < 1e-5);
  THROWS(std::invalid_argument, "size that is left", TensorTools::logsumexp(tx, tm, tz, 1));
  THROWS(std::invalid_argument, "one of its axes", TensorTools::logsumexp(tx, tm, tz, 2));
}

TEST(more_values_than_a_tensor_has_room_for) {
  float v[3] = {7, 7, 7};
  Tensor t(Dim({2}), v, default_device, DeviceMempool::NONE);
  TensorTools::set_elements(t, {1, 2, 3});
  CHECK(v[0] == 1 && v[1] == 2 && v[2] == 7);
}

// The only row of a scalar, named twice, is the whole support.
TEST(sparsemax_losses_of_a_scalar) {
  ComputationGraph cg;
  const std::vector<unsigned> support = {0, 0};
  const Expression x = input(cg, 3.f);
  const float loss = as_scalar(sparsemax_loss(x, support).value());
  CHECK(std::fabs(loss - (3.f - .5f - 3.f + .25f)) < 1e-5f);
}

// Where a logarithm would be of 0, DyNet takes one value whatever the label's weights.
TEST(binary_losses_at_the_ends) {
  const float most = -std::log(std::numeric_limits<float>::min());
  for (float x : {0.f, 1.f})
    for (float y : {0.f, .5f, 1.f}) {
      ComputationGraph cg;
      const float loss = as_scalar(binary_log_loss(input(cg, x), input(cg, y)).value());
      CHECK(std::fabs(loss - (x == y ? 0.f : most)) < 1e-4f);
    }
}

TEST(functions_with_a_device) {
  std::vector<float> x = {1, -2, 3};
  Tensor t({3}, x.data(), default_device, DeviceMempool::NONE);
  TensorTools::scale_dev(*default_device, t, 2, 1);
  TensorTools::clip_dev(*default_device, t, 0, 5);
  CHECK(x == (std::vector<float>{3, 0, 5}));
  TensorTools::accumulate_dev(*default_device, t, t);
  EQUAL(x[2], 10);
  IndexTensor best = TensorTools::argmax_dev(*default_device, t), copy = best;
  CHECK(copy.v != best.v && *copy.v == 2 && copy.device == default_device);
  best = IndexTensor({1}, copy.v, default_device, DeviceMempool::NONE);
  EQUAL(as_vector(best)[0], 2);
  TensorTools::uniform_to_bernoulli_dev(*default_device, t, 6);
  CHECK(x == (std::vector<float>{0, 1, 0}));
  TensorTools::constant_dev(*default_device, t, 4);
  EQUAL(TensorTools::topk_dev(*default_device, t).first.v[0], 4);
  EQUAL(TensorTools::categorical_sample_log_prob_dev(*default_device, t, 0, 2).d, "{2}");
}

TEST(a_random_orthonormal_matrix) {
  std::vector<float> x(9);
  Tensor t({3, 3}, x.data(), default_device, DeviceMempool::NONE);
  orthonormal_random(3, 2, t);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) {
      double dot = 0;
      for (size_t k = 0; k < 3; ++k)
        dot += double(x[3 * i + k]) * double(x[3 * j + k]);
      CHECK(std::abs(dot - (i == j ? 4 : 0)) < 1e-5);
    }
  THROWS(std::runtime_error, "3 rows, not 2", orthonormal_random(2, 1, t));
}

TEST(words_from_characters) {
  ParameterCollection m;
  C2WBuilder c2w(5, 1, 3, 4, m);
  CHECK(c2w.get_parameter_collection().parameters_list().size() == 6);
  ComputationGraph cg;
  c2w.new_graph(&cg);
  const VariableIndex word = c2w.add_word(7, {1, 2, 1}, &cg);
  EQUAL(cg.get_dimension(word), "{8}");
  const size_t nodes = cg.nodes.size();
  CHECK(c2w.add_word(7, {1, 2, 1}, &cg) == word && cg.nodes.size() == nodes);
  THROWS(std::invalid_argument, "word 8 has no characters", c2w.add_word(8, {}, &cg));
  // The right half has read the characters from the end.
  const VariableIndex back = c2w.add_word(9, {2, 1}, &cg), there = c2w.add_word(10, {1, 2}, &cg);
  CHECK(as_vector(cg.get_value(back)) != as_vector(cg.get_value(there)));
  cg.backward(sum_elems(Expression(&cg, word)));
  const std::unordered_set<unsigned> rows = c2w.p_lookup.p.unexposed()->non_zero_grads();
  CHECK(rows.size() == 2 && rows.count(1) && rows.count(2));
}

TEST(gradients_by_hand) {
  ParameterCollection m;
  LookupParameter l = m.add_lookup_parameters(3, {2}, ParameterInitConst(0));
  std::vector<float> g = {1, 2, 3, 4, 5, 6};
  const unsigned rows[] = {2, 0, 2};
  l.get_storage().accumulate_grads(3, rows, nullptr, g.data());
  CHECK(l.p.unexposed()->read(VPPS_GRADIENT) == (std::vector<float>{3, 4, 0, 0, 6, 8}));
  SimpleSGDTrainer t(m);
  t.clip_threshold = 2;
  CHECK(std::abs(t.clip_gradients() - 2 / std::sqrt(125.f)) < 1e-6);
  EQUAL(t.clips, 1);
  t.clipping_enabled = false;
  EQUAL(t.clip_gradients(), 1);
}

TEST(memory_for_own_nodes) {
  AlignedMemoryPool &pool = *default_device->pools[(int)DeviceMempool::SCS];
  CHECK(default_device->pools.size() == 4 && pool.used() == 0);
  char *a = static_cast<char *>(pool.allocate(100)), *b = static_cast<char *>(pool.allocate(1));
  CHECK(b - a == 128 && reinterpret_cast<size_t>(a) % 32 == 0);
  a[99] = b[0] = 7;
  pool.zero_allocated_memory();
  CHECK(a[99] == 0 && b[0] == 0 && pool.used() == 160);
  for (size_t n = 1; n < 1 << 20; n *= 2)
    std::memset(pool.allocate(n), 1, n);
  CHECK(a[99] == 0); // pieces stay where they are
  const size_t all = pool.get_cap();
  CHECK(all >= pool.used() && pool.used() > 1 << 20);
  pool.free();
  CHECK(pool.used() == 0);
  std::memset(pool.allocate(all), 1, all);
  EQUAL(pool.get_cap(), all);
  pool.free();
  THROWS(out_of_memory, "no memory for", pool.allocate(size_t(1) << 60));
}

TEST(memory_is_told) {
  CHECK(tests::printed(std::cerr, show_pool_mem_info).size() > 20);
  default_device->reset_rng(3);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
