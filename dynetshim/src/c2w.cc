// C2WBuilder.
#include "dynet/c2w.h"

#include <stdexcept>

namespace dynet {

C2WBuilder::C2WBuilder(int vocab_size, unsigned layers, unsigned input_dim, unsigned hidden_dim,
                       ParameterCollection &m)
    : p_lookup(m.add_lookup_parameters(static_cast<unsigned>(vocab_size), {input_dim})),
      local_model(m.add_subcollection("--c2w-builder")) {
  fc2w = LSTMBuilder(layers, input_dim, hidden_dim, local_model);
  rc2w = LSTMBuilder(layers, input_dim, hidden_dim, local_model);
}

void C2WBuilder::new_graph(ComputationGraph *cg) {
  words.clear();
  wordid2vi.clear();
  fc2w.new_graph(*cg);
  rc2w.new_graph(*cg);
}

VariableIndex C2WBuilder::add_word(int word_id, const std::vector<int> &chars,
                                   ComputationGraph *cg) {
  const auto known = wordid2vi.find(word_id);
  if (known != wordid2vi.end())
    return known->second;
  if (chars.empty())
    throw std::invalid_argument("C2WBuilder: word " + std::to_string(word_id) +
                                " has no characters");
  fc2w.start_new_sequence();
  rc2w.start_new_sequence();
  std::map<int, Expression> nodes; // by character
  std::vector<Expression> in;
  for (int c : chars) {
    Expression &node = nodes[c];
    if (node.pg == nullptr)
      node = lookup(*cg, p_lookup, static_cast<unsigned>(c));
    in.push_back(node);
    fc2w.add_input(node);
  }
  for (size_t i = in.size(); i-- > 0;)
    rc2w.add_input(in[i]);
  return wordid2vi[word_id] = concatenate({fc2w.back(), rc2w.back()}).i;
}

} // namespace dynet
