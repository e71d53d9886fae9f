// IndexTensor is in tensor.h.
#ifndef DYNET_INDEX_TENSOR_H
#define DYNET_INDEX_TENSOR_H
#include "dynet/tensor.h"
#endif
