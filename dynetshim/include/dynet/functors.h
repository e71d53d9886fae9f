/// \file
/// Two of DyNet's macros, for programs that name this header: there are no functors here.
#ifndef DYNET_GPU_FUNCTORS_H
#define DYNET_GPU_FUNCTORS_H
#include <limits>

#include "dynet/globals.h"

/// Marks functions that run on a device, too: none of a program's do.
#define DYNET_DEVICE_FUNC
/// The smallest normal float, which stands for 0 in logarithms.
#define DYNET_DEVICE_MIN std::numeric_limits<float>::min()
#endif
