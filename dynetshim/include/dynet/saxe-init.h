/// \file
/// orthonormal_random: a random orthonormal matrix.
#ifndef DYNET_SAXE_INIT_H_
#define DYNET_SAXE_INIT_H_

#include "dynet/tensor.h"

namespace dynet {

/// Sets x, a square matrix of dim rows, to a random orthonormal matrix times g:
/// TensorTools::randomize_orthonormal(). Another shape: std::runtime_error.
void orthonormal_random(unsigned dim, float g, Tensor &x);

} // namespace dynet
#endif
