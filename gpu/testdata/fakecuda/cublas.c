// A stand-in for libcublas.so: products on the host, at once, in memory of the stand-in for the
// driver, whose context must be current. For tests only. Environment: VPPS_LIBCUDA is that
// stand-in; VPPS_FAKE_CUBLAS_FAIL=function:code makes one function fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, NOT_INITIALIZED, INVALID_VALUE = 7 };

static int fails(const char *function) {
  const char *v = getenv("VPPS_FAKE_CUBLAS_FAIL");
  size_t n = strlen(function);
  return v && !strncmp(v, function, n) && v[n] == ':' ? atoi(v + n + 1) : SUCCESS;
}

// Whether the calling thread has a context.
static int in_context(void) {
  const char *file = getenv("VPPS_LIBCUDA");
  void *driver = file ? dlopen(file, RTLD_NOW | RTLD_NOLOAD) : NULL, *context = NULL;
  int (*get)(void **);
  if (!driver)
    return 0;
  *(void **)&get = dlsym(driver, "cuCtxGetCurrent");
  int ok = get && !get(&context) && context;
  dlclose(driver);
  return ok;
}

#define BEGIN(function)                                                                            \
  if (fails(#function))                                                                            \
    return fails(#function);                                                                       \
  if (!in_context())                                                                               \
    return NOT_INITIALIZED;

typedef struct {
  void *stream;
} Handle;

int cublasCreate_v2(Handle **h) {
  BEGIN(cublasCreate_v2)
  *h = calloc(1, sizeof **h);
  return SUCCESS;
}
int cublasDestroy_v2(Handle *h) {
  BEGIN(cublasDestroy_v2)
  free(h);
  return SUCCESS;
}
int cublasGetVersion_v2(Handle *h, int *v) {
  (void)h;
  *v = 120901;
  return SUCCESS;
}
int cublasSetStream_v2(Handle *h, void *stream) {
  BEGIN(cublasSetStream_v2)
  h->stream = stream;
  return SUCCESS;
}
// Only what is used: the first operand as it is, the second transposed, all without gaps.
int cublasSgemm_v2(Handle *h, int ta, int tb, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc) {
  BEGIN(cublasSgemm_v2)
  if (!h->stream || ta != 0 || tb != 1 || lda != m || ldb != n || ldc != m)
    return INVALID_VALUE;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      float sum = 0;
      for (int e = 0; e < k; e++)
        sum += a[i + e * m] * b[j + e * n];
      c[i + j * m] = *alpha * sum + (*beta != 0 ? *beta * c[i + j * m] : 0);
    }
  return SUCCESS;
}
const char *cublasGetStatusString(int r) {
  return r == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OTHER";
}
