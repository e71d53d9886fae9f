// Measures a training step of a graph with one operation of expr.h, at several shapes. It finds
// operations that one processor of the device does alone, and those for which the host writes an
// item an element. One CSV row each: operation, shape, elements of the operand, milliseconds of a
// step whose loss is awaited, the same without the operation, milliseconds of the host for the
// script, the script's words, a bound in milliseconds, and the operation's time in bounds. The
// bound is 0.02 ms, and what reading or writing operand and result six times takes at 1 TB/s.
//
//   build/bench/operations --operations softmax,cumsum --shapes large
//
// --operations A,B  those whose names begin so (all)
// --shapes A,B      of small, large, batched, narrow, tall, few, many (all)
// --rounds N        whose median counts (5)
// --dump 1          prints each script instead
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../cpp_examples/progress.h"

using namespace dynet;

namespace {

const unsigned table_rows = 1000000, row_size = 16;

// The parameters of all cases: two of each size, in any shape, and a large table.
class operands {
public:
  operands() : table_(m.add_lookup_parameters(table_rows, {row_size})) {}

  // Number k (0 or 1) in shape d. Before prepare() it stands for one that is made then.
  Expression of(ComputationGraph &cg, unsigned k, const Dim &d) {
    const auto found = list_.find({d.size(), k});
    if (found == list_.end()) {
      wanted_.insert({d.size(), k});
      return zeros(cg, d);
    }
    return reshape(parameter(cg, found->second), d);
  }
  void prepare() {
    for (const auto &w : wanted_)
      list_[w] = m.add_parameters({w.first}, ParameterInitUniform(0.2f, 0.8f));
  }
  Expression rows(ComputationGraph &cg, const std::vector<unsigned> &numbers) {
    return lookup(cg, table_, numbers);
  }

  ParameterCollection m;

private:
  LookupParameter table_;
  std::set<std::pair<unsigned, unsigned>> wanted_;
  std::map<std::pair<unsigned, unsigned>, Parameter> list_;
};

// A graph in the making, and the shape of its first operand.
struct making {
  ComputationGraph &cg;
  operands &all;
  Dim d;

