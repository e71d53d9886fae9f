// clang-format off
// A stand-in for libcuda.so.1 on machines without a GPU: every function succeeds
// and does nothing, except those in some.c.
#include "cuda.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CUDA_FN(name, params, args) __attribute__((weak)) CUresult name params { return CUDA_SUCCESS; }
#include "cuda_fn.h"
