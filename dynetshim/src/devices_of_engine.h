// The list of devices of the process.
#ifndef DYNETSHIM_DEVICES_OF_ENGINE_H
#define DYNETSHIM_DEVICES_OF_ENGINE_H

#include <string>

#include "dynet/devices.h"

namespace dynet {

// Lists the devices of an engine that describes itself so: vpps_engine_describe. default_device is
// the first.
void list_devices(const std::string &description);
// Empties the list, and default_device is null.
void drop_devices();

// Where tensors of a program's own nodes are: it is listed last.
inline Device *host() { return get_device_manager()->get_devices().back(); }

} // namespace dynet
#endif