  Expression x() const { return all.of(cg, 0, d); }
  Expression y() const { return all.of(cg, 1, d); }
  Expression y(const Dim &other) const { return all.of(cg, 1, other); }
  unsigned rows() const { return d[0]; }
  unsigned columns() const { return d.nd > 1 ? d[1] : 1; }
  // So many numbers below end, the same in each step, the first 0.
  std::vector<unsigned> numbers(unsigned n, unsigned end) const {
    std::mt19937 random(n);
    std::vector<unsigned> list(n);
    for (unsigned &i : list)
      i = unsigned(random() % end);
    list[0] = 0;
    return list;
  }
};

// The identity matrix times 2.
Expression identity(const making &g) {
  std::vector<unsigned> at;
  for (unsigned k = 0; k < g.rows(); k++)
    at.push_back(k * (g.rows() + 1));
  return input(g.cg, g.d, at, std::vector<float>(at.size(), 2.f * g.rows()));
}

struct shape {
  const char *name;
  Dim d;
};
typedef std::vector<shape> shapes;

struct operation {
  std::string name;
  shapes at;
  std::function<Expression(const making &)> make;
};
typedef std::vector<operation> operations;

const shapes matrices = {
    {"small", {8, 8}},           {"large", {1024, 2048}}, {"batched", Dim({128, 128}, 64)},
    {"narrow", {2, 1000000}},    {"tall", {1000000, 2}},  {"few", Dim({1000, 1000}, 2)},
    {"many", Dim({4, 4}, 65536)}};
const shapes vectors = {{"small", {64}},
                        {"large", {100000}},
                        {"batched", Dim({10000}, 64)},
                        {"few", Dim({100000}, 2)},
                        {"many", Dim({16}, 65536)}};
const shapes without_batch = {{"small", {8, 8}}, {"large", {1024, 2048}}};
const shapes with_batch = {
    {"batched", Dim({128, 128}, 64)}, {"few", Dim({1000, 1000}, 2)}, {"many", Dim({4, 4}, 65536)}};
const shapes one_vector = {{"small", {64}}, {"large", {10000}}};

// A case: its name, its shapes, and what it makes of g.
#define CASE(name, at, value)                                                                      \
  {                                                                                                \
    name, at, [](const making &g) -> Expression { return value; }                                  \
  }

operations of_elements() {
  return {CASE("tanh", matrices, tanh(g.x())),
          CASE("log", matrices, log(g.x())),
          CASE("sin", matrices, sin(g.x())),
          CASE("lgamma", matrices, lgamma(g.x())),
          CASE("elu", matrices, elu(g.x())),
          CASE("flip_gradient", matrices, flip_gradient(g.x())),
          CASE("to_device", matrices, to_device(g.x(), nullptr)),
          CASE("round", matrices, round(g.x(), straight_through_gradient)),
          CASE("plus", matrices, g.x() + g.y()),
          CASE("cmult", matrices, cmult(g.x(), g.y())),
          CASE("cdiv", matrices, cdiv(g.x(), g.y())),
          CASE("min", matrices, min(g.x(), g.y())),
          CASE("average", matrices, average({g.x(), g.y(), tanh(g.x())})),
          CASE("logsumexp", matrices, logsumexp({g.x(), g.y()})),
          CASE("dropout", matrices, dropout(g.x(), 0.3f)),
          CASE("noise", matrices, noise(g.x(), 0.1f)),
          CASE("dropout_dim", matrices, dropout_dim(g.x(), 1, 0.3f)),
          CASE("dropout_batch", matrices, dropout_batch(g.x(), 0.3f)),
          CASE("block_dropout", matrices, block_dropout(g.x(), 0.3f)),
          CASE("random_normal", matrices, cmult(g.x(), random_normal(g.cg, g.d))),
          CASE("random_gumbel", matrices, g.x() + random_gumbel(g.cg, g.d)),
          CASE("plus a column", matrices, g.x() + g.y({g.rows()})),
          CASE("plus a row", matrices, g.x() + g.y({1, g.columns()})),
          CASE("plus a number", matrices, g.x() + g.y({1})),
          CASE("plus a batch element", matrices, g.x() + g.y({g.rows(), g.columns()})),
          CASE("plus a number of each", matrices, g.x() + g.y(Dim({1}, g.d.bd))),
          CASE("cmult by a column", matrices, cmult(g.x(), g.y({g.rows()}))),
          CASE("cmult by a row", matrices, cmult(g.x(), g.y({1, g.columns()}))),
          CASE("cdiv by a number", matrices, cdiv(g.x(), g.y({1}))),
          CASE("cdiv by a number of each", matrices, cdiv(g.x(), g.y(Dim({1}, g.d.bd)))),
          CASE("cdiv by a batch element", matrices, cdiv(g.x(), g.y({g.rows(), g.columns()}))),
          CASE("colwise_add", matrices, colwise_add(g.x(), g.y({g.rows()}))),
          CASE("pow", matrices, pow(g.x(), g.y({1}))),
          CASE("layer_norm", vectors,
               layer_norm(g.x(), g.y({g.rows()}), g.all.of(g.cg, 2, {g.rows()}))),
          CASE("weight_norm", without_batch, weight_norm(g.x(), g.y({1})))};
}

operations of_sums() {
  return {CASE("sum_elems", matrices, sum_elems(g.x())),
          CASE("sum_elems of a vector", vectors, sum_elems(g.x())),
          CASE("moment_elems", matrices, moment_elems(g.x(), 2)),
          CASE("std_elems", matrices, std_elems(g.x())),
          CASE("sum_batches", with_batch, sum_batches(g.x())),
          CASE("std_batches", with_batch, std_batches(g.x())),
          CASE("sum_rows", matrices, sum_rows(g.x())),
          CASE("sum_cols", matrices, sum_cols(g.x())),
          CASE("sum_dim of all", matrices, sum_dim(g.x(), {0, 1}, true)),
          CASE("sum_dim of rows and batch", matrices, sum_dim(g.x(), {0}, true)),
          CASE("std_dim 0", matrices, std_dim(g.x(), {0})),
          CASE("std_dim 1", matrices, std_dim(g.x(), {1})),
          CASE("moment_dim 1", matrices, moment_dim(g.x(), {1}, 3)),
          CASE("average_cols", matrices, average_cols(g.x())),
          CASE("fold_rows", matrices, fold_rows(g.x(), 2)),
          CASE("dot_product", matrices, dot_product(g.x(), g.y())),
          CASE("trace_of_product", without_batch, trace_of_product(g.x(), g.y())),
          CASE("squared_distance", matrices, squared_distance(g.x(), g.y())),
          CASE("l1_distance", matrices, l1_distance(g.x(), g.y())),
          CASE("huber_distance", matrices, huber_distance(g.x(), g.y())),
          CASE("squared_norm", matrices, squared_norm(g.x())),
          CASE("l2_norm", matrices, l2_norm(g.x())),
          CASE("binary_log_loss", without_batch, binary_log_loss(g.x(), g.y()))};
}

operations of_lines() {
  return {CASE("max_dim 0", matrices, max_dim(g.x(), 0)),
          CASE("max_dim 1", matrices, max_dim(g.x(), 1)),
          CASE("min_dim 0", matrices, min_dim(g.x(), 0)),
          CASE("max_dim of a vector", vectors, max_dim(g.x())),
          CASE("argmax", vectors, argmax(g.x(), straight_through_gradient)),
          CASE("tanh beside an argmax", matrices,
               tanh(g.x()) + pick(argmax(g.y({16}), straight_through_gradient), 0u)),
          CASE("tanh beside a strided_select", matrices,
               tanh(g.x()) + strided_select(g.y({16}), {2}, {0}, {2})),
          CASE("kmax_pooling", matrices, kmax_pooling(g.x(), 2, 1)),
          CASE("cumsum 0", matrices, cumsum(g.x(), 0)),
          CASE("cumsum 1", matrices, cumsum(g.x(), 1)),
          CASE("cumsum of a vector", vectors, cumsum(g.x(), 0)),
          CASE("logsumexp_dim 0", matrices, logsumexp_dim(g.x(), 0)),
          CASE("logsumexp_dim 1", matrices, logsumexp_dim(g.x(), 1)),
          CASE("softmax 0", matrices, softmax(g.x(), 0)),
          CASE("softmax 1", matrices, softmax(g.x(), 1)),
          CASE("log_softmax", matrices, log_softmax(g.x())),
          CASE("softmax of a vector", vectors, softmax(g.x())),
          CASE("log_softmax of a vector", vectors, log_softmax(g.x())),
          CASE("log_softmax of some rows", one_vector,
               log_softmax(g.x(), g.numbers(g.rows() / 4, g.rows()))),
          CASE("pickneglogsoftmax", vectors, pickneglogsoftmax(g.x(), g.numbers(g.d.bd, g.rows()))),
          CASE("hinge", vectors, hinge(g.x(), g.numbers(g.d.bd, g.rows()))),
          CASE("hinge_dim", without_batch, hinge_dim(g.x(), g.numbers(g.columns(), g.rows()))),
          CASE("sparsemax", one_vector, sparsemax(g.x())),
          CASE("sparsemax_loss", one_vector, sparsemax_loss(g.x(), g.numbers(4, g.rows()))),
          CASE("constrained_softmax", one_vector,
               constrained_softmax(g.x(), g.y() * 10.f / float(g.rows()))),
          CASE("pairwise_rank_loss", one_vector,
               pairwise_rank_loss(reshape(g.x(), {1, g.rows()}), g.y({1, g.rows()})))};
}

operations of_parts() {
  return {
      CASE("transpose", matrices, transpose(g.x())),
      CASE("concatenate", matrices, concatenate({g.x(), g.y()})),
      CASE("concatenate_cols", matrices, concatenate_cols({g.x(), g.y()})),
      CASE("concatenate_to_batch", matrices, concatenate_to_batch({g.x(), g.y()})),
      CASE("pick", vectors, pick(g.x(), g.numbers(g.d.bd, g.rows()))),
      CASE("pick of a matrix", matrices, pick(g.x(), 1u, 1)),
      CASE("pick_range", matrices, pick_range(g.x(), 1, 2, 0)),
      CASE("pick_range of columns", matrices, pick_range(g.x(), 0, g.columns() / 2, 1)),
      CASE("select_rows", matrices, select_rows(g.x(), g.numbers(64, g.rows()))),
      CASE("select_cols", matrices, select_cols(g.x(), g.numbers(64, g.columns()))),
      CASE("select_cols of many", without_batch, select_cols(g.x(), g.numbers(10000, g.columns()))),
      CASE("select_rows of many", without_batch, select_rows(g.x(), g.numbers(1000, g.rows()))),
      CASE("strided_select", matrices, strided_select(g.x(), {2, 1})),
      CASE("pick_batch_elem", matrices, pick_batch_elem(g.x(), g.d.bd - 1)),
      CASE("pick_batch_elems", matrices,
           pick_batch_elems(g.x(), g.numbers(2 * std::min(g.d.bd, 64u), g.d.bd))),
      CASE("pick_batch_elems of many", (shapes{{"many", Dim({64}, 4096)}}),
           pick_batch_elems(g.x(), g.numbers(10000, g.d.bd))),
      CASE("lookup", (shapes{{"small", {row_size}}, {"large", Dim({row_size}, 10000)}}),
           cmult(g.x(), g.all.rows(g.cg, g.numbers(g.d.bd, table_rows)))),
      CASE("one_hot", vectors, cmult(g.x(), one_hot(g.cg, g.rows(), g.numbers(g.d.bd, g.rows())))),
      CASE("input at indices", one_vector,
           cmult(g.x(), input(g.cg, g.d, g.numbers(g.rows() / 4, g.rows()),
                              std::vector<float>(g.rows() / 4, 1.f)))),
      CASE("input", matrices, cmult(g.x(), input(g.cg, g.d, std::vector<float>(g.d.size(), 1.f)))),
      CASE("constant", matrices, cmult(g.x(), ones(g.cg, g.d)))};
}

operations of_products() {
  const shapes images = {
      {"small", {8, 8, 3}}, {"large", {512, 512, 4}}, {"batched", Dim({32, 32, 16}, 64)}};
  const shapes words = {
      {"small", {8, 16}}, {"large", {64, 16384}}, {"batched", Dim({64, 128}, 64)}};
  const shapes cubes = {
      {"small", {4, 5, 6}}, {"large", {256, 128, 64}}, {"batched", Dim({16, 32, 32}, 64)}};
  const shapes squares = {
      {"small", {8, 8}}, {"large", {512, 512}}, {"batched", Dim({128, 128}, 64)}};
  return {CASE("product", squares, g.x() * g.y()),
          CASE("product of one side with a batch", squares, g.y({g.rows(), g.columns()}) * g.x()),
          CASE("product with a vector", matrices, g.x() * g.y(Dim({g.columns()}, g.d.bd))),
          CASE("product with a row", matrices, g.y({1, g.rows()}) * g.x()),
          CASE("outer product",
               (shapes{{"small", {8}}, {"large", {1024}}, {"batched", Dim({128}, 64)}}),
               g.x() * transpose(g.y())),
          CASE("affine_transform", squares, affine_transform({g.y({g.rows()}), g.x(), g.y()})),
          CASE("contract3d_1d", cubes, contract3d_1d(g.x(), g.y(Dim({g.d[2]}, g.d.bd)))),
          CASE("contract3d_1d_1d", cubes,
               contract3d_1d_1d(g.x(), g.y(Dim({g.d[2]}, g.d.bd)), g.y(Dim({g.d[1]}, g.d.bd)))),
          CASE("circ_conv",
               (shapes{{"small", {64}}, {"large", {512}}, {"batched", Dim({128}, 64)}}),
               circ_conv(g.x(), g.y())),
          CASE("circ_corr", (shapes{{"small", {64}}, {"large", {512}}}), circ_corr(g.x(), g.y())),
          CASE("conv2d", images, conv2d(g.x(), g.y({3, 3, g.d[2], 16}), {1, 1}, false)),
          CASE("maxpooling2d", images, maxpooling2d(g.x(), {2, 2}, {2, 2})),
          CASE("maxpooling2d of large windows", images, maxpooling2d(g.x(), {8, 8}, {8, 8})),
          CASE("filter1d_narrow", words, filter1d_narrow(g.x(), g.y({g.rows(), 3, 32}))),
          CASE("kmh_ngram", words, kmh_ngram(g.x(), 3)),
          CASE("kmax_pooling of words", words, kmax_pooling(g.x(), 3, 1)),
          CASE("inverse", (shapes{{"small", {8, 8}}, {"large", {64, 64}}}),
               inverse(g.x() + identity(g))),
          CASE("logdet", (shapes{{"small", {8, 8}}, {"large", {64, 64}}}),
               logdet(g.x() + identity(g)))};
}

#undef CASE

// The first element: a loss whose gradient is dense and costs next to nothing.
Expression first_of(Expression y) {
  if (y.dim().bd > 1)
    y = pick_batch_elem(y, 0u);
  return pick(reshape(y, {y.dim().size()}), 0u);
}

class measurement {
public:
  measurement(operands &all, unsigned rounds)
      : all_(all), trainer_(all.m, 1e-6f), hndl_(all.m, trainer_), rounds_(rounds) {}

