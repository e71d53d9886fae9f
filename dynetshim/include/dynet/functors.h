/// \file
/// Includes globals.h, for programs that name this header: there are no functors here.
#ifndef DYNET_FUNCTORS_H
#define DYNET_FUNCTORS_H
#include "dynet/globals.h"
#endif
