// Softmax builders: over classes, and over clusters of words.
#include "dynet/cfsm-builder.h"

#include <stdexcept>

#include "builders.h"
#include "softmax.h"

namespace dynet {

SoftmaxBuilder::~SoftmaxBuilder() {}

unsigned draw(const std::vector<float> &probabilities) {
  double left = static_cast<double>(rand01());
  for (size_t i = 0; i + 1 < probabilities.size(); ++i) {
    left -= static_cast<double>(probabilities[i]);
    if (left < 0)
      return static_cast<unsigned>(i);
  }
  return static_cast<unsigned>(probabilities.size() - 1);
}

void needs_graph(const ComputationGraph *cg) {
  if (cg == nullptr)
    throw std::invalid_argument("a softmax builder has no graph: call new_graph first");
}

void check_classes(const Expression &rep, const std::vector<unsigned> &classes) {
  if (rep.dim().bd != classes.size())
    throw std::invalid_argument("neg_log_softmax: " + std::to_string(classes.size()) +
                                " classes for a batch of " + std::to_string(rep.dim().bd));
}

Expression one_by_one(SoftmaxBuilder &builder, const Expression &rep,
                      const std::vector<unsigned> &classes) {
  check_classes(rep, classes);
  std::vector<Expression> losses;
  for (size_t i = 0; i < classes.size(); ++i)
    losses.push_back(
        builder.neg_log_softmax(pick_batch_elem(rep, static_cast<unsigned>(i)), classes[i]));
  return concatenate_to_batch(losses);
}

std::vector<std::string> words_of(const std::string &line) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string::npos) {
    const size_t end = line.find_first_of(" \t\r", at);
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// ---- StandardSoftmaxBuilder --------------------------------------------------------

StandardSoftmaxBuilder::StandardSoftmaxBuilder(unsigned rep_dim, unsigned num_classes,
                                               ParameterCollection &pc, bool bias)
    : pcg(nullptr), local_model(pc.add_subcollection("standard-softmax-builder")), bias(bias) {
  p_w = local_model.add_parameters({num_classes, rep_dim});
  if (bias)
    p_b = local_model.add_parameters({num_classes}, ParameterInitConst(0.f));
}

StandardSoftmaxBuilder::StandardSoftmaxBuilder(Parameter &weights, Parameter &biases)
    : p_w(weights), p_b(biases), pcg(nullptr), local_model(*weights.p.unexposed()->owner),
      bias(true) {}

StandardSoftmaxBuilder::StandardSoftmaxBuilder(Parameter &weights)
    : p_w(weights), pcg(nullptr), local_model(*weights.p.unexposed()->owner), bias(false) {}

void StandardSoftmaxBuilder::new_graph(ComputationGraph &cg, bool update) {
  pcg = &cg;
  w = leaf(cg, p_w, update);
  if (bias)
    b = leaf(cg, p_b, update);
}

Expression StandardSoftmaxBuilder::full_logits(const Expression &rep) {
  needs_graph(pcg);
  return logits(w, b, rep);
}

Expression StandardSoftmaxBuilder::full_log_distribution(const Expression &rep) {
  return log_softmax(full_logits(rep));
}

Expression StandardSoftmaxBuilder::neg_log_softmax(const Expression &rep, unsigned classidx) {
  return pickneglogsoftmax(full_logits(rep), classidx);
}

Expression StandardSoftmaxBuilder::neg_log_softmax(const Expression &rep,
                                                   const std::vector<unsigned> &classidxs) {
  check_classes(rep, classidxs);
  return pickneglogsoftmax(full_logits(rep), classidxs);
}

unsigned StandardSoftmaxBuilder::sample(const Expression &rep) {
  const Expression distribution = softmax(full_logits(rep));
  return draw(as_vector(pcg->incremental_forward(distribution)));
}

// ---- ClassFactoredSoftmaxBuilder ---------------------------------------------------

ClassFactoredSoftmaxBuilder::ClassFactoredSoftmaxBuilder(unsigned rep_dim,
                                                         const std::string &cluster_file,
                                                         Dict &word_dict, ParameterCollection &pc,
                                                         bool bias)
    : pcg(nullptr), bias(bias), update(true) {
  read_cluster_file(cluster_file, word_dict);
  local_model = pc.add_subcollection("class-factored-softmax-builder");
  const unsigned clusters = cdict.size();
  p_r2c = local_model.add_parameters({clusters, rep_dim});
  if (bias)
    p_cbias = local_model.add_parameters({clusters}, ParameterInitConst(0.f));
  p_rc2ws.resize(clusters);
  p_rcwbiases.resize(clusters);
  for (unsigned c = 0; c < clusters; ++c) {
    const unsigned words = static_cast<unsigned>(cidx2words[c].size());
    if (words == 1)
      continue;
    p_rc2ws[c] = local_model.add_parameters({words, rep_dim});
    if (bias)
      p_rcwbiases[c] = local_model.add_parameters({words}, ParameterInitConst(0.f));
  }
}

void ClassFactoredSoftmaxBuilder::read_cluster_file(const std::string &cluster_file,
                                                    Dict &word_dict) {
  const auto add = [&](const std::string &line) -> const char * {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2)
      return "a cluster and a word";
    const unsigned c = static_cast<unsigned>(cdict.convert(words[0]));
    const unsigned word = static_cast<unsigned>(word_dict.convert(words[1]));
    if (word >= places.size())
      places.resize(word + 1);
    if (c >= cidx2words.size())
      cidx2words.resize(c + 1);
    // Of words with one number, such as the unknown ones of a frozen dictionary, the last counts.
    places[word].cluster = static_cast<int>(c);
    places[word].row = static_cast<unsigned>(cidx2words[c].size());
    cidx2words[c].push_back(word);
    return nullptr;
  };
  read_clusters("ClassFactoredSoftmaxBuilder", cluster_file, add);
  if (cidx2words.empty())
    throw std::invalid_argument(cluster_file + ": there are no clusters in the file");
}