  // Prints a row.
  void operator()(const operation &op, const shape &s) {
    const result with = time([&](const making &g) { return op.make(g); }, s.d);
    if (without_.find(s.d.size()) == without_.end())
      without_[s.d.size()] = time([](const making &g) { return g.x(); }, s.d).ms;
    const double without = without_[s.d.size()];
    const double bound = 0.02 + 6 * 4e-9 * (s.d.size() + with.elements);
    std::ostringstream dim;
    dim << s.d;
    std::string dims = dim.str();
    std::replace(dims.begin(), dims.end(), ',', ' ');
    std::printf("%s,%s %s,%zu,%.3f,%.3f,%.3f,%llu,%.3f,%.1f\n", op.name.c_str(), s.name,
                dims.c_str(), size_t(s.d.size()), with.ms, without, with.script_ms,
                (unsigned long long)with.words, bound, std::max(0.0, with.ms - without) / bound);
    std::fflush(stdout);
  }

  void dump(const operation &op, const shape &s) {
    size_t elements = 0;
    step([&](const making &g) { return op.make(g); }, s.d, &elements);
    std::printf("%s, %s\n%s\n", op.name.c_str(), s.name, vpps::script_dump().c_str());
  }

private:
  struct result {
    double ms, script_ms;
    uint64_t words;
    size_t elements; // of the operation's value
  };

