// The list of devices, and where a graph's nodes are in it.
#include "dynet/devices.h"

#include <algorithm>
#include <stdexcept>

#include "devices_of_engine.h"
#include "dynet/aligned-mem-pool.h"
#include "dynet/dynet.h"
#include "dynet/globals.h"
#include "dynet/str-util.h"
#include "recorder.h"

namespace dynet {

namespace {

CPUAllocator host_memory;

// Owns the listed devices.
std::vector<std::unique_ptr<Device>> &listed() {
  static std::vector<std::unique_ptr<Device>> &devices = *new std::vector<std::unique_ptr<Device>>;
  return devices;
}

void list(std::unique_ptr<Device> device) {
  get_device_manager()->add(device.get());
  listed().push_back(std::move(device));
}

} // namespace

DeviceMempoolSizes::DeviceMempoolSizes() : used() {}

DeviceMempoolSizes::DeviceMempoolSizes(size_t all) {
  if (all == 0)
    throw std::invalid_argument("DeviceMempoolSizes: no bytes for four pools");
  std::fill_n(used, 4, std::max<size_t>(all / 4, 1));
}

DeviceMempoolSizes::DeviceMempoolSizes(size_t fxs, size_t dEdfs, size_t ps, size_t scs)
    : used{fxs, dEdfs, ps, scs} {}

DeviceMempoolSizes::DeviceMempoolSizes(const std::string &descriptor) {
  const std::vector<std::string> parts = str_split(descriptor, ',');
  size_t sizes[4] = {};
  for (size_t k = 0; k < parts.size() && k < 4; ++k) {
    if (parts[k].find_first_not_of("0123456789") != std::string::npos || parts[k].size() > 18)
      throw std::invalid_argument("DeviceMempoolSizes: " + parts[k] + " is no number of bytes");
    sizes[k] = std::stoul(parts[k]);
  }
  if (parts.size() == 1)
    *this = DeviceMempoolSizes(sizes[0]);
  else if (parts.size() == 4)
    *this = DeviceMempoolSizes(sizes[0], sizes[1], sizes[2], sizes[3]);
  else
    throw std::invalid_argument("DeviceMempoolSizes: \"" + descriptor +
                                "\" has neither one number nor four");
}

Device::Device(int id, DeviceType kind, const std::string &its_name)
    : device_id(id), type(kind), name(its_name), mem(&host_memory) {
  static float numbers[] = {-1, 1, 0};
  kSCALAR_MINUSONE = numbers, kSCALAR_ONE = numbers + 1, kSCALAR_ZERO = numbers + 2;
  for (int k = 0; k < 4; ++k) {
    owned_.emplace_back(new AlignedMemoryPool(its_name, 1 << 16, &host_memory));
    pools.push_back(owned_.back().get());
  }
}

Device::~Device() {}

DeviceMempoolSizes Device::mark(ComputationGraph *graph) {
  if (!graph->nodes.empty())
    graph->incremental_forward(static_cast<VariableIndex>(graph->nodes.size() - 1));
  return DeviceMempoolSizes(pools[0]->used(), pools[1]->used(), pools[2]->used(), pools[3]->used());
}

void Device::revert(const DeviceMempoolSizes &sizes) {
  for (size_t k = 0; k < 4; ++k)
    if (sizes.used[k] > pools[k]->used())
      throw std::invalid_argument("Device::revert: " + std::to_string(sizes.used[k]) +
                                  " bytes of pool " + std::to_string(k) + ", which has " +
                                  std::to_string(pools[k]->used()));
}

void Device::allocate_tensor(DeviceMempool pool, Tensor &tensor) {
  if (pool == DeviceMempool::NONE)
    throw std::invalid_argument("Device::allocate_tensor: DeviceMempool::NONE has no memory");
  tensor.v = static_cast<float *>(
      pools[static_cast<size_t>(pool)]->allocate(tensor.d.size() * sizeof(float)));
  tensor.mem_pool = pool;
}

Device_CPU::Device_CPU(int id) : Device(id, DeviceType::CPU, "CPU"), shmem(&cpu_mem) {
  // Eigen's device has no members. The library is compiled without Eigen, so that any address
  // serves.
  static char place;
  edevice = reinterpret_cast<Eigen::DefaultDevice *>(&place);
}

void list_devices(const std::string &description) {
  int count = 0;
  if (description.compare(0, 5, "cuda:") == 0) {
    const std::string number = description.substr(5, description.find(':', 5) - 5);
    list(std::unique_ptr<Device>(new Device(count++, DeviceType::GPU, "GPU:" + number)));
  }
  list(std::unique_ptr<Device>(new Device_CPU(count)));
  default_device = get_device_manager()->get(0);
}

void drop_devices() {
  default_device = nullptr;
  get_device_manager()->clear();
  listed().clear();
}

DeviceManager *get_device_manager() {
  static DeviceManager *manager = new DeviceManager;
  return manager;
}

Device *DeviceManager::get_global_device(const std::string &name) {
  if (name.empty() && default_device == nullptr)
    throw std::runtime_error("Default device does not exist: call dynet::initialize first");
  if (name.empty())
    return default_device;
  std::string names;
  for (Device *d : devices_) {
    if (name == d->name)
      return d;
    names += (names.empty() ? "" : ", ") + d->name;
  }
  throw std::runtime_error("Invalid device name: " + name + ": the process has " +
                           (names.empty() ? "none before dynet::initialize" : "only " + names));
}

// ---- nodes -----------------------------------------------------------------------

Device *Recorder::device(VariableIndex i) {
  if (places.size() == 0)
    return default_device;
  locate(i);
  return located_[i];
}

const Place *Recorder::place(VariableIndex i) const {
  size_t from = 0, to = places.size();
  while (from < to) {
    const size_t middle = (from + to) / 2;
    if (places[middle].node < i)
      from = middle + 1;
    else
      to = middle;
  }
  return from < places.size() && places[from].node == i ? &places[from] : nullptr;
}

void Recorder::put(VariableIndex i, Device *device, bool copy) {
  const Place p = {i, device, copy};
  places.push(p);
  unlocate(i);
}

void Recorder::unlocate(uint32_t nodes) {
  if (located_.size() <= nodes)
    return;
  located_.resize(nodes);
  located_words_ = words_of(nodes);
  if (mixed_ >= nodes)
    mixed_ = none;
}

void Recorder::locate(VariableIndex last) {
  while (located_.size() <= last) {
    const VariableIndex i = static_cast<VariableIndex>(located_.size());
    const Read r = read(located_words_);
    located_words_ = r.next;
    const OwnNode *own = own_node(i);
    const uint32_t *args = own ? own->node->args.data() : r.args;
    const size_t nargs = own ? own->node->args.size() : r.nargs;
    const Place *chosen = place(i);
    Device *device = default_device;
    if (own)
      device = own->node->device;
    else if (chosen && chosen->device)
      device = chosen->device;
    else if (nargs > 0)
      device = located_[args[0]];
    const bool several = own ? own->node->supports_multidevice() : chosen && chosen->copy;
    for (size_t k = 0; k < nargs && !several && mixed_ == none; ++k)
      if (located_[args[k]] != device) {
        mixed_ = i;
        mixed_argument_ = args[k];
      }
    located_.push_back(device);
  }
}

void Recorder::refuse_mixed_devices(VariableIndex last) {
  locate(last);
  if (mixed_ > last)
    return;
  throw std::invalid_argument("different devices (nodes " + std::to_string(mixed_) + " and " +
                              std::to_string(mixed_argument_) + "): node " +
                              std::to_string(mixed_) + " is on " + located_[mixed_]->name +
                              ", its argument on " + located_[mixed_argument_]->name +
                              ": copy the argument by to_device first");
}

} // namespace dynet
