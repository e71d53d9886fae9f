/// \file
/// check_grad: compares the gradients of a scalar expression with central differences.
#ifndef DYNET_GRAD_CHECK_H
#define DYNET_GRAD_CHECK_H

#include "dynet/expr.h"

namespace dynet {

/// Whether all gradients agree with central differences within 0.01, absolutely or relative to the
/// larger of the two. Covers every element of every parameter of m, and of tables the elements
/// whose gradient is not 0. Clears the gradients first and leaves the parameters' values as they
/// were. expr: a scalar {1} whose forward pass is not random. verbosity 1: prints what differs to
/// std::cerr, 2: everything, 0: nothing.
bool check_grad(ParameterCollection &m, Expression &expr, int verbosity = 1);

} // namespace dynet
#endif
