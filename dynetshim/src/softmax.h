// What the softmax builders have in common.
#ifndef DYNETSHIM_SOFTMAX_H
#define DYNETSHIM_SOFTMAX_H

#include <string>
#include <vector>

#include "dynet/cfsm-builder.h"

namespace dynet {

// Draws a place from probabilities, which add up to 1 but for rounding.
unsigned draw(const std::vector<float> &probabilities);

// std::invalid_argument unless new_graph() was called.
void needs_graph(const ComputationGraph *cg);

// Losses of a batch, element by element: one(rep of an element, its class).
Expression one_by_one(SoftmaxBuilder &builder, const Expression &rep,
                      const std::vector<unsigned> &classes);

// The words of a line, at spaces and tabs.
std::vector<std::string> words_of(const std::string &line);

} // namespace dynet
#endif
