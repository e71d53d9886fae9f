/// \file
/// Includes dynet.h, for programs that name this header: nodes are recorded words, see
/// dynet::Node.
#ifndef DYNET_NODES_H
#define DYNET_NODES_H
#include "dynet/dynet.h"
#endif
