// The calls that every batch makes, and those that gorgonia.org/cu lacks
// (cooperative launch, pinned memory, function attributes). The driver works on
// the context that is current to the calling thread; each function here brings
// its own and leaves the caller's as it was.
#include "driver.h"

#pragma GCC visibility push(hidden)

static CUresult leave(CUresult r) {
  CUcontext mine;
  CUresult popped = cuCtxPopCurrent(&mine);
  return r ? r : popped;
}

#define IN_CONTEXT(ctx, call)                                                                      \
  do {                                                                                             \
    CUresult r_ = cuCtxPushCurrent(ctx);                                                           \
    return r_ ? r_ : leave(call);                                                                  \
  } while (0)

CUresult vpps_launch(CUcontext ctx, CUstream s, CUfunction f, unsigned grid, unsigned block,
                     unsigned shared, char *args, const unsigned *offsets, unsigned n) {
  void *p[64];
  if (n > 64)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < n; i++)
    p[i] = args + offsets[i];
  IN_CONTEXT(ctx, cuLaunchCooperativeKernel(f, grid, 1, 1, block, 1, 1, shared, s, p));
}

static CUresult finish(CUresult r, CUstream s) { return r ? r : cuStreamSynchronize(s); }

CUresult vpps_copy_to_device(CUcontext ctx, CUstream s, CUdeviceptr dst, const void *src,
                             size_t bytes, int wait) {
  if (wait)
    IN_CONTEXT(ctx, finish(cuMemcpyHtoDAsync(dst, src, bytes, s), s));
  IN_CONTEXT(ctx, cuMemcpyHtoDAsync(dst, src, bytes, s));
}

// On a stream of its own, and s goes on behind it; at is an event for that.
static CUresult copy_ahead(CUstream copies, CUstream s, CUevent at, CUdeviceptr dst,
                           const void *src, size_t bytes) {
  CUresult r = cuMemcpyHtoDAsync(dst, src, bytes, copies);
  if (!r)
    r = cuEventRecord(at, copies);
  return r ? r : cuStreamWaitEvent(s, at, 0);
}

CUresult vpps_copy_ahead(CUcontext ctx, CUstream copies, CUstream s, CUevent at, CUdeviceptr dst,
                         const void *src, size_t bytes) {
  IN_CONTEXT(ctx, copy_ahead(copies, s, at, dst, src, bytes));
}

CUresult vpps_copy_from_device(CUcontext ctx, CUstream s, void *dst, CUdeviceptr src,
                               size_t bytes) {
  IN_CONTEXT(ctx, finish(cuMemcpyDtoHAsync(dst, src, bytes, s), s));
}

CUresult vpps_copy_on_device(CUcontext ctx, CUstream s, CUdeviceptr dst, CUdeviceptr src,
                             size_t bytes) {
  IN_CONTEXT(ctx, cuMemcpyDtoDAsync(dst, src, bytes, s));
}

CUresult vpps_memset32(CUcontext ctx, CUstream s, CUdeviceptr dst, unsigned v, size_t count) {
  IN_CONTEXT(ctx, cuMemsetD32Async(dst, v, count, s));
}

CUresult vpps_synchronize(CUcontext ctx, CUstream s) { IN_CONTEXT(ctx, cuStreamSynchronize(s)); }

CUresult vpps_event_record(CUcontext ctx, CUstream s, CUevent e) {
  IN_CONTEXT(ctx, cuEventRecord(e, s));
}

CUresult vpps_event_query(CUcontext ctx, CUevent e) { IN_CONTEXT(ctx, cuEventQuery(e)); }

CUresult vpps_event_wait(CUcontext ctx, CUevent e) { IN_CONTEXT(ctx, cuEventSynchronize(e)); }

static CUresult alloc_host(size_t bytes, void **mem, CUdeviceptr *dev) {
  CUresult r = cuMemHostAlloc(mem, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (r)
    return r;
  r = cuMemHostGetDevicePointer(dev, *mem, 0);
  if (r)
    cuMemFreeHost(*mem);
  return r;
}

CUresult vpps_alloc_host(CUcontext ctx, size_t bytes, void **mem, CUdeviceptr *dev) {
  IN_CONTEXT(ctx, alloc_host(bytes, mem, dev));
}

CUresult vpps_set_max_shared(CUcontext ctx, CUfunction f, int bytes) {
  IN_CONTEXT(ctx, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}
#pragma GCC visibility pop
