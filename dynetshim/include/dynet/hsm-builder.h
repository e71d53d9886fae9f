/// \file
/// HierarchicalSoftmaxBuilder: a softmax at each node of a tree, whose leaves are words.
#ifndef DYNET_HSMBUILDER_H
#define DYNET_HSMBUILDER_H

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dynet/cfsm-builder.h"

namespace dynet {

/// A node of the tree. It has children or words. Its choice among N of them is a softmax of w {N,D}
/// and b {N}; for two a logistic function of w {1,D} and b {1}, whose value is p(0); for one it has
/// no parameters.
class Cluster {
public:
  /// A node without children and words: the root of a tree.
  Cluster();
  /// The child for a symbol, made if there is none. The node owns it.
  Cluster *add_child(unsigned sym);
  /// Adds a word, by its number.
  void add_word(unsigned word);
  ///@{
  /// Makes the parameters of the node and all below it in model. The inputs have dim rows, or as
  /// many as were given before. A node with both children and words: std::invalid_argument.
  void initialize(ParameterCollection &model);
  void initialize(unsigned dim, ParameterCollection &model);
  ///@}

  /// Forgets the nodes of an earlier graph, also below; update = false: parameters come without
  /// gradients.
  void new_graph(ComputationGraph &cg, bool update = true);
  /// Draws a child or word for input h {D}, with *rndeng.
  unsigned sample(Expression h, ComputationGraph &cg) const;
  /// -log p(r | h) of child or word r: {1}.
  Expression neg_log_softmax(Expression h, unsigned r, ComputationGraph &cg) const;

  /// The place of a symbol among the children, or of a word among the words. Neither:
  /// std::invalid_argument.
  unsigned get_index(unsigned word) const;
  /// The word at a place. None: std::out_of_range.
  unsigned get_word(unsigned index) const { return terminals.at(index); }
  /// The number of children.
  unsigned num_children() const { return static_cast<unsigned>(children.size()); }
  /// The child at a place, owned by the node. None: std::out_of_range.
  const Cluster *get_child(unsigned i) const { return children.at(i).get(); }
  /// The symbols from the root to the node.
  const std::vector<unsigned> &get_path() const { return path; }
  /// w in the graph cg.
  Expression get_weights(ComputationGraph &cg) const;
  /// b in the graph cg.
  Expression get_bias(ComputationGraph &cg) const;
  /// The path's symbols as text, with spaces between.
  std::string toString() const;

private:
  Expression predict(const Expression &h, ComputationGraph &cg) const;

  std::vector<std::shared_ptr<Cluster>> children;
  std::vector<unsigned> path, terminals;
  std::unordered_map<unsigned, unsigned> word2ind; // symbol or word: its place
  Parameter p_weights, p_bias;
  mutable Expression weights, bias; // empty: not in the graph yet
  unsigned rep_dim, output_size;
  bool update;
};

/// p(word | rep) as the product of the choices on the way from a tree's root to the word.
class HierarchicalSoftmaxBuilder : public SoftmaxBuilder {
public:
  /// Reads the tree from a file with lines "SYMBOL SYMBOL...<tab>WORD", which may go on after
  /// another tab or space, and makes the parameters in a subcollection of model. The symbols are
  /// the way from the root. Words get their numbers from word_dict. rep_dim: D. A file that cannot
  /// be read, or another line: std::invalid_argument.
  HierarchicalSoftmaxBuilder(unsigned rep_dim, const std::string &cluster_file, Dict &word_dict,
                             ParameterCollection &model);
  ~HierarchicalSoftmaxBuilder() override;
  /// Makes the parameters anew in model.
  void initialize(ParameterCollection &model) { root->initialize(model); }
  void new_graph(ComputationGraph &cg, bool update = true) override;
  Expression neg_log_softmax(const Expression &rep, unsigned wordidx) override;
  /// DyNet returns an empty expression.
  Expression neg_log_softmax(const Expression &rep,
                             const std::vector<unsigned> &classidxs) override;
  unsigned sample(const Expression &rep) override;
  ///@{
  /// std::runtime_error, as in DyNet: use neg_log_softmax() for the words that matter.
  Expression full_log_distribution(const Expression &rep) override;
  Expression full_logits(const Expression &rep) override;
  ///@}
  ParameterCollection &get_parameter_collection() override { return local_model; }

private:
  void read_cluster_file(const std::string &cluster_file, Dict &word_dict);

  ParameterCollection local_model;
  std::vector<Cluster *> widx2path; // [word]: its node; null: none
  Dict path_symbols;
  ComputationGraph *pcg; // null before new_graph()
  std::shared_ptr<Cluster> root;
};

} // namespace dynet
#endif
