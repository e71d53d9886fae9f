/// \file
/// There so that programs compile which include it.
#ifndef DYNET_GRAPH_H
#define DYNET_GRAPH_H
#include "dynet/dynet.h"
#endif
