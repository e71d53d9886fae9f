/// \file
/// Includes nodes.h, for programs that name this header: it has all classes of nodes.
#include "dynet/nodes.h"
