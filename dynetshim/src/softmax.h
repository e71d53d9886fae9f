// What the softmax builders have in common.
#ifndef DYNETSHIM_SOFTMAX_H
#define DYNETSHIM_SOFTMAX_H

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynet/cfsm-builder.h"

namespace dynet {

// Draws a place from probabilities, which add up to 1 but for rounding.
unsigned draw(const std::vector<float> &probabilities);

// std::invalid_argument unless new_graph() was called.
void needs_graph(const ComputationGraph *cg);

// Throws std::invalid_argument unless there is a class for each batch element of rep.
void check_classes(const Expression &rep, const std::vector<unsigned> &classes);

// w * rep, with the bias b if it is an expression.
inline Expression logits(const Expression &w, const Expression &b, const Expression &rep) {
  return b.pg == nullptr ? w * rep : affine_transform({b, w, rep});
}

// Calls add(line) for each line of a cluster file. What it returns, if not null, says what a line
// needs: std::invalid_argument, as for a file that cannot be read.
template <class F> void read_clusters(const char *builder, const std::string &file, F add) {
  std::ifstream in(file.c_str());
  if (!in)
    throw std::invalid_argument(std::string(builder) + " cannot read the cluster file " + file);
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number)
    if (const char *needs = add(line))
      throw std::invalid_argument(file + ", line " + std::to_string(number) + ": needs " + needs);
}

// Losses of a batch, element by element: one(rep of an element, its class).
Expression one_by_one(SoftmaxBuilder &builder, const Expression &rep,
                      const std::vector<unsigned> &classes);

// The words of a line, at spaces and tabs.
std::vector<std::string> words_of(const std::string &line);

} // namespace dynet
#endif
