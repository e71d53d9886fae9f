/// \file
/// Devices: the names that DyNet gives to the places where nodes and parameters are. The engine has
/// one device, on which all of them are executed.
#ifndef DYNET_DEVICES_H
#define DYNET_DEVICES_H

#include <memory>
#include <string>
#include <vector>

#include "dynet/mem.h"

/// \cond
namespace Eigen {
struct DefaultDevice;
}
/// \endcond

namespace dynet {

class AlignedMemoryPool;
class ComputationGraph;
struct Tensor;

/// The kind of a device.
enum class DeviceType {
  CPU, ///< the machine's processors
  GPU  ///< an NVIDIA GPU
};
/// DyNet's memory pools. A Tensor carries one, which counts for nothing.
enum class DeviceMempool {
  FXS = 0,   ///< values of a graph
  DEDFS = 1, ///< gradients of a graph
  PS = 2,    ///< parameters
  SCS = 3,   ///< scratch
  NONE = 4   ///< none of these
};

/// Bytes of each pool, by DeviceMempool but NONE.
struct DeviceMempoolSizes {
  std::size_t used[4]; ///< bytes
  /// No bytes.
  DeviceMempoolSizes();
  /// A quarter of all bytes for each pool. 0: std::invalid_argument.
  DeviceMempoolSizes(std::size_t all);
  /// The bytes of each pool.
  DeviceMempoolSizes(std::size_t fxs, std::size_t dEdfs, std::size_t ps, std::size_t scs);
  /// One number, of all bytes, or four with commas between them. Another text:
  /// std::invalid_argument.
  DeviceMempoolSizes(const std::string &descriptor);
};

/// A device by number, kind and name.
class Device {
public:
  /// Describes a device; opens nothing.
  Device(int id, DeviceType kind, const std::string &its_name);
  virtual ~Device();
  /// Evaluates all nodes of a graph that has some. Returns what is used of the pools.
  virtual DeviceMempoolSizes mark(ComputationGraph *graph);
  /// More than is used of a pool is std::invalid_argument. Else it does nothing: the engine sees to
  /// its memory itself.
  virtual void revert(const DeviceMempoolSizes &sizes);
  /// Gives a tensor memory from one of the pools. NONE: std::invalid_argument.
  void allocate_tensor(DeviceMempool pool, Tensor &tensor);
  /// Does nothing, as in DyNet on a CPU: dynet::reset_rng() seeds.
  void reset_rng(unsigned) {}
  int device_id;     ///< the number in the list of devices
  DeviceType type;   ///< CPU or GPU
  std::string name;  ///< "CPU" or "GPU:0"
  MemAllocator *mem; ///< where the pools' memory is from: the host's
  ///@{
  /// The number in the host's memory.
  float *kSCALAR_MINUSONE, *kSCALAR_ONE, *kSCALAR_ZERO;
  ///@}
  /// Host memory for the program's own nodes, by DeviceMempool but NONE, owned by the device. The
  /// engine takes nothing from them.
  std::vector<AlignedMemoryPool *> pools;

private:
  Device(const Device &);
  Device &operator=(const Device &);
  std::vector<std::unique_ptr<AlignedMemoryPool>> owned_;
};

/// The host. Tensors that a program's own node gets are there, so that it may take their device for
/// one of this class.
class Device_CPU : public Device {
public:
  typedef Eigen::DefaultDevice EigenDevice; ///< what edevice points to
  /// The host as number id in the list of devices.
  explicit Device_CPU(int id);
  CPUAllocator cpu_mem;          ///< the host's memory
  Eigen::DefaultDevice *edevice; ///< for tvec(fx).device(*dev.edevice) = ...
  MemAllocator *shmem;           ///< &cpu_mem
};

/// The list of devices, as DyNet has it: from initialize() to cleanup() the GPU, if the engine is
/// on one, and after it the CPU. The first is the default device.
class DeviceManager {
public:
  /// Device number i, owned by the front-end. Out of range: std::out_of_range.
  Device *get(size_t i) { return devices_.at(i); }
  /// How many there are.
  size_t num_devices() const { return devices_.size(); }
  /// All devices.
  const std::vector<Device *> &get_devices() const { return devices_; }
  /// The device of a name; "" is the default device. An unknown name: std::runtime_error.
  Device *get_global_device(const std::string &name);
  /// Adds a device to the list. The caller keeps it alive. initialize() calls this.
  void add(Device *device) { devices_.push_back(device); }
  /// Empties the list. cleanup() calls this.
  void clear() { devices_.clear(); }

private:
  std::vector<Device *> devices_;
};

/// The process's list of devices. Do not delete it.
DeviceManager *get_device_manager();
/// Prints what takes how much of the engine's memory to std::cerr: vpps_memory_report(). Before
/// initialize(): nothing.
void show_pool_mem_info();

} // namespace dynet
#endif