  void step(const std::function<Expression(const making &)> &make, const Dim &d, size_t *elements) {
    ComputationGraph cg;
    const Expression y = make(making{cg, all_, d});
    *elements = y.dim().size();
    hndl_.fb(all_.m, cg, first_of(y));
    hndl_.sync_get_latest_loss();
  }

  // Steps are repeated for 10 ms. Returns the median of a step, and the mean of its script.
  result time(const std::function<Expression(const making &)> &make, const Dim &d) {
    result r = {};
    step(make, d, &r.elements);
    stopwatch once;
    step(make, d, &r.elements);
    const unsigned steps = unsigned(std::max(1.0, std::min(20.0, 0.01 / once.seconds())));
    const vpps_statistics before = vpps::statistics();
    std::vector<double> ms;
    for (unsigned k = 0; k < rounds_; k++) {
      stopwatch clock;
      for (unsigned i = 0; i < steps; i++)
        step(make, d, &r.elements);
      ms.push_back(1e3 * clock.seconds() / steps);
    }
    std::sort(ms.begin(), ms.end());
    const vpps_statistics after = vpps::statistics();
    r.ms = ms[ms.size() / 2];
    r.script_ms = 1e-6 * double(after.schedule_ns - before.schedule_ns) / (rounds_ * steps);
    r.words = after.script_words;
    return r;
  }

