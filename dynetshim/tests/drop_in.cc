// What programs for DyNet lean on without naming it: forward declarations, headers that come along,
// macros, flags, texts.
namespace dynet {
class Model;
class ParameterCollection;
} // namespace dynet

#include <dynet/dynet.h>
#include <dynet/except.h>
#include <dynet/init.h>
#include <dynet/nodes-def-macros.h>
#include <dynet/nodes-impl-macros.h>

#include <dynet/nodes-macros.h> // DyNet 2.0's, which has what the two above have

// Programs carry changed copies of DyNet's headers, whose include guards keep the originals out.
#ifndef DYNET_DICT_H_
#define DYNET_DICT_H_
namespace dynet {
struct Dict {}; // the program's own
} // namespace dynet
#endif
#include <dynet/dict.h>

#include "check.h"

using namespace dynet;

namespace {
#ifdef DYNET_EXCEPT_H_
const bool except_has_dynets_guard = true;
#else
const bool except_has_dynets_guard = false;
#endif
} // namespace

namespace {

size_t parameters_of(Model &m); // a program's own function over the forward declaration

std::string printed(const Dim &d, std::vector<float> values) {
  std::ostringstream os;
  os << Tensor(d, values.data(), default_device, DeviceMempool::NONE);
  return os.str();
}

void check_positive(int n) { DYNET_ARG_CHECK(n > 0, "needs a positive number, got " << n); }
void fail(int n) {
  if (n > 0)
    DYNET_RUNTIME_ERR("failed " << n << " times")
}

} // namespace

TEST(a_model_is_a_class) {
  Model m;
  m.add_parameters({2});
  EQUAL(parameters_of(m), 1u);
  ParameterCollection &same = m;
  EQUAL(same.size(), 1u);
}

namespace {
size_t parameters_of(Model &m) { return m.size(); }
} // namespace

// dynet.h brings these headers with it, as DyNet's does: this file includes none of them.
TEST(standard_headers_come_along) {
  std::vector<int> v = {3, 1, 2};
  std::sort(v.begin(), v.end());
  std::map<std::string, int> map;
  std::set<int> set(v.begin(), v.end());
  std::ostringstream text;
  map["a"] = static_cast<int>(std::strlen("abc"));
  text << v[0] << map["a"] << set.size() << std::endl;
  EQUAL(text.str(), "133\n");
  CHECK(std::cout.good() && std::cerr.good());
}

TEST(include_guards_are_dynets) {
  EQUAL(sizeof(Dict), sizeof(char)); // the program's own
  CHECK(except_has_dynets_guard);
}

TEST(a_shape_can_be_bound_as_in_dynet) {
  ComputationGraph cg;
  Expression x = zeros(cg, {2, 3});
  Dim &shape = cg.get_dimension(x.i);
  EQUAL(shape.size(), 6u);
}

TEST(macros_throw) {
  THROWS(std::invalid_argument, "needs a positive number, got -3", check_positive(-3));
  check_positive(3);
  THROWS(std::runtime_error, "failed 2 times", fail(2));
  fail(0);
  DYNET_ASSERT(false, "is off");
  THROWS(std::runtime_error, "sort is not implemented for GPUs", DYNET_NO_CUDA_IMPL_ERROR("sort"));
  THROWS(std::invalid_argument, "bad", DYNET_INVALID_ARG("bad"));
}

// Texts of Eigen's operator<<.
TEST(tensors_print_aligned) {
  EQUAL(printed({2}, {.5f, -1}), "0.5\n -1");
  EQUAL(printed({2, 2}, {1, -20, 300, 4}), "  1 300\n-20   4");
  EQUAL(printed({1, 3}, {1, 2, 3}), "1 2 3");
  EQUAL(printed({1}, {1e-10f}), "1e-10");
  std::ostringstream fixed;
  std::vector<float> values = {1, 22.5f};
  fixed << std::fixed;
  fixed.precision(1);
  fixed << Tensor({2}, values.data(), default_device, DeviceMempool::NONE);
  EQUAL(fixed.str(), " 1.0\n22.5");
}

TEST(the_debug_flag_of_autobatching_is_taken) {
  std::vector<std::string> words = {
      "program", "--dynet-autobatch-debug", "1", "--dynet_mem=5", "--dynet-autobatch", "1", "mine"};
  std::vector<char *> av;
  for (std::string &w : words)
    av.push_back(&w[0]);
  av.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  char **argv = av.data();
  DynetParams p = extract_dynet_params(argc, argv);
  EQUAL(argc, 2);
  EQUAL(argv[1], "mine");
  EQUAL(p.autobatch, 1);
}

TEST(project_weights_prints_the_norm) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({3, 4}));
  EQUAL(tests::printed(std::cerr, [&] { m.project_weights(); }), "NORM: 5\n");
  EQUAL(as_vector(*p.values())[1], 4);
}

TEST(a_collection_shows_its_storage) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitConst(1));
  LookupParameter l = m.add_subcollection("sub").add_lookup_parameters(3, {2});
  const ParameterCollectionStorage &s = m.get_storage();
  CHECK(s.params.size() == 1 && s.lookup_params.size() == 1 && s.all_params.size() == 2);
  CHECK(s.params[0] == p.p.unexposed() && s.lookup_params[0] == l.p.unexposed());
  EQUAL(s.params[0]->values.v[1], 1);
  EQUAL(s.gradient_l2_norm(), m.gradient_l2_norm());
}

namespace {
// Twice its argument, written as for DyNet 2.0.
struct Twice : public Node {
  explicit Twice(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  bool supports_multibatch() const override { return true; }
  DYNET_NODE_DEFINE_DEV_IMPL()
};
Dim Twice::dim_forward(const std::vector<Dim> &xs) const { return xs[0]; }
std::string Twice::as_string(const std::vector<std::string> &n) const { return "twice " + n[0]; }
template <class D>
void Twice::forward_dev_impl(const D &, const std::vector<const Tensor *> &xs, Tensor &fx) const {
  for (size_t k = 0; k < fx.d.size(); ++k)
    fx.v[k] = 2 * xs[0]->v[k];
}
template <class D>
void Twice::backward_dev_impl(const D &, const std::vector<const Tensor *> &, const Tensor &,
                              const Tensor &dEdf, unsigned, Tensor &dEdxi) const {
  for (size_t k = 0; k < dEdxi.d.size(); ++k)
    dEdxi.v[k] += 2 * dEdf.v[k];
}
DYNET_NODE_INST_DEV_IMPL(Twice)
} // namespace

TEST(classes_of_nodes_are_written_with_the_macros_of_dynet_2_0) {
  ParameterCollection m;
  Parameter p = m.add_parameters({2}, ParameterInitFromVector({3, 4}));
  ComputationGraph cg;
  Expression y(&cg, cg.add_function<Twice>({parameter(cg, p).i})), loss = sum_elems(y);
  EQUAL(as_scalar(loss.value()), 14);
  cg.backward(loss);
  EQUAL(as_vector(*p.gradients())[1], 2);
}

int main(int argc, char **argv) {
  initialize(argc, argv);
  return tests::run_tests();
}
