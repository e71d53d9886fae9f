// What the builders have in common: parameters of layers.
#include "builders.h"

namespace dynet {

LayerExpressions leaves(ComputationGraph &cg, const LayerParameters &params, bool update) {
  LayerExpressions nodes(params.size());
  for (size_t i = 0; i < params.size(); ++i)
    for (const Parameter &p : params[i])
      nodes[i].push_back(leaf(cg, p, update));
  return nodes;
}

void share(LayerParameters &to, const LayerParameters &from) {
  if (to.size() != from.size())
    throw std::invalid_argument("copy: the other builder has " + std::to_string(from.size()) +
                                " layers, this one " + std::to_string(to.size()));
  to = from;
}

void check_count(const char *what, size_t got, size_t a, size_t b) {
  if (got != a && got != b)
    throw std::invalid_argument(std::string(what) + ": needs " + std::to_string(a) +
                                (a == b ? "" : " or " + std::to_string(b)) + " expressions, got " +
                                std::to_string(got));
}

} // namespace dynet
