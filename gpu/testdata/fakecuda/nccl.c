// A stand-in for libnccl.so.2: ranks are threads or processes, which meet in a file in memory. An
// operation happens at once, in memory of the stand-in for the driver, whose context must be
// current; it waits for the other ranks until its own is aborted. For tests only. Environment:
// VPPS_LIBCUDA is that stand-in; VPPS_FAKE_NCCL is the code of its version;
// VPPS_FAKE_NCCL_FAIL=function:code makes one function fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS, CUDA_FAILED, SYSTEM_ERROR, INVALID_ARGUMENT = 4, INVALID_USAGE, REMOTE_ERROR };
enum { RANKS = 8, CHUNK = 1 << 14, OPS = 5, FLOAT = 7, BFLOAT16 = 9 };

static int fails(const char *function) {
  const char *v = getenv("VPPS_FAKE_NCCL_FAIL");
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
    return CUDA_FAILED;

// What a rank is in, and its part of the data.
typedef struct {
  atomic_uint arrived; // at how many barriers
  size_t n;
  int kind, root;
  float scale;
  unsigned data[CHUNK];
} Part;

typedef struct {
  Part part[RANKS];
} Shared;

typedef struct {
  Shared *shared;
  int rank, size;
  unsigned barriers;
  float scales[16];
  int scale_count;
  atomic_int aborted;
} Comm;

typedef struct {
  char file[128];
} ID;

static int arrived(Comm *c, int rank) {
  return atomic_load(&c->shared->part[rank].arrived) >= c->barriers;
}

// Waits for all ranks.
static int barrier(Comm *c) {
  atomic_store(&c->shared->part[c->rank].arrived, ++c->barriers);
  for (int k = 0; k < c->size; k++)
    while (!arrived(c, k)) {
      const struct timespec little = {0, 20000};
      if (c->aborted)
        return REMOTE_ERROR;
      nanosleep(&little, NULL);
    }
  return SUCCESS;
}

enum { REDUCE, GATHER, BROADCAST, REDUCE_BF16 };

// A number of bfloat16 and the nearest one, of two that are as near the even.
static float of_bf16(unsigned x) {
  float f;
  x <<= 16;
  memcpy(&f, &x, 4);
  return f;
}
static unsigned bf16_of(float f) {
  unsigned x;
  memcpy(&x, &f, 4);
  return f != f ? 0x7fff : (x + 0x7fff + (x >> 16 & 1)) >> 16;
}

// The sums of two words of two numbers each, as NCCL adds: each sum is rounded.
static unsigned sum_bf16(unsigned a, unsigned b) {
  return bf16_of(of_bf16(a & 0xffff) + of_bf16(b & 0xffff)) |
         bf16_of(of_bf16(a >> 16) + of_bf16(b >> 16)) << 16;
}

// What the parts make of this rank's words. Of a gathering that is aborted some are there.
static void take(Comm *c, int kind, int root, unsigned *to, size_t at, size_t m, size_t n) {
  for (int r = 0; r < c->size; r++) {
    const Part *p = &c->shared->part[r];
    if (!arrived(c, r))
      continue;
    if (kind == GATHER)
      memcpy(to + (size_t)r * n + at, p->data, 4 * m);
    else if (kind == BROADCAST && r == root)
      memcpy(to + at, p->data, 4 * m);
    for (size_t i = 0; kind == REDUCE_BF16 && i < m; i++)
      to[at + i] = r ? sum_bf16(to[at + i], p->data[i]) : p->data[i];
    for (size_t i = 0; kind == REDUCE && i < m; i++) {
      float sum, x;
      memcpy(&x, &p->data[i], 4);
      memcpy(&sum, to + at + i, 4);
      sum = r ? sum + p->scale * x : p->scale * x;
      memcpy(to + at + i, &sum, 4);
    }
  }
}

static int operate(Comm *c, int kind, const unsigned *from, unsigned *to, size_t n, int root,
                   float scale, void *stream) {
  Part *mine = &c->shared->part[c->rank];
  if (!stream || c->aborted)
    return INVALID_ARGUMENT;
  for (size_t at = 0; at < n; at += CHUNK) {
    const size_t m = n - at < CHUNK ? n - at : CHUNK;
    mine->n = n, mine->kind = kind, mine->root = root, mine->scale = scale;
    memcpy(mine->data, from + at, 4 * m);
    int r = barrier(c);
    for (int k = 0; !r && k < c->size; k++)
      if (c->shared->part[k].n != n || c->shared->part[k].kind != kind ||
          c->shared->part[k].root != root)
        r = INVALID_USAGE;
    if (r && (r != REMOTE_ERROR || kind != GATHER))
      return r;
    take(c, kind, root, to, at, m, n);
    if (r || (r = barrier(c)))
      return r;
  }
  return SUCCESS;
}

int ncclGetVersion(int *v) {
  const char *code = getenv("VPPS_FAKE_NCCL");
  *v = code && *code ? atoi(code) : 22304;
  return SUCCESS;
}
int ncclGetUniqueId(ID *id) {
  if (fails("ncclGetUniqueId"))
    return fails("ncclGetUniqueId");
  memset(id, 0, sizeof *id);
  strcpy(id->file, "/dev/shm/vpps_fake_nccl_XXXXXX");
  const int fd = mkstemp(id->file);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)))
    return SYSTEM_ERROR;
  close(fd);
  return SUCCESS;
}
int ncclCommInitRank(Comm **out, int size, ID id, int rank) {
  BEGIN(ncclCommInitRank)
  const int fd = open(id.file, O_RDWR);
  if (fd < 0 || size > RANKS)
    return SYSTEM_ERROR;
  Comm *c = calloc(1, sizeof *c);
  c->shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (c->shared == MAP_FAILED)
    return SYSTEM_ERROR;
  c->rank = rank, c->size = size;
  const int r = barrier(c);
  unlink(id.file);
  *out = c;
  return r;
}
int ncclCommGetAsyncError(Comm *c, int *r) {
  *r = fails("ncclCommGetAsyncError");
  return c->aborted ? INVALID_ARGUMENT : SUCCESS;
}
// A communicator is not freed: an operation may still be in it.
int ncclCommAbort(Comm *c) {
  BEGIN(ncclCommAbort)
  c->aborted = 1;
  return SUCCESS;
}
int ncclCommDestroy(Comm *c) {
  BEGIN(ncclCommDestroy)
  munmap(c->shared, sizeof(Shared));
  free(c);
  return SUCCESS;
}
int ncclGroupStart(void) { return fails("ncclGroupStart"); }
int ncclGroupEnd(void) { return fails("ncclGroupEnd"); }
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, Comm *c, void *stream) {
  BEGIN(ncclAllReduce)
  if (type == BFLOAT16 && op == 0 && n % 2 == 0)
    return operate(c, REDUCE_BF16, from, to, n / 2, 0, 1, stream);
  if (type != FLOAT || (op != 0 && (op < OPS || op >= OPS + 16)))
    return INVALID_ARGUMENT;
  return operate(c, REDUCE, from, to, n, op != 0, op ? c->scales[op - OPS] : 1, stream);
}
int ncclAllGather(const void *from, void *to, size_t n, int type, Comm *c, void *stream) {
  BEGIN(ncclAllGather)
  return type == 3 ? operate(c, GATHER, from, to, n, 0, 1, stream) : INVALID_ARGUMENT;
}
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, Comm *c, void *stream) {
  BEGIN(ncclBroadcast)
  return type == 3 ? operate(c, BROADCAST, from, to, n, root, 1, stream) : INVALID_ARGUMENT;
}
int ncclRedOpCreatePreMulSum(int *op, float *scale, int type, int residence, Comm *c) {
  BEGIN(ncclRedOpCreatePreMulSum)
  if (type != FLOAT || residence != 1)
    return INVALID_ARGUMENT;
  *op = OPS + c->scale_count++ % 16;
  c->scales[*op - OPS] = *scale;
  return SUCCESS;
}
int ncclRedOpDestroy(int op, Comm *c) {
  (void)op, (void)c;
  return SUCCESS;
}
const char *ncclGetErrorString(int r) {
  return r == REMOTE_ERROR ? "remote process exited or there was a network error"
                           : "as the fake NCCL was told";
}
