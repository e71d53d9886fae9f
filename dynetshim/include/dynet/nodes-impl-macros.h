/// \file
/// For classes of a program's own nodes that are written as DyNet's are, with a device for Eigen.
/// Such nodes run on the host, whatever device libvpps runs on.
#ifndef DYNET_NODE_IMPL_MACROS_H_
#define DYNET_NODE_IMPL_MACROS_H_

#include "dynet/devices.h"
#include "dynet/dynet.h"
#include "dynet/tensor-eigen.h"

/// \cond
namespace dynet {
namespace detail {
// The device of a tensor that a program's own node gets.
inline const Device_CPU &host(const Tensor &t) {
  return *static_cast<const Device_CPU *>(t.device);
}
} // namespace detail
} // namespace dynet
/// \endcond

/// Behind the definitions of a class's forward_dev_impl and backward_dev_impl: defines forward_impl
/// and backward_impl, which call them for the host.
#define DYNET_NODE_INST_DEV_IMPL(MyNode)                                                           \
  void MyNode::forward_impl(const std::vector<const dynet::Tensor *> &xs, dynet::Tensor &fx)       \
      const {                                                                                      \
    forward_dev_impl(dynet::detail::host(fx), xs, fx);                                             \
  }                                                                                                \
  void MyNode::backward_impl(const std::vector<const dynet::Tensor *> &xs,                         \
                             const dynet::Tensor &fx, const dynet::Tensor &dEdf, unsigned i,       \
                             dynet::Tensor &dEdxi) const {                                         \
    backward_dev_impl(dynet::detail::host(fx), xs, fx, dEdf, i, dEdxi);                            \
  }

#endif
