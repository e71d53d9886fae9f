// Softmax builders: distributions add up to 1, losses are what the formulas say.
#include <dynet/cfsm-builder.h>
#include <dynet/dynet.h>
#include <dynet/grad-check.h>
#include <dynet/hsm-builder.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "check.h"

using namespace dynet;

namespace {

const std::vector<float> some = {.3f, -.7f, 1.1f};

// A text file that goes with the object.
struct File {
  std::string name;
  explicit File(const std::string &text) : name("softmax_builders.tmp") {
    std::ofstream(name.c_str()) << text;
  }
  ~File() { std::remove(name.c_str()); }
};

const char *const clusters = "A red\nB cat 12\nA\tgreen\nC   sun\nA blue\nB dog\n";
const char *const tree = "0 0\tred 5\n0 0\tgreen\n0 1\tcat\n1\tsun\n0 0\tblue\n2\tdog\n2\tox\n";

// The loss of each word, one by one.
std::vector<double> losses(SoftmaxBuilder &b, unsigned words, bool update = true) {
  ComputationGraph cg;
  b.new_graph(cg, update);
  Expression x = input(cg, {3}, some);
  std::vector<double> all;
  for (unsigned w = 0; w < words; ++w)
    all.push_back(double(as_scalar(b.neg_log_softmax(x, w).value())));
  return all;
}

double total(const std::vector<double> &losses) {
  double p = 0;
  for (double loss : losses)
    p += std::exp(-loss);
  return p;
}

void close(double a, double b) { CHECK(std::abs(a - b) < 1e-5); }

// Losses of a batch are those of its elements.
void batches_agree(SoftmaxBuilder &b) {
  ComputationGraph cg;
  b.new_graph(cg);
  Expression x = input(cg, Dim({3}, 2), {.3f, -.7f, 1.1f, .2f, .5f, -.4f});
  Expression both = b.neg_log_softmax(x, std::vector<unsigned>{4, 1});
  CHECK(both.dim() == Dim({1}, 2));
  const std::vector<float> v = as_vector(both.value());
  close(double(v[0]), double(as_scalar(b.neg_log_softmax(pick_batch_elem(x, 0u), 4u).value())));
  close(double(v[1]), double(as_scalar(b.neg_log_softmax(pick_batch_elem(x, 1u), 1u).value())));
  THROWS(std::invalid_argument, "3 classes for a batch of 2",
         b.neg_log_softmax(x, std::vector<unsigned>{0, 1, 2}));
}

// Words are drawn as often as their probability says: 2,000 draws, four standard deviations.
void draws_as_it_says(SoftmaxBuilder &b, const std::vector<double> &losses) {
  std::vector<int> count(losses.size());
  const int draws = 2000;
  ComputationGraph cg;
  b.new_graph(cg, false);
  Expression x = input(cg, {3}, some);
  for (int i = 0; i < draws; ++i)
    count.at(b.sample(x))++;
  for (size_t w = 0; w < losses.size(); ++w) {
    const double p = std::exp(-losses[w]);
    CHECK(std::abs(count[w] - draws * p) < 4 * std::sqrt(draws * p * (1 - p)) + 1);
  }
}

void gradients_are_right(SoftmaxBuilder &b, ParameterCollection &m, unsigned word) {
  ComputationGraph cg;
  b.new_graph(cg);
  Expression loss = b.neg_log_softmax(input(cg, {3}, some), word);
  CHECK(check_grad(m, loss, 0));
}

} // namespace

TEST(a_standard_softmax) {
  ParameterCollection m;
  StandardSoftmaxBuilder b(3, 6, m), plain(3, 6, m, false);
  CHECK(b.get_parameter_collection().get_fullname() == "/standard-softmax-builder/");
  CHECK(b.get_parameter_collection().parameters_list().size() == 2);
  CHECK(plain.get_parameter_collection().parameters_list().size() == 1);
  for (StandardSoftmaxBuilder *s : {&b, &plain}) {
    const std::vector<double> l = losses(*s, 6);
    close(total(l), 1);
    batches_agree(*s);
    gradients_are_right(*s, m, 2);
    draws_as_it_says(*s, l);
    ComputationGraph cg;
    s->new_graph(cg);
    const std::vector<float> v = as_vector(s->full_log_distribution(input(cg, {3}, some)).value());
    for (size_t w = 0; w < 6; ++w)
      close(double(v[w]), -l[w]);
  }
}

TEST(a_standard_softmax_over_parameters_of_the_program) {
  ParameterCollection m;
  Parameter w = m.add_parameters({2, 3}, ParameterInitFromVector({1, 0, 0, 1, 0, 0}));
  Parameter bias = m.add_parameters({2}, ParameterInitFromVector({.5f, -.5f}));
  StandardSoftmaxBuilder with(w, bias), without(w);
  CHECK(with.get_parameter_collection().parameters_list().size() == 2);
  ComputationGraph cg;
  without.new_graph(cg, false);
  Expression x = input(cg, {3}, some);
  close(double(as_vector(without.full_logits(x).value())[1]), -.7);
  cg.backward(without.neg_log_softmax(x, 0u));
  CHECK(!w.get_storage().has_grad());
  with.new_graph(cg);
  close(double(as_vector(with.full_logits(x).value())[1]), -1.2);
  cg.backward(with.neg_log_softmax(x, 0u));
  CHECK(w.get_storage().has_grad());
}

