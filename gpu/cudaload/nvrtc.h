/* Declarations of NVRTC, NVIDIA's run-time compiler, written for this project;
 * see cuda.h. A loaded library is a table of its functions, so several
 * versions can be open in one process. */
#ifndef VPPS_NVRTC_H
#define VPPS_NVRTC_H
#include <stddef.h>

typedef int nvrtcResult; /* 0 is success, 6 a source that does not compile */
enum { VPPS_NVRTC_OUT_OF_MEMORY = 1 };
typedef struct _nvrtcProgram *nvrtcProgram;

struct nvrtc {
#define NVRTC_FN(name, params) nvrtcResult(*name) params;
#include "nvrtc_fn.h"
#undef NVRTC_FN
  const char *(*nvrtcGetErrorString)(nvrtcResult);
};

/* Opens a library and fills in the table. 0, or -1 with the reason in msg. */
int vpps_open_nvrtc(const char *name, struct nvrtc *lib, char *msg, size_t n);
/* Opens a library that another one will ask for by its soname. */
int vpps_preload(const char *path);

/* Compiles a source to machine code. *log (and, on success, *image) come from
 * malloc and belong to the caller. *step names the function that failed. */
nvrtcResult vpps_compile(const struct nvrtc *lib, const char *name, const char *src, int n_options,
                         char **options, char **image, size_t *image_size, char **log,
                         const char **step);
#endif
