// The run-time compiler: opening one and compiling with it. It needs neither a
// driver nor a device.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "nvrtc.h"

#pragma GCC visibility push(hidden)

int vpps_preload(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL) ? 0 : -1; }

int vpps_open_nvrtc(const char *name, struct nvrtc *lib, char *msg, size_t n) {
  void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!so) {
    snprintf(msg, n, "%s", dlerror());
    return -1;
  }
  // C99 has no conversion from an object to a function pointer; POSIX wants this.
#define FIND(fn)                                                                                   \
  *(void **)&lib->fn = dlsym(so, #fn);                                                             \
  if (!lib->fn) {                                                                                  \
    snprintf(msg, n, "%s: it has no %s", name, #fn);                                               \
    dlclose(so);                                                                                   \
    return -1;                                                                                     \
  }
#define NVRTC_FN(fn, params) FIND(fn)
#include "nvrtc_fn.h"
#undef NVRTC_FN
  FIND(nvrtcGetErrorString)
#undef FIND
  return 0;
}

nvrtcResult vpps_compile(const struct nvrtc *lib, const char *name, const char *src, int n_options,
                         char **options, char **image, size_t *image_size, char **log,
                         const char **step) {
  nvrtcProgram p;
  size_t n = 0;
  nvrtcResult r, r2;

  *image = *log = NULL;
  *image_size = 0;
  *step = "nvrtcCreateProgram";
  r = lib->nvrtcCreateProgram(&p, src, name, 0, NULL, NULL);
  if (r)
    return r;
  *step = "nvrtcCompileProgram";
  r = lib->nvrtcCompileProgram(p, n_options, (const char *const *)options);

  // The log is wanted most when the source does not compile.
  r2 = lib->nvrtcGetProgramLogSize(p, &n);
  if (!r2 && n > 0 && (*log = calloc(n + 1, 1)))
    lib->nvrtcGetProgramLog(p, *log);

  if (!r) {
    *step = "nvrtcGetCUBIN";
    r = lib->nvrtcGetCUBINSize(p, image_size);
  }
  if (!r && *image_size > 0) {
    *image = calloc(*image_size, 1);
    r = *image ? lib->nvrtcGetCUBIN(p, *image) : VPPS_NVRTC_OUT_OF_MEMORY;
  }
  if (r) {
    free(*image);
    *image = NULL;
  }
  lib->nvrtcDestroyProgram(&p);
  return r;
}
#pragma GCC visibility pop
