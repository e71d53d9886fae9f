/// \file
/// C2WBuilder: a word's representation from its characters. DyNet's does not compile.
#ifndef DYNET_C2W_H_
#define DYNET_C2W_H_

#include <map>
#include <vector>

#include "dynet/lstm.h"

namespace dynet {

/// Reads a word's characters by two LSTMs, from left to right and from right to left. Their last
/// outputs together are the word's representation.
struct C2WBuilder {
  /// Makes a table of vocab_size characters {input_dim} in m, and the LSTMs in a subcollection.
  explicit C2WBuilder(int vocab_size, unsigned layers, unsigned input_dim, unsigned hidden_dim,
                      ParameterCollection &m);
  /// Brings the LSTMs into the graph and forgets the words of another one.
  void new_graph(ComputationGraph *cg);
  /// The node of a word's representation {2*hidden_dim}, made when the word comes first. word_id: a
  /// number of the program's for the word. No characters, or new_graph() was not called:
  /// std::invalid_argument.
  VariableIndex add_word(int word_id, const std::vector<int> &chars, ComputationGraph *cg);
  /// The LSTMs' collection.
  ParameterCollection &get_parameter_collection() { return local_model; }

  LSTMBuilder fc2w;                       ///< reads from left to right
  LSTMBuilder rc2w;                       ///< reads from right to left
  LookupParameter p_lookup;               ///< the characters
  std::vector<VariableIndex> words;       ///< nothing, as in DyNet
  std::map<int, VariableIndex> wordid2vi; ///< nodes by word_id
  ParameterCollection local_model;        ///< the LSTMs' collection
};

} // namespace dynet
#endif
