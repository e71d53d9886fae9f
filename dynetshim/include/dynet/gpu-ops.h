/// \file
/// Includes dynet.h, for programs that name this header: GPUs are the engine's.
#ifndef DYNET_GPU_OPS_H
#define DYNET_GPU_OPS_H
#include "dynet/dynet.h"
#endif
