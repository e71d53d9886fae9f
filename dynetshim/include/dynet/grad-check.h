// check_grad: compares the gradients of a scalar expression with central differences.
#ifndef DYNET_GRAD_CHECK_H
#define DYNET_GRAD_CHECK_H

#include "dynet/expr.h"

namespace dynet {

// Whether all agree within 0.01 (absolutely, or relative to the larger one). Covers every
// element of every parameter, and the rows of tables that have a gradient. Clears the
// gradients first; needs a forward pass that is not random. verbosity 1: what differs,
// 2: everything, to std::cerr.
bool check_grad(ParameterCollection &m, Expression &expr, int verbosity = 1);

} // namespace dynet
#endif
