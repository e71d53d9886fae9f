/// \file
/// Includes dynet.h, for programs that name this header: execution is the engine's.
#ifndef DYNET_EXEC_H
#define DYNET_EXEC_H
#include "dynet/dynet.h"
#endif
