// For programs that include it: nodes are recorded words, see NodeView.
#ifndef DYNET_NODES_H
#define DYNET_NODES_H
#include "dynet/dynet.h"
#endif
