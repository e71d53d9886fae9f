// What it takes to bring a graph into the wire format, in ns a node: libvpps's own headers
// record it while the program builds it; with -DVPPS_ADAPTER, against an installed DyNet, the
// adapter walks the graph that DyNet has built. Tree-LSTM 128/128, 8 sentences a graph.
//
//   build/bench/walk TREES
//
// Prints the median over graphs and the number of their nodes.
#include <dynet/dict.h>
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <vector>

#include "tree_lstm.h"

using namespace dynet;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run(const char *file) {
  std::vector<tree> trees = read_trees(file);
  Dict dict;
  count_words(trees, 1, dict);
  number_words(trees, dict);
  ParameterCollection m;
  tree_lstm model(m, unsigned(dict.size()), 128, 128);
  std::vector<double> costs;
  double nodes = 0;
  for (size_t round = 0; round < 500; round++) {
    std::vector<const tree *> batch;
    for (size_t k = 0; k < 8; k++)
      batch.push_back(&trees[(8 * round + k) % trees.size()]);
    ComputationGraph cg;
#ifdef VPPS_ADAPTER
    const Expression loss = model.loss(cg, batch);
    vpps::installed::graph walked(cg);
    const double start = now();
    walked.walk();
#else
    const double start = now();
    const Expression loss = model.loss(cg, batch);
#endif
    costs.push_back(1e9 * (now() - start) / (loss.i + 1));
    nodes += loss.i + 1;
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  std::printf("%.1f ns a node, %.0f nodes a graph\n", costs[costs.size() / 2],
              nodes / double(costs.size()));
}

} // namespace

int main(int argc, char **argv) {
  try {
    initialize(argc, argv);
    if (argc < 2)
      throw std::runtime_error("name a file of trees");
    run(argv[1]);
    return 0;
  } catch (const std::exception &e) {
    std::cerr << "walk: " << e.what() << std::endl;
    return 1;
  }
}
