/// \file
/// Softmax builders: the output layer over classes or words. HierarchicalSoftmaxBuilder is in
/// hsm-builder.h.
#ifndef DYNET_CFSMBUILDER_H
#define DYNET_CFSMBUILDER_H

#include <string>
#include <vector>

#include "dynet/dict.h"
#include "dynet/dynet.h"
#include "dynet/expr.h"

namespace dynet {

/// The interface of softmax builders. rep is the input, {D} or {D}xB. Everything but the parameters
/// needs new_graph() first: std::invalid_argument without it.
class SoftmaxBuilder {
public:
  virtual ~SoftmaxBuilder();
  /// Brings the parameters into the graph cg, which must outlive their use; update = false: without
  /// gradients.
  virtual void new_graph(ComputationGraph &cg, bool update = true) = 0;
  /// -log p(classidx | rep): {1}. No such class: std::invalid_argument.
  virtual Expression neg_log_softmax(const Expression &rep, unsigned classidx) = 0;
  /// The same for a batch, with one class for each batch element: {1}xB. Another number of classes:
  /// std::invalid_argument.
  virtual Expression neg_log_softmax(const Expression &rep,
                                     const std::vector<unsigned> &classidxs) = 0;
  /// Draws a class from p(. | rep), with *rndeng. Evaluates rep, which has no batch.
  virtual unsigned sample(const Expression &rep) = 0;
  /// log_softmax of full_logits(): {N}xB.
  virtual Expression full_log_distribution(const Expression &rep) = 0;
  /// A number for each of the N classes: {N}xB.
  virtual Expression full_logits(const Expression &rep) = 0;
  /// The collection of the builder's parameters.
  virtual ParameterCollection &get_parameter_collection() = 0;
};

/// softmax(w*rep + b): w {N,D}, b {N}.
class StandardSoftmaxBuilder : public SoftmaxBuilder {
public:
  /// Makes w and, with bias, b in a subcollection of pc. rep_dim: D, num_classes: N.
  StandardSoftmaxBuilder(unsigned rep_dim, unsigned num_classes, ParameterCollection &pc,
                         bool bias = true);
  ///@{
  /// Shares parameters of the program. The builder's collection is their model, which must outlive
  /// it.
  StandardSoftmaxBuilder(Parameter &weights, Parameter &biases);
  explicit StandardSoftmaxBuilder(Parameter &weights);
  ///@}
  void new_graph(ComputationGraph &cg, bool update = true) override;
  Expression neg_log_softmax(const Expression &rep, unsigned classidx) override;
  Expression neg_log_softmax(const Expression &rep,
                             const std::vector<unsigned> &classidxs) override;
  unsigned sample(const Expression &rep) override;
  Expression full_log_distribution(const Expression &rep) override;
  /// w*rep + b.
  Expression full_logits(const Expression &rep) override;
  ParameterCollection &get_parameter_collection() override { return local_model; }

private:
  Parameter p_w, p_b;
  Expression w, b;
  ComputationGraph *pcg; // null before new_graph()
  ParameterCollection local_model;
  bool bias;
};

/// Two softmaxes: over clusters of words, then over the words of a cluster. A cluster of one word
/// has no second one. Parameters: {clusters,D}, {clusters}, then {words,D} and {words} of each
/// cluster with several words.
class ClassFactoredSoftmaxBuilder : public SoftmaxBuilder {
public:
  /// Reads the clusters from a file with lines "CLUSTER WORD", which may go on, and makes the
  /// parameters in a subcollection of pc. Words get their numbers from word_dict. rep_dim: D. A
  /// file that cannot be read, or another line: std::invalid_argument.
  ClassFactoredSoftmaxBuilder(unsigned rep_dim, const std::string &cluster_file, Dict &word_dict,
                              ParameterCollection &pc, bool bias = true);
  void new_graph(ComputationGraph &cg, bool update = true) override;
  Expression neg_log_softmax(const Expression &rep, unsigned classidx) override;
  Expression neg_log_softmax(const Expression &rep,
                             const std::vector<unsigned> &classidxs) override;
  unsigned sample(const Expression &rep) override;
  Expression full_log_distribution(const Expression &rep) override;
  /// DyNet's numbers, which are no log probabilities: log p(cluster), plus p(word | cluster) where
  /// the cluster has several words; -10000 for words without a cluster. rep has no batch.
  Expression full_logits(const Expression &rep) override;
  /// log p(cluster | rep): {clusters}xB.
  Expression class_log_distribution(const Expression &rep);
  /// class_log_distribution() before its log_softmax.
  Expression class_logits(const Expression &rep);
  /// log p(word | cluster, rep): {words}xB, in the order of the file. A cluster of one word, or no
  /// such cluster: std::invalid_argument.
  Expression subclass_log_distribution(const Expression &rep, unsigned clusteridx);
  /// subclass_log_distribution() before its log_softmax.
  Expression subclass_logits(const Expression &rep, unsigned clusteridx);
  /// Brings the parameters of all clusters into the graph. Without this call a cluster's come when
  /// they are first needed.
  void initialize_expressions();
  ParameterCollection &get_parameter_collection() override { return local_model; }

private:
  // A place for a word: its cluster, and which of the cluster's words it is.
  struct Place {
    Place() : cluster(-1), row(0) {}
    int cluster; // -1: none
    unsigned row;
  };
  void read_cluster_file(const std::string &cluster_file, Dict &word_dict);
  const Place &place(unsigned word) const;

  Dict cdict;
  std::vector<Place> places;                     // [word]
  std::vector<std::vector<unsigned>> cidx2words; // [cluster][row]
  ParameterCollection local_model;
  Parameter p_r2c, p_cbias;
  std::vector<Parameter> p_rc2ws, p_rcwbiases; // [cluster]; empty for one word
  ComputationGraph *pcg;                       // null before new_graph()
  Expression r2c, cbias;
  std::vector<Expression> rc2ws, rc2biases; // [cluster]; empty: not in the graph yet
  bool bias, update;
};

} // namespace dynet
#endif
