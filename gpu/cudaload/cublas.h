/* Declarations of cuBLAS, NVIDIA's library of matrix products, written for this project; see
 * cuda.h. A loaded library is a table of its functions. */
#ifndef VPPS_CUBLAS_H
#define VPPS_CUBLAS_H
#include <stddef.h>
#include "cuda.h"

typedef int cublasStatus_t; /* 0 is success */
typedef struct cublasContext *cublasHandle_t;

struct cublas {
#define CUBLAS_FN(name, params) cublasStatus_t(*name) params;
#include "cublas_fn.h"
#undef CUBLAS_FN
  const char *(*cublasGetStatusString)(cublasStatus_t); /* NULL before 11.4 */
};

/* Opens a library and fills in the table. 0, or -1 with the reason in msg. */
int vpps_open_cublas(const char *name, struct cublas *lib, char *msg, size_t n);

/* Each makes ctx current and puts the caller's context back. The result is cuBLAS's or, below 0,
 * the driver's, negated. */

/* Makes a handle for work on a stream. */
int vpps_cublas_create(const struct cublas *lib, CUcontext ctx, CUstream s, cublasHandle_t *h,
                       int *version);
int vpps_cublas_destroy(const struct cublas *lib, CUcontext ctx, cublasHandle_t h);
/* c (m x n) = alpha * a (m x k) * b (n x k)^T + beta * c, all in columns without gaps. */
int vpps_cublas_gemm(const struct cublas *lib, CUcontext ctx, cublasHandle_t h, int m, int n, int k,
                     float alpha, CUdeviceptr a, CUdeviceptr b, float beta, CUdeviceptr c);
#endif
