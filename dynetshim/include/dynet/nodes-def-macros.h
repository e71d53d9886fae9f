/// \file
/// For classes of a program's own nodes that are written as DyNet's are: the functions that such a
/// class declares, and texts for as_string.
#ifndef DYNET_NODE_DEF_MACROS_H_
#define DYNET_NODE_DEF_MACROS_H_

#include <sstream>
#include <string>
#include <vector>

#include "dynet/dynet.h"

namespace dynet {

/// Whether all axes but the first have one element. No axes: true, as in DyNet.
inline bool LooksLikeVector(const Dim &d) {
  for (unsigned i = 1; i < d.nd; ++i)
    if (d.d[i] != 1)
      return false;
  return true;
}

/// "[1,2,3]", and "]" for an empty list, as in DyNet.
template <class T> std::string print_vec(const std::vector<T> &list) {
  std::ostringstream out;
  const char *before = "[";
  for (const T &x : list) {
    out << before << x;
    before = ",";
  }
  out << ']';
  return out.str();
}

/// Lists in a list, each as print_vec writes it.
template <class T> std::string print_vecs(const std::vector<std::vector<T>> &lists) {
  std::vector<std::string> texts;
  for (const std::vector<T> &x : lists)
    texts.push_back(print_vec(x));
  return print_vec(texts);
}

} // namespace dynet

/// In a class: declares dim_forward, as_string, and templates forward_dev_impl and
/// backward_dev_impl, which take a device besides. DYNET_NODE_INST_DEV_IMPL defines the rest.
#define DYNET_NODE_DEFINE_DEV_IMPL()                                                               \
  dynet::Dim dim_forward(const std::vector<dynet::Dim> &xs) const override;                        \
  std::string as_string(const std::vector<std::string> &arg_names) const override;                 \
  void forward_impl(const std::vector<const dynet::Tensor *> &xs, dynet::Tensor &fx)               \
      const override;                                                                              \
  void backward_impl(const std::vector<const dynet::Tensor *> &xs, const dynet::Tensor &fx,        \
                     const dynet::Tensor &dEdf, unsigned i, dynet::Tensor &dEdxi) const override;  \
  template <class MyDevice>                                                                        \
  void forward_dev_impl(const MyDevice &dev, const std::vector<const dynet::Tensor *> &xs,         \
                        dynet::Tensor &fx) const;                                                  \
  template <class MyDevice>                                                                        \
  void backward_dev_impl(const MyDevice &dev, const std::vector<const dynet::Tensor *> &xs,        \
                         const dynet::Tensor &fx, const dynet::Tensor &dEdf, unsigned i,           \
                         dynet::Tensor &dEdxi) const;

#endif
