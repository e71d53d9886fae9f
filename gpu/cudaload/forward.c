// Definitions of every driver function listed in cuda_fn.h. Each one counts the
// call and jumps through a pointer that vpps_load_cuda fills in from the library
// found at run time; before that it returns an error. With these definitions in
// the link, -lcuda (which gorgonia.org/cu puts on the linker's command line) has
// nothing left to provide, and libvpps.so does not depend on the driver.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "driver.h"

// Not exported: a host program that uses CUDA itself must never be bound to these.
#pragma GCC visibility push(hidden)

static void *driver; // dlopen handle; never closed, as the driver cannot be restarted

#define CUDA_FN(name, params, args)                                                                \
  static CUresult(*p_##name) params;                                                               \
  static atomic_ullong n_##name;                                                                   \
  CUresult name params {                                                                           \
    if (!p_##name)                                                                                 \
      return driver ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED;                       \
    atomic_fetch_add_explicit(&n_##name, 1, memory_order_relaxed);                                 \
    return p_##name args;                                                                          \
  }
#include "cuda_fn.h"
#undef CUDA_FN

// gorgonia.org/cu calls cuInit from a package init function and exits the
// process if it fails. It always succeeds here and does nothing; the driver's
// own cuInit is called by vpps_load_cuda.
CUresult cuInit(unsigned int flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

static const struct entry {
  const char *name;
  void **fn;
  atomic_ullong *calls;
} entries[] = {
#define CUDA_FN(name, params, args) {#name, (void **)&p_##name, &n_##name},
#include "cuda_fn.h"
#undef CUDA_FN
};
enum { n_entries = sizeof entries / sizeof entries[0] };

int vpps_load_cuda(const char *name, char *msg, size_t n) {
  CUresult (*init)(unsigned int);

  driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    snprintf(msg, n, "%s", dlerror());
    return -1;
  }
  *(void **)&init = dlsym(driver, "cuInit");
  if (!init) {
    snprintf(msg, n, "%s: it has no cuInit", name);
    return -1;
  }
  for (size_t i = 0; i < n_entries; i++)
    *entries[i].fn = dlsym(driver, entries[i].name);
  return init(0);
}

const char *vpps_file_of(void *function) {
  Dl_info info;
  return function && dladdr(function, &info) ? info.dli_fname : NULL;
}

const char *vpps_cuda_file(void) {
  return vpps_file_of(p_cuDeviceGetCount ? (void *)p_cuDeviceGetCount : NULL);
}

unsigned long long vpps_cuda_calls(const char *function) {
  for (size_t i = 0; i < n_entries; i++)
    if (!strcmp(entries[i].name, function))
      return atomic_load_explicit(entries[i].calls, memory_order_relaxed);
  return 0;
}
#pragma GCC visibility pop