TEST(a_class_factored_softmax) {
  File file(clusters);
  ParameterCollection m;
  Dict words;
  ClassFactoredSoftmaxBuilder b(3, file.name, words, m), plain(3, file.name, words, m, false);
  CHECK(words.size() == 6);
  // Two for the clusters, two for each cluster of several words.
  CHECK(b.get_parameter_collection().parameters_list().size() == 6);
  CHECK(plain.get_parameter_collection().parameters_list().size() == 3);
  for (ClassFactoredSoftmaxBuilder *s : {&b, &plain}) {
    const std::vector<double> l = losses(*s, 6);
    close(total(l), 1);
    batches_agree(*s);
    gradients_are_right(*s, m, unsigned(words.convert("green")));
    draws_as_it_says(*s, l);

    ComputationGraph cg;
    s->new_graph(cg);
    s->initialize_expressions();
    Expression x = input(cg, {3}, some);
    const std::vector<float> of_cluster = as_vector(s->class_log_distribution(x).value());
    const std::vector<float> of_word = as_vector(s->subclass_log_distribution(x, 0).value());
    close(-l[size_t(words.convert("green"))], double(of_cluster[0] + of_word[1]));
    close(-l[size_t(words.convert("sun"))], double(of_cluster[2]));
    // DyNet's full_logits adds a log probability and a probability.
    const std::vector<float> full = as_vector(s->full_logits(x).value());
    close(double(full[size_t(words.convert("green"))]),
          double(of_cluster[0]) + std::exp(double(of_word[1])));
    close(double(full[size_t(words.convert("sun"))]), double(of_cluster[2]));
    THROWS(std::invalid_argument, "has one word", s->subclass_logits(x, 2));
    THROWS(std::invalid_argument, "no cluster", s->neg_log_softmax(x, 6u));
  }
}

TEST(words_without_a_cluster_are_improbable) {
  File file("A red\nA blue\n");
  ParameterCollection m;
  Dict words;
  words.convert("nothing");
  ClassFactoredSoftmaxBuilder b(3, file.name, words, m);
  ComputationGraph cg;
  b.new_graph(cg);
  Expression x = input(cg, {3}, some);
  CHECK(as_vector(b.full_logits(x).value())[0] == -10000);
  THROWS(std::invalid_argument, "add it to the cluster file", b.neg_log_softmax(x, 0u));
}

TEST(a_hierarchical_softmax) {
  File file(tree);
  ParameterCollection m;
  Dict words;
  HierarchicalSoftmaxBuilder b(3, file.name, words, m);
  CHECK(words.size() == 7);
  // The root and "0 0" choose among three, "0" and "2" between two.
  std::vector<Dim> dims;
  for (auto &p : b.get_parameter_collection().parameters_list())
    dims.push_back(p->dim);
  EQUAL(dims, "[{3,3} {3} {1,3} {1} {3,3} {3} {1,3} {1}]");
  const std::vector<double> l = losses(b, 7);
  close(total(l), 1);
  batches_agree(b);
  for (unsigned w = 0; w < 7; ++w)
    gradients_are_right(b, m, w);
  draws_as_it_says(b, l);
  ComputationGraph cg;
  b.new_graph(cg);
  Expression x = input(cg, {3}, some);
  THROWS(std::runtime_error, "not implemented", b.full_logits(x));
  THROWS(std::invalid_argument, "word 7", b.neg_log_softmax(x, 7u));
}

TEST(damaged_cluster_files_are_refused) {
  ParameterCollection m;
  Dict words;
  THROWS(std::invalid_argument, "cannot read",
         ClassFactoredSoftmaxBuilder(3, "no such file", words, m));
  THROWS(std::invalid_argument, "cannot read",
         HierarchicalSoftmaxBuilder(3, "no such file", words, m));
  {
    File file("A red\nA\n");
    THROWS(std::invalid_argument, "line 2", ClassFactoredSoftmaxBuilder(3, file.name, words, m));
  }
  {
    File file("");
    THROWS(std::invalid_argument, "no clusters",
           ClassFactoredSoftmaxBuilder(3, file.name, words, m));
  }
  {
    File file("0 0\tred\n0 1 blue\n");
    THROWS(std::invalid_argument, "line 2", HierarchicalSoftmaxBuilder(3, file.name, words, m));
  }
  {
    File file("0\tred\n0 1\tblue\n");
    THROWS(std::invalid_argument, "both children and words",
           HierarchicalSoftmaxBuilder(3, file.name, words, m));
  }
  ParameterCollection other;
  StandardSoftmaxBuilder b(3, 6, other);
  ComputationGraph cg;
  THROWS(std::invalid_argument, "call new_graph first", b.full_logits(input(cg, {3}, some)));
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
