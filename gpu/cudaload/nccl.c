// NCCL: opening it, and collective operations on the stream of a device.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "context.h"
#include "nccl.h"

#pragma GCC visibility push(hidden)

_Static_assert(sizeof(ncclUniqueId) == 128, "as NCCL passes it by value");

static int unusable(void *so, char *msg, size_t n, const char *name, const char *why) {
  snprintf(msg, n, "%s: %s", name, why);
  dlclose(so);
  return -1;
}

int vpps_open_nccl(const char *name, struct nccl *lib, int *version, char *msg, size_t n) {
  char why[128];
  void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!so) {
    snprintf(msg, n, "%s", dlerror());
    return -1;
  }
  *(void **)&lib->ncclGetVersion = dlsym(so, "ncclGetVersion");
  if (!lib->ncclGetVersion || lib->ncclGetVersion(version))
    return unusable(so, msg, n, name, "it has no ncclGetVersion");
  // Until 2.8 the code of X.Y.Z is XYZZ.
  if (*version < VPPS_NCCL_OLDEST) {
    const int by = *version < 10000 ? 1000 : 10000;
    snprintf(why, sizeof why, "it is NCCL %d.%d, the oldest that is of use is 2.11", *version / by,
             *version % by / 100);
    return unusable(so, msg, n, name, why);
  }
#define NCCL_FN(fn, params)                                                                        \
  *(void **)&lib->fn = dlsym(so, #fn);                                                             \
  if (!lib->fn)                                                                                    \
    return unusable(so, msg, n, name, "it has no " #fn);
#include "nccl_fn.h"
#undef NCCL_FN
  *(void **)&lib->ncclGetErrorString = dlsym(so, "ncclGetErrorString");
  *(void **)&lib->ncclGetLastError = dlsym(so, "ncclGetLastError");
  Dl_info where;
  snprintf(msg, n, "%s",
           dladdr((void *)lib->ncclGetVersion, &where) && where.dli_fname ? where.dli_fname : name);
  return 0;
}

int vpps_nccl_create(const struct nccl *lib, CUcontext ctx, int ranks, const ncclUniqueId *id,
                     int rank, ncclComm_t *comm) {
  IN_CONTEXT(ctx, lib->ncclCommInitRank(comm, ranks, *id, rank));
}

int vpps_nccl_abort(const struct nccl *lib, CUcontext ctx, ncclComm_t comm) {
  IN_CONTEXT(ctx, lib->ncclCommAbort(comm));
}

int vpps_nccl_destroy(const struct nccl *lib, CUcontext ctx, ncclComm_t comm) {
  IN_CONTEXT(ctx, lib->ncclCommDestroy(comm));
}

// All ranges in one launch.
static int sum_all(const struct nccl *lib, CUstream s, ncclComm_t comm,
                   const struct vpps_range *ranges, size_t n, int op) {
  ncclResult_t r = lib->ncclGroupStart(), ended;
  if (r)
    return r;
  for (size_t i = 0; i < n && !r; i++)
    r = lib->ncclAllReduce((const void *)ranges[i].from, (void *)ranges[i].to, ranges[i].n,
                           VPPS_NCCL_FLOAT32, op, comm, s);
  ended = lib->ncclGroupEnd();
  return r ? r : ended;
}

static int sum_scaled(const struct nccl *lib, CUstream s, ncclComm_t comm,
                      const struct vpps_range *ranges, size_t n, float *scale) {
  int op;
  if (!scale)
    return sum_all(lib, s, comm, ranges, n, VPPS_NCCL_SUM);
  ncclResult_t r =
      lib->ncclRedOpCreatePreMulSum(&op, scale, VPPS_NCCL_FLOAT32, VPPS_NCCL_ON_HOST, comm);
  if (r)
    return r;
  r = sum_all(lib, s, comm, ranges, n, op);
  const ncclResult_t destroyed = lib->ncclRedOpDestroy(op, comm);
  return r ? r : destroyed;
}

int vpps_nccl_sum(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                  const struct vpps_range *ranges, size_t n, float *scale) {
  IN_CONTEXT(ctx, sum_scaled(lib, s, comm, ranges, n, scale));
}

int vpps_nccl_sum_bf16(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                       CUdeviceptr at, size_t n) {
  IN_CONTEXT(ctx, lib->ncclAllReduce((const void *)at, (void *)at, n, VPPS_NCCL_BFLOAT16,
                                     VPPS_NCCL_SUM, comm, s));
}

int vpps_nccl_gather(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                     CUdeviceptr from, CUdeviceptr to, size_t n) {
  IN_CONTEXT(ctx, lib->ncclAllGather((const void *)from, (void *)to, n, VPPS_NCCL_UINT32, comm, s));
}

int vpps_nccl_broadcast(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                        CUdeviceptr at, size_t n, int root) {
  IN_CONTEXT(ctx,
             lib->ncclBroadcast((const void *)at, (void *)at, n, VPPS_NCCL_UINT32, root, comm, s));
}
#pragma GCC visibility pop
