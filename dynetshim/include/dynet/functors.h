// For programs that include it: there are no functors here.
#ifndef DYNET_FUNCTORS_H
#define DYNET_FUNCTORS_H
#include "dynet/globals.h"
#endif
