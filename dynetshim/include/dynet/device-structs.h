/// \file
/// Includes devices.h, which has dynet::DeviceType and dynet::DeviceMempool.
#ifndef DYNET_DEVICE_STRUCTS_H
#define DYNET_DEVICE_STRUCTS_H
#include "dynet/devices.h"
#endif