void ClassFactoredSoftmaxBuilder::new_graph(ComputationGraph &cg, bool with_gradients) {
  pcg = &cg;
  update = with_gradients;
  r2c = leaf(cg, p_r2c, update);
  if (bias)
    cbias = leaf(cg, p_cbias, update);
  rc2ws.assign(cidx2words.size(), Expression());
  rc2biases.assign(cidx2words.size(), Expression());
}

const ClassFactoredSoftmaxBuilder::Place &ClassFactoredSoftmaxBuilder::place(unsigned word) const {
  if (word >= places.size() || places[word].cluster < 0)
    throw std::invalid_argument("word " + std::to_string(word) +
                                " has no cluster: add it to the cluster file");
  return places[word];
}

Expression ClassFactoredSoftmaxBuilder::neg_log_softmax(const Expression &rep, unsigned classidx) {
  const Place &at = place(classidx);
  const unsigned cluster = static_cast<unsigned>(at.cluster);
  const Expression of_cluster = pickneglogsoftmax(class_logits(rep), cluster);
  if (cidx2words[cluster].size() == 1)
    return of_cluster;
  return of_cluster + pickneglogsoftmax(subclass_logits(rep, cluster), at.row);
}

Expression ClassFactoredSoftmaxBuilder::neg_log_softmax(const Expression &rep,
                                                        const std::vector<unsigned> &classidxs) {
  return one_by_one(*this, rep, classidxs);
}

unsigned ClassFactoredSoftmaxBuilder::sample(const Expression &rep) {
  const Expression clusters = softmax(class_logits(rep));
  const unsigned c = draw(as_vector(pcg->incremental_forward(clusters)));
  if (cidx2words[c].size() == 1)
    return cidx2words[c][0];
  const Expression words = softmax(subclass_logits(rep, c));
  return cidx2words[c][draw(as_vector(pcg->incremental_forward(words)))];
}

Expression ClassFactoredSoftmaxBuilder::full_log_distribution(const Expression &rep) {
  return log_softmax(full_logits(rep));
}

Expression ClassFactoredSoftmaxBuilder::full_logits(const Expression &rep) {
  const Expression clusters = class_log_distribution(rep);
  std::vector<Expression> all(places.size());
  for (size_t word = 0; word < places.size(); ++word)
    if (places[word].cluster < 0)
      all[word] = input(*pcg, -10000.f);
  for (unsigned c = 0; c < cidx2words.size(); ++c) {
    const Expression of_cluster = pick(clusters, c);
    if (cidx2words[c].size() == 1) {
      all[cidx2words[c][0]] = of_cluster;
      continue;
    }
    const Expression words = softmax(subclass_logits(rep, c));
    for (unsigned row = 0; row < cidx2words[c].size(); ++row)
      all[cidx2words[c][row]] = pick(words, row) + of_cluster;
  }
  return concatenate(all);
}

Expression ClassFactoredSoftmaxBuilder::class_log_distribution(const Expression &rep) {
  return log_softmax(class_logits(rep));
}

Expression ClassFactoredSoftmaxBuilder::class_logits(const Expression &rep) {
  needs_graph(pcg);
  return logits(r2c, cbias, rep);
}

Expression ClassFactoredSoftmaxBuilder::subclass_log_distribution(const Expression &rep,
                                                                  unsigned clusteridx) {
  return log_softmax(subclass_logits(rep, clusteridx));
}

Expression ClassFactoredSoftmaxBuilder::subclass_logits(const Expression &rep,
                                                        unsigned clusteridx) {
  needs_graph(pcg);
  if (clusteridx >= cidx2words.size() || cidx2words[clusteridx].size() == 1)
    throw std::invalid_argument("cluster " + std::to_string(clusteridx) +
                                " does not exist or has one word: it has no softmax over words");
  Expression &w = rc2ws[clusteridx], &b = rc2biases[clusteridx];
  if (bias && b.pg == nullptr)
    b = leaf(*pcg, p_rcwbiases[clusteridx], update);
  if (w.pg == nullptr)
    w = leaf(*pcg, p_rc2ws[clusteridx], update);
  return logits(w, b, rep);
}

void ClassFactoredSoftmaxBuilder::initialize_expressions() {
  needs_graph(pcg);
  for (size_t c = 0; c < cidx2words.size(); ++c)
    if (cidx2words[c].size() > 1 && rc2ws[c].pg == nullptr) {
      rc2ws[c] = leaf(*pcg, p_rc2ws[c], update);
      if (bias)
        rc2biases[c] = leaf(*pcg, p_rcwbiases[c], update);
    }
}

} // namespace dynet
