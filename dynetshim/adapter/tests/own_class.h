// A class of nodes that only the program knows.
#ifndef VPPS_TESTS_OWN_CLASS_H
#define VPPS_TESTS_OWN_CLASS_H
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/param-nodes.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace {
using namespace dynet;

// A node of the program's own.
struct twice : public dynet::Node {
  explicit twice(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  std::string as_string(const std::vector<std::string> &) const override { return "twice"; }
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  bool supports_multibatch() const override { return true; }
  void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const override {
    for (unsigned i = 0; i < fx.d.size(); i++)
      fx.v[i] = 2 * xs[0]->v[i];
  }
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &dEdf,
                     unsigned, Tensor &dEdxi) const override {
    for (unsigned i = 0; i < dEdf.d.size(); i++)
      dEdxi.v[i] += 2 * dEdf.v[i];
  }
};

// The product of two vectors, element by element, batches all at a time.
struct times : public dynet::Node {
  explicit times(const std::initializer_list<VariableIndex> &a) : Node(a) {}
  std::string as_string(const std::vector<std::string> &) const override { return "times"; }
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  bool supports_multibatch() const override { return true; }
  size_t aux_storage_size() const override { return dim.size() * sizeof(float); }
  // The second may be one for all batch elements.
  static float of(const Tensor &x, unsigned i) { return x.v[i % x.d.size()]; }
  void forward_impl(const std::vector<const Tensor *> &xs, Tensor &fx) const override {
    for (unsigned i = 0; i < fx.d.size(); i++) {
      static_cast<float *>(aux_mem)[i] = of(*xs[1], i);
      fx.v[i] = xs[0]->v[i] * of(*xs[1], i);
    }
  }
  void backward_impl(const std::vector<const Tensor *> &xs, const Tensor &, const Tensor &dEdf,
                     unsigned k, Tensor &dEdxi) const override {
    for (unsigned i = 0; i < dEdf.d.size(); i++)
      dEdxi.v[i % dEdxi.d.size()] +=
          dEdf.v[i] * (k == 0 ? static_cast<float *>(aux_mem)[i] : xs[0]->v[i]);
  }
};

// A parameter's node, which reads DyNet's memory of it.
struct own_parameter : public dynet::ParameterNodeBase {
  explicit own_parameter(const std::initializer_list<VariableIndex> &a) : ParameterNodeBase() {
    args = a;
  }
  std::string as_string(const std::vector<std::string> &) const override { return "own"; }
  Dim dim_forward(const std::vector<Dim> &xs) const override { return xs[0]; }
  void forward_impl(const std::vector<const Tensor *> &, Tensor &) const override {}
  void backward_impl(const std::vector<const Tensor *> &, const Tensor &, const Tensor &, unsigned,
                     Tensor &) const override {}
  void accumulate_grad(const Tensor &) override {}
};

Expression doubled(const Expression &x) {
  return Expression(x.pg, x.pg->add_function<twice>({x.i}));
}

} // namespace
#endif
