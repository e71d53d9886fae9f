/// \file
/// Word vectors in text files: a line for each word, the word and its numbers, separated by spaces.
#ifndef DYNET_PRETRAIN_H
#define DYNET_PRETRAIN_H

#include <string>
#include <unordered_map>
#include <vector>

#include "dynet/dict.h"
#include "dynet/model.h"

namespace dynet {

/// Writes row i of the table for word i of d, as DyNet does: stored values, with six digits. A file
/// that cannot be written, or more words than rows: std::invalid_argument.
void save_pretrained_embeddings(const std::string &fname, const Dict &d, const LookupParameter &lp);

/// Reads vectors by the words' numbers in d, which takes new words unless it is frozen. Then words
/// that it does not have are left out. A file that cannot be read: std::invalid_argument. A line
/// with another count of numbers than the first: std::runtime_error.
void read_pretrained_embeddings(const std::string &fname, Dict &d,
                                std::unordered_map<int, std::vector<float>> &vectors);

} // namespace dynet
#endif
