/// \file
/// Device: here one engine of libvpps. Programs pass devices around; every tensor lives on the only
/// one.
#ifndef DYNET_DEVICES_H
#define DYNET_DEVICES_H

#include <memory>
#include <string>
#include <vector>

namespace dynet {

class AlignedMemoryPool;

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

/// A device by number, kind and name.
class Device {
public:
  /// Describes a device; opens nothing.
  Device(int id, DeviceType kind, const std::string &its_name);
  ~Device();
  /// Does nothing, as in DyNet on a CPU: dynet::reset_rng() seeds.
  void reset_rng(unsigned) {}
  int device_id;    ///< 0: there is one device
  DeviceType type;  ///< CPU or GPU
  std::string name; ///< "CPU" or "GPU:0"
  /// Host memory for the program's own nodes, by DeviceMempool but NONE, owned by the device. The
  /// engine takes nothing from them.
  std::vector<AlignedMemoryPool *> pools;

private:
  Device(const Device &);
  Device &operator=(const Device &);
  std::vector<std::unique_ptr<AlignedMemoryPool>> owned_;
};

/// The list of devices: one from initialize() to cleanup(), else none.
class DeviceManager {
public:
  /// Device number i, owned by the front-end. Out of range: std::out_of_range.
  Device *get(size_t i) { return devices_.at(i); }
  /// 1 after initialize(), else 0.
  size_t num_devices() const { return devices_.size(); }
  /// All devices.
  const std::vector<Device *> &get_devices() const { return devices_; }
  /// The device of a name; "" is the default device. An unknown name: std::runtime_error.
  Device *get_global_device(const std::string &name);
  /// Makes device the only one; null: none. The caller keeps it alive. initialize() calls this.
  void set(Device *device) { devices_.assign(device ? 1 : 0, device); }

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
