/// \file
/// For classes of a program's own nodes that are written as DyNet's are, with a device for Eigen.
/// Such nodes run on the host, whatever device libvpps runs on.
#ifndef DYNET_NODES_IMPL_MACROS_H
#define DYNET_NODES_IMPL_MACROS_H

#include "dynet/devices.h"
#include "dynet/dynet.h"
#include "dynet/tensor-eigen.h"

namespace dynet {

/// The host, as forward_dev_impl and backward_dev_impl get it.
class Device_CPU : public Device {
public:
#ifdef DYNET_HAS_EIGEN
  Device_CPU() : Device(0, DeviceType::CPU, "CPU"), edevice(&eigen_) {}
  Eigen::DefaultDevice *edevice; ///< for tvec(fx).device(*dev.edevice) = ...

private:
  Device_CPU(const Device_CPU &);
  Device_CPU &operator=(const Device_CPU &);
  Eigen::DefaultDevice eigen_;
#else
  Device_CPU() : Device(0, DeviceType::CPU, "CPU") {}
#endif
};

/// \cond
namespace detail {
inline const Device_CPU &host_device() {
  static const Device_CPU host;
  return host;
}
} // namespace detail
/// \endcond

} // namespace dynet

/// Behind the definitions of a class's forward_dev_impl and backward_dev_impl: defines forward_impl
/// and backward_impl, which call them for the host.
#define DYNET_NODE_INST_DEV_IMPL(MyNode)                                                           \
  void MyNode::forward_impl(const std::vector<const dynet::Tensor *> &xs, dynet::Tensor &fx)       \
      const {                                                                                      \
    forward_dev_impl(dynet::detail::host_device(), xs, fx);                                        \
  }                                                                                                \
  void MyNode::backward_impl(const std::vector<const dynet::Tensor *> &xs,                         \
                             const dynet::Tensor &fx, const dynet::Tensor &dEdf, unsigned i,       \
                             dynet::Tensor &dEdxi) const {                                         \
    backward_dev_impl(dynet::detail::host_device(), xs, fx, dEdf, i, dEdxi);                       \
  }

#endif
