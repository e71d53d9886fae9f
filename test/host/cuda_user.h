/* The CUDA driver for programs that use it beside the library, opened by name: no toolkit is
 * needed. Without a driver and a GPU the program says so and exits with 77, "skipped". */
#ifndef CUDA_USER_H
#define CUDA_USER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef unsigned long long CUdeviceptr;

static struct {
  int (*cuInit)(unsigned);
  int (*cuDeviceGetCount)(int *);
  int (*cuDeviceGet)(CUdevice *, int);
  int (*cuDeviceGetName)(char *, int, CUdevice);
  int (*cuCtxCreate_v2)(CUcontext *, unsigned, CUdevice);
  int (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
  int (*cuCtxGetCurrent)(CUcontext *);
  int (*cuCtxSetCurrent)(CUcontext);
  int (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
  int (*cuMemGetInfo_v2)(size_t *, size_t *);
  int (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
  int (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
} cuda;

static inline void skip(const char *why) {
  printf("skipped: %s\n", why);
  exit(77);
}

/* Skips unless the engine runs on a GPU here. */
static inline void find_cuda(void) {
  const char *device = getenv("VPPS_DEVICE"), *file = getenv("VPPS_LIBCUDA");
  void *driver;
  int count = 0;
  if (device != NULL && strncmp(device, "cuda", 4) != 0)
    skip("needs VPPS_DEVICE=cuda");
  driver = dlopen(file != NULL && *file ? file : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL)
    skip("needs a GPU");
#define FIND(name)                                                                                 \
  *(void **)&cuda.name = dlsym(driver, #name);                                                     \
  CHECK(cuda.name != NULL)
  FIND(cuInit);
  FIND(cuDeviceGetCount);
  FIND(cuDeviceGet);
  FIND(cuDeviceGetName);
  FIND(cuCtxCreate_v2);
  FIND(cuDevicePrimaryCtxRetain);
  FIND(cuCtxGetCurrent);
  FIND(cuCtxSetCurrent);
  FIND(cuMemAlloc_v2);
  FIND(cuMemGetInfo_v2);
  FIND(cuMemcpyHtoD_v2);
  FIND(cuMemcpyDtoH_v2);
#undef FIND
  if (cuda.cuInit(0) != 0 || cuda.cuDeviceGetCount(&count) != 0 || count == 0)
    skip("needs a GPU");
}

static inline CUcontext current(void) {
  CUcontext c = NULL;
  CHECK(cuda.cuCtxGetCurrent(&c) == 0);
  return c;
}

/* Device memory of the current context, and what its n words hold. */
typedef struct Memory {
  CUdeviceptr at;
  uint32_t n, first;
} Memory;

static inline Memory fill_memory(uint32_t n, uint32_t first) {
  Memory m = {0, n, first};
  uint32_t *words = malloc(n * sizeof *words);
  for (uint32_t i = 0; i < n; i++)
    words[i] = first + i;
  CHECK(cuda.cuMemAlloc_v2(&m.at, n * sizeof *words) == 0);
  CHECK(cuda.cuMemcpyHtoD_v2(m.at, words, n * sizeof *words) == 0);
  free(words);
  return m;
}

static inline void check_memory(Memory m) {
  uint32_t *words = calloc(m.n, sizeof *words);
  CHECK(cuda.cuMemcpyDtoH_v2(words, m.at, m.n * sizeof *words) == 0);
  for (uint32_t i = 0; i < m.n; i++)
    CHECK(words[i] == m.first + i);
  free(words);
}

#endif
