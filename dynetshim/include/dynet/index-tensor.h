/// \file
/// Includes tensor.h, which has dynet::IndexTensor.
#ifndef DYNET_INDEX_TENSOR_H
#define DYNET_INDEX_TENSOR_H
#include "dynet/tensor.h"
#endif
