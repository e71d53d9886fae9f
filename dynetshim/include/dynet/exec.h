// For programs that include it: execution is the engine's.
#ifndef DYNET_EXEC_H
#define DYNET_EXEC_H
#include "dynet/dynet.h"
#endif
