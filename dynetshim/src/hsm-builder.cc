// The hierarchical softmax: a tree of choices, its file, and the way to a word.
#include "dynet/hsm-builder.h"

#include <stdexcept>

#include "builders.h"
#include "softmax.h"

namespace dynet {

// ---- Cluster -----------------------------------------------------------------------

Cluster::Cluster() : rep_dim(0), output_size(0), update(true) {}

Cluster *Cluster::add_child(unsigned sym) {
  const auto known = word2ind.find(sym);
  if (known != word2ind.end())
    return children[known->second].get();
  std::shared_ptr<Cluster> child = std::make_shared<Cluster>();
  child->rep_dim = rep_dim;
  child->path = path;
  child->path.push_back(sym);
  word2ind[sym] = num_children();
  children.push_back(child);
  return child.get();
}

void Cluster::add_word(unsigned word) {
  word2ind[word] = static_cast<unsigned>(terminals.size());
  terminals.push_back(word);
}

void Cluster::initialize(unsigned dim, ParameterCollection &model) {
  rep_dim = dim;
  initialize(model);
}

void Cluster::initialize(ParameterCollection &model) {
  if (!children.empty() && !terminals.empty())
    throw std::invalid_argument("the node '" + toString() +
                                "' has both children and words: words must be leaves");
  output_size = children.empty() ? static_cast<unsigned>(terminals.size()) : num_children();
  if (output_size > 1) {
    const unsigned rows = output_size == 2 ? 1 : output_size;
    p_weights = model.add_parameters({rows, rep_dim});
    p_bias = model.add_parameters({rows}, ParameterInitConst(0.f));
  }
  for (const std::shared_ptr<Cluster> &child : children)
    child->initialize(rep_dim, model);
}

void Cluster::new_graph(ComputationGraph &cg, bool with_gradients) {
  update = with_gradients;
  weights = bias = Expression();
  for (const std::shared_ptr<Cluster> &child : children)
    child->new_graph(cg, with_gradients);
}

Expression Cluster::predict(const Expression &h, ComputationGraph &cg) const {
  const Expression b = get_bias(cg), w = get_weights(cg);
  return affine_transform({b, w, h});
}

Expression Cluster::neg_log_softmax(Expression h, unsigned r, ComputationGraph &cg) const {
  if (output_size <= 1)
    return input(cg, 0.f);
  if (output_size > 2)
    return pickneglogsoftmax(predict(h, cg), r);
  const Expression first = logistic(predict(h, cg));
  return -log(r == 1 ? 1.f - first : first);
}

unsigned Cluster::sample(Expression h, ComputationGraph &cg) const {
  if (output_size <= 1)
    return 0;
  if (output_size > 2)
    return draw(as_vector(cg.incremental_forward(softmax(predict(h, cg)))));
  const float first = as_scalar(cg.incremental_forward(logistic(predict(h, cg))));
  return draw({first, 1 - first});
}

unsigned Cluster::get_index(unsigned word) const {
  const auto found = word2ind.find(word);
  if (found == word2ind.end())
    throw std::invalid_argument("the node '" + toString() + "' has no child or word " +
                                std::to_string(word));
  return found->second;
}

Expression Cluster::get_weights(ComputationGraph &cg) const {
  if (weights.pg != &cg)
    weights = leaf(cg, p_weights, update);
  return weights;
}

Expression Cluster::get_bias(ComputationGraph &cg) const {
  if (bias.pg != &cg)
    bias = leaf(cg, p_bias, update);
  return bias;
}

std::string Cluster::toString() const {
  std::string text;
  for (unsigned symbol : path)
    text += (text.empty() ? "" : " ") + std::to_string(symbol);
  return text;
}

// ---- HierarchicalSoftmaxBuilder ----------------------------------------------------

HierarchicalSoftmaxBuilder::HierarchicalSoftmaxBuilder(unsigned rep_dim,
                                                       const std::string &cluster_file,
                                                       Dict &word_dict, ParameterCollection &model)
    : pcg(nullptr), root(std::make_shared<Cluster>()) {
  read_cluster_file(cluster_file, word_dict);
  local_model = model.add_subcollection("hsm-builder");
  root->initialize(rep_dim, local_model);
}

HierarchicalSoftmaxBuilder::~HierarchicalSoftmaxBuilder() {}

// Symbols are separated by spaces. The word comes after a tab. Of words with one number, such as
// the unknown ones of a frozen dictionary, the last counts.
void HierarchicalSoftmaxBuilder::read_cluster_file(const std::string &cluster_file,
                                                   Dict &word_dict) {
  const auto add = [&](const std::string &line) -> const char * {
    const size_t tab = line.find('\t');
    const std::vector<std::string> symbols = words_of(line.substr(0, tab));
    const std::vector<std::string> rest =
        words_of(tab == std::string::npos ? std::string() : line.substr(tab));
    if (symbols.empty() || rest.empty())
      return "symbols, a tab and a word";
    Cluster *node = root.get();
    for (const std::string &symbol : symbols)
      node = node->add_child(static_cast<unsigned>(path_symbols.convert(symbol)));
    const unsigned word = static_cast<unsigned>(word_dict.convert(rest[0]));
    if (word >= widx2path.size())
      widx2path.resize(word + 1, nullptr);
    node->add_word(word);
    widx2path[word] = node;
    return nullptr;
  };
  read_clusters("HierarchicalSoftmaxBuilder", cluster_file, add);
}

void HierarchicalSoftmaxBuilder::new_graph(ComputationGraph &cg, bool update) {
  pcg = &cg;
  root->new_graph(cg, update);
}

Expression HierarchicalSoftmaxBuilder::neg_log_softmax(const Expression &rep, unsigned wordidx) {
  needs_graph(pcg);
  if (wordidx >= widx2path.size() || widx2path[wordidx] == nullptr)
    throw std::invalid_argument("word " + std::to_string(wordidx) +
                                " has no place: add it to the cluster file");
  std::vector<Expression> choices;
  const Cluster *node = root.get();
  for (unsigned symbol : widx2path[wordidx]->get_path()) {
    const unsigned r = node->get_index(symbol);
    choices.push_back(node->neg_log_softmax(rep, r, *pcg));
    node = node->get_child(r);
  }
  choices.push_back(node->neg_log_softmax(rep, node->get_index(wordidx), *pcg));
  return sum(choices);
}

Expression HierarchicalSoftmaxBuilder::neg_log_softmax(const Expression &rep,
                                                       const std::vector<unsigned> &classidxs) {
  return one_by_one(*this, rep, classidxs);
}

unsigned HierarchicalSoftmaxBuilder::sample(const Expression &rep) {
  needs_graph(pcg);
  const Cluster *node = root.get();
  while (node->num_children() > 0)
    node = node->get_child(node->sample(rep, *pcg));
  return node->get_word(node->sample(rep, *pcg));
}

namespace {
[[noreturn]] void no_distribution(const char *call) {
  throw std::runtime_error(std::string(call) + " is not implemented for " +
                           "HierarchicalSoftmaxBuilder: use neg_log_softmax word by word");
}
} // namespace

Expression HierarchicalSoftmaxBuilder::full_log_distribution(const Expression &) {
  no_distribution("full_log_distribution");
}

Expression HierarchicalSoftmaxBuilder::full_logits(const Expression &) {
  no_distribution("full_logits");
}

} // namespace dynet
