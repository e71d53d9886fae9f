// A class of nodes that only the program knows.
#ifndef VPPS_TESTS_OWN_CLASS_H
#define VPPS_TESTS_OWN_CLASS_H
#include <dynet/dynet.h>
#include <dynet/expr.h>

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

Expression doubled(const Expression &x) {
  return Expression(x.pg, x.pg->add_function<twice>({x.i}));
}

} // namespace
#endif
