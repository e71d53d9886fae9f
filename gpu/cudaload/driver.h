/* What Go calls in this folder's C files about the driver: loading it, and the
 * calls that gorgonia.org/cu lacks or makes too dear. */
#ifndef VPPS_DRIVER_H
#define VPPS_DRIVER_H
#include <stddef.h>
#include "cuda.h"

/* -1: the library cannot be opened (msg says why); else the result of cuInit(0). */
int vpps_load_cuda(const char *name, char *msg, size_t n);
/* The file that a function was loaded from, NULL if that is not known; of the driver, once loaded.
 */
const char *vpps_file_of(void *function);
const char *vpps_cuda_file(void);
/* How often the forwarder of a driver function was called in this process. */
unsigned long long vpps_cuda_calls(const char *function);

/* Each makes ctx current, makes its call and puts the caller's context back, all
 * in one crossing from Go, so no operating-system thread needs to be locked. */
CUresult vpps_launch(CUcontext ctx, CUstream s, CUfunction f, unsigned grid, unsigned block,
                     unsigned shared, char *args, const unsigned *offsets, unsigned n);
CUresult vpps_copy_to_device(CUcontext ctx, CUstream s, CUdeviceptr dst, const void *src,
                             size_t bytes, int wait);
CUresult vpps_copy_ahead(CUcontext ctx, CUstream copies, CUstream s, CUevent at, CUdeviceptr dst,
                         const void *src, size_t bytes);
CUresult vpps_copy_from_device(CUcontext ctx, CUstream s, void *dst, CUdeviceptr src, size_t bytes);
CUresult vpps_copy_on_device(CUcontext ctx, CUstream s, CUdeviceptr dst, CUdeviceptr src,
                             size_t bytes);
CUresult vpps_memset32(CUcontext ctx, CUstream s, CUdeviceptr dst, unsigned v, size_t count);
CUresult vpps_synchronize(CUcontext ctx, CUstream s);
CUresult vpps_event_record(CUcontext ctx, CUstream s, CUevent e);
CUresult vpps_event_query(CUcontext ctx, CUevent e);
CUresult vpps_event_wait(CUcontext ctx, CUevent e);
CUresult vpps_alloc_host(CUcontext ctx, size_t bytes, void **mem, CUdeviceptr *dev);
CUresult vpps_set_max_shared(CUcontext ctx, CUfunction f, int bytes);
#endif
