/* The functions of cuBLAS that are used, one per line: CUBLAS_FN(symbol, (parameters)). */
/* clang-format off: tables read better in lines */
CUBLAS_FN(cublasCreate_v2, (cublasHandle_t *a))
CUBLAS_FN(cublasDestroy_v2, (cublasHandle_t a))
CUBLAS_FN(cublasGetVersion_v2, (cublasHandle_t a, int *b))
CUBLAS_FN(cublasSetStream_v2, (cublasHandle_t a, CUstream b))
CUBLAS_FN(cublasSgemm_v2, (cublasHandle_t a, int b, int c, int d, int e, int f, const float *g, const float *h, int i, const float *j, int k, const float *l, float *m, int n))
