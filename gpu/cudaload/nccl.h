/* Declarations of NCCL, NVIDIA's library of collective operations, written for this project; see
 * cuda.h. A loaded library is a table of its functions. */
#ifndef VPPS_NCCL_H
#define VPPS_NCCL_H
#include <stddef.h>
#include "cuda.h"

typedef int ncclResult_t; /* 0 is success */
typedef struct ncclComm *ncclComm_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;

/* ncclDataType_t, ncclRedOp_t, ncclScalarResidence_t, and a code of ncclGetVersion. */
enum { VPPS_NCCL_UINT32 = 3, VPPS_NCCL_FLOAT32 = 7, VPPS_NCCL_BFLOAT16 = 9 };
enum { VPPS_NCCL_SUM = 0, VPPS_NCCL_ON_HOST = 1 };
enum { VPPS_NCCL_OLDEST = 21100 }; /* 2.11: the first that weighs what it sums */

struct nccl {
#define NCCL_FN(name, params) ncclResult_t(*name) params;
#include "nccl_fn.h"
#undef NCCL_FN
  const char *(*ncclGetErrorString)(ncclResult_t);
  const char *(*ncclGetLastError)(ncclComm_t); /* NULL before 2.13 */
};

/* Floats at from and where their sums go, which may be the same place. */
struct vpps_range {
  CUdeviceptr from, to;
  size_t n;
};

/* Opens a library and fills in the table. 0 with the file in msg, or -1 with the reason. */
int vpps_open_nccl(const char *name, struct nccl *lib, int *version, char *msg, size_t n);

/* Each makes ctx current and puts the caller's context back. The result is NCCL's or, below 0, the
 * driver's, negated. Those with a stream put their work there. */

int vpps_nccl_create(const struct nccl *lib, CUcontext ctx, int ranks, const ncclUniqueId *id,
                     int rank, ncclComm_t *comm);
int vpps_nccl_abort(const struct nccl *lib, CUcontext ctx, ncclComm_t comm);
int vpps_nccl_destroy(const struct nccl *lib, CUcontext ctx, ncclComm_t comm);
/* Sums n ranges over all ranks, each multiplied by its rank's scale; NULL on all: as they are. */
int vpps_nccl_sum(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                  const struct vpps_range *ranges, size_t n, float *scale);
/* Sums n numbers of bfloat16 over all ranks, where they are. */
int vpps_nccl_sum_bf16(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                       CUdeviceptr at, size_t n);
/* n words of each rank, by rank. */
int vpps_nccl_gather(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                     CUdeviceptr from, CUdeviceptr to, size_t n);
int vpps_nccl_broadcast(const struct nccl *lib, CUcontext ctx, CUstream s, ncclComm_t comm,
                        CUdeviceptr at, size_t n, int root);
#endif
