// cuBLAS: opening it and multiplying with it. It works in the context that is current to the
// calling thread, which is the device's primary one.
#include <dlfcn.h>
#include <stdio.h>
#include "context.h"
#include "cublas.h"

#pragma GCC visibility push(hidden)

int vpps_open_cublas(const char *name, struct cublas *lib, char *msg, size_t n) {
  void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!so) {
    snprintf(msg, n, "%s", dlerror());
    return -1;
  }
#define CUBLAS_FN(fn, params)                                                                      \
  *(void **)&lib->fn = dlsym(so, #fn);                                                             \
  if (!lib->fn) {                                                                                  \
    snprintf(msg, n, "%s: it has no %s", name, #fn);                                               \
    dlclose(so);                                                                                   \
    return -1;                                                                                     \
  }
#include "cublas_fn.h"
#undef CUBLAS_FN
  *(void **)&lib->cublasGetStatusString = dlsym(so, "cublasGetStatusString");
  return 0;
}

static int create(const struct cublas *lib, CUstream s, cublasHandle_t *h, int *version) {
  cublasStatus_t r = lib->cublasCreate_v2(h);
  if (r)
    return r;
  r = lib->cublasSetStream_v2(*h, s);
  if (!r)
    r = lib->cublasGetVersion_v2(*h, version);
  if (r)
    lib->cublasDestroy_v2(*h);
  return r;
}

int vpps_cublas_create(const struct cublas *lib, CUcontext ctx, CUstream s, cublasHandle_t *h,
                       int *version) {
  IN_CONTEXT(ctx, create(lib, s, h, version));
}

int vpps_cublas_destroy(const struct cublas *lib, CUcontext ctx, cublasHandle_t h) {
  IN_CONTEXT(ctx, lib->cublasDestroy_v2(h));
}

int vpps_cublas_gemm(const struct cublas *lib, CUcontext ctx, cublasHandle_t h, int m, int n, int k,
                     float alpha, CUdeviceptr a, CUdeviceptr b, float beta, CUdeviceptr c) {
  enum { AS_IT_IS, TRANSPOSED }; // cublasOperation_t
  IN_CONTEXT(ctx, lib->cublasSgemm_v2(h, AS_IT_IS, TRANSPOSED, m, n, k, &alpha, (const float *)a, m,
                                      (const float *)b, n, &beta, (float *)c, m));
}
#pragma GCC visibility pop