  operands &all_;
  SimpleSGDTrainer trainer_;
  vpps::handle hndl_;
  unsigned rounds_;
  std::map<size_t, double> without_; // by elements: a step without an operation
};

std::vector<std::string> items(const std::string &list) {
  std::vector<std::string> all;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    all.push_back(item);
  return all;
}

// Whether an operation's name begins with one of those, or there are none.
bool begins_with(const std::string &name, const std::vector<std::string> &prefixes) {
  for (const std::string &p : prefixes)
    if (name.compare(0, p.size(), p) == 0)
      return true;
  return prefixes.empty();
}

void run(int argc, char **argv) {
  DynetParams params = extract_dynet_params(argc, argv);
  std::map<std::string, std::string> flags = {
      {"--operations", ""}, {"--shapes", ""}, {"--rounds", "5"}, {"--dump", "0"}};
  for (int k = 1; k < argc; k += 2) {
    if (flags.find(argv[k]) == flags.end() || k + 1 == argc)
      throw std::runtime_error(std::string(argv[k]) + " is unknown or lacks its value; the head of "
                                                      "this program's source lists the flags");
    flags[argv[k]] = argv[k + 1];
  }
  if (params.random_seed == 0)
    params.random_seed = 1;
  initialize(params);
  operations chosen;
  const std::vector<std::string> names = items(flags["--operations"]),
                                 at = items(flags["--shapes"]);
  operands all;
  for (const operations &list : {of_elements(), of_sums(), of_lines(), of_parts(), of_products()})
    for (operation op : list) {
      if (!begins_with(op.name, names))
        continue;
      op.at.erase(std::remove_if(op.at.begin(), op.at.end(),
                                 [&](const shape &s) { return !begins_with(s.name, at); }),
                  op.at.end());
      for (const shape &s : op.at) { // notes which parameters there have to be
        ComputationGraph cg;
        const making g{cg, all, s.d};
        g.x(), op.make(g);
      }
      chosen.push_back(op);
    }
  all.prepare();
  measurement measure(all, unsigned(std::stoul(flags["--rounds"])));
  std::puts("operation,shape,elements,step_ms,without_ms,script_ms,script_words,bound_ms,bounds");
  for (const operation &op : chosen)
    for (const shape &s : op.at)
      if (flags["--dump"] == "1")
        measure.dump(op, s);
      else
        measure(op, s);
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "operations: " << e.what() << std::endl;
    return 1;
  }
}
