// Device: here one engine of libvpps. Programs pass devices around; every tensor
// lives on the only one.
#ifndef DYNET_DEVICES_H
#define DYNET_DEVICES_H

#include <string>
#include <vector>

namespace dynet {

enum class DeviceType { CPU, GPU };
enum class DeviceMempool { FXS = 0, DEDFS = 1, PS = 2, SCS = 3, NONE = 4 };

class Device {
public:
  Device(int id, DeviceType type, const std::string &name)
      : device_id(id), type(type), name(name) {}
  int device_id;
  DeviceType type;
  std::string name; // "CPU" or "GPU:0"
};

class DeviceManager {
public:
  Device *get(size_t i) { return devices_.at(i); }
  size_t num_devices() const { return devices_.size(); }
  const std::vector<Device *> &get_devices() const { return devices_; }
  // "" is the default device; an unknown name: std::runtime_error.
  Device *get_global_device(const std::string &name);
  void set(Device *device) { devices_.assign(device ? 1 : 0, device); }

private:
  std::vector<Device *> devices_;
};

DeviceManager *get_device_manager();

} // namespace dynet
#endif
