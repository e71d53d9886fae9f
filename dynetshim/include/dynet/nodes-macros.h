/// \file
/// The macros of nodes-def-macros.h and nodes-impl-macros.h in one header, as in DyNet 2.0.
#ifndef DYNET_NODE_MACROS_H_
#define DYNET_NODE_MACROS_H_

#include "dynet/nodes-def-macros.h"
#include "dynet/nodes-impl-macros.h"

#endif
