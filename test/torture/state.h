/* What all parts of calls.c share: the table of functions, objects, threads, and how a fault is
 * told. */
#ifndef VPPS_TORTURE_STATE_H
#define VPPS_TORTURE_STATE_H

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ops.h>
#include <vpps.h>

/* Functions and how often each is called, relative to the others. */
#define FUNCTIONS(F)                                                                               \
  F(version, 1)                                                                                    \
  F(build_info, 1)                                                                                 \
  F(last_error, 1)                                                                                 \
  F(frontend, 2)                                                                                   \
  F(set_log, 2)                                                                                    \
  F(system_report, 1)                                                                              \
  F(engine_open, 4)                                                                                \
  F(engine_close, 4)                                                                               \
  F(engine_describe, 2)                                                                            \
  F(engine_seed, 30)                                                                               \
  F(engine_statistics, 10)                                                                         \
  F(engine_times, 2)                                                                               \
  F(collection_create, 2)                                                                          \
  F(collection_set_lambda, 4)                                                                      \
  F(collection_factor, 10)                                                                         \
  F(collection_set_factor, 4)                                                                      \
  F(parameter_create, 3)                                                                           \
  F(parameter_destroy, 3)                                                                          \
  F(parameter_read, 30)                                                                            \
  F(parameter_write, 10)                                                                           \
  F(parameter_scale, 4)                                                                            \
  F(parameter_expose, 1)                                                                           \
  F(parameter_set_updated, 10)                                                                     \
  F(parameter_touched, 10)                                                                         \
  F(parameter_memory, 4)                                                                           \
  F(parameter_gradient_memory, 6)                                                                  \
  F(parameter_set_touched, 6)                                                                      \
  F(graph_create, 10)                                                                              \
  F(graph_destroy, 6)                                                                              \
  F(forward, 8)                                                                                    \
  F(value, 8)                                                                                      \
  F(backward, 4)                                                                                   \
  F(node_gradients, 4)                                                                             \
  F(gradient, 30)                                                                                  \
  F(infer, 8)                                                                                      \
  F(infer_result, 12)                                                                              \
  F(infer_drop, 4)                                                                                 \
  F(graph_truncate, 10)                                                                            \
  F(graph_invalidate, 4)                                                                           \
  F(trainer_create, 4)                                                                             \
  F(trainer_set, 20)                                                                               \
  F(trainer_add, 10)                                                                               \
  F(trainer_restart, 2)                                                                            \
  F(trainer_read_state, 20)                                                                        \
  F(trainer_write_state, 10)                                                                       \
  F(trainer_updates, 20)                                                                           \
  F(trainer_set_updates, 10)                                                                       \
  F(update, 2)                                                                                     \
  F(trainer_destroy, 1)                                                                            \
  F(handle_create, 3)                                                                              \
  F(handle_destroy, 1)                                                                             \
  F(handle_trainer, 20)                                                                            \
  F(fb, 4)                                                                                         \
  F(handle_keep, 10)                                                                               \
  F(sync_latest_loss, 4)                                                                           \
  F(handle_clips, 10)                                                                              \
  F(comm_create_local, 3)                                                                          \
  F(comm_create_mpi, 1)                                                                            \
  F(comm_nccl_id, 1)                                                                               \
  F(comm_create_nccl, 1)                                                                           \
  F(comm_create_launched, 1)                                                                       \
  F(comm_broadcast, 4)                                                                             \
  F(comm_rank, 10)                                                                                 \
  F(comm_barrier, 4)                                                                               \
  F(comm_abort, 1)                                                                                 \
  F(comm_destroy, 2)                                                                               \
  F(comm_attach, 4)                                                                                \
  F(comm_detach, 2)                                                                                \
  F(comm_count, 4)                                                                                 \
  F(comm_join, 4)                                                                                  \
  F(global_loss, 4)                                                                                \
  F(checkpoint_save, 2)                                                                            \
  F(checkpoint_open, 2)                                                                            \
  F(checkpoint_blob, 10)                                                                           \
  F(checkpoint_load, 4)                                                                            \
  F(checkpoint_close, 1)                                                                           \
  F(plan_report, 4)                                                                                \
  F(flush_timeline, 4)                                                                             \
  F(script_dump, 1)                                                                                \
  F(clock_table, 1)                                                                                \
  F(memory_report, 2)

#define NAME(name, weight) #name,
static const char *const names[] = {FUNCTIONS(NAME)};
#define WEIGHT(name, weight) weight,
static const int weights[] = {FUNCTIONS(WEIGHT)};
#define FN(name, weight) FN_##name,
enum { FUNCTIONS(FN) FUNCTION_COUNT };

enum { STATUSES = 12, MOST_THREADS = 64, GRAPHS = 4, NODES = 48, POOL = 8, OLD = 64, INPUTS = 64 };
enum { TICKETS = 16 };
enum { MOST_PARAMETERS = 2000, IDS = 16, ROOM = 4096 };
enum kind { ENGINE, GRAPH, TRAINER, HANDLE, CHECKPOINT, COMM, KINDS };

/* A graph as its thread knows it. */
typedef struct Shadow {
  vpps_graph *graph; /* NULL: is to be made */
  int suspect;       /* it may have other nodes than these: is to be emptied */
  int dims_sent, nodes;
  int evaluated; /* nodes whose values are there */
  uint8_t dim[NODES];
  float inputs[INPUTS];
} Shadow;

typedef struct Thread {
  int number;
  uint64_t random;
  Shadow own[GRAPHS];
  uint64_t tickets[TICKETS]; /* of the latest answers, and how many elements they have */
  uint32_t elements[TICKETS], asked;
  uint8_t coming[8];     /* dims of the nodes that a call brings */
  void *left[KINDS][64]; /* objects that calls of other threads used when they were destroyed */
  int lefts[KINDS];
  uint64_t calls[FUNCTION_COUNT], fine[FUNCTION_COUNT];
  uint64_t statuses[STATUSES]; /* atomic */
  int function, resting;       /* atomic */
  uint32_t words[NODES * 8], ids[IDS];
  float floats[ROOM];
  char text[ROOM];
} Thread;

static struct {
  const char *device;
  uint64_t seed, calls;
  double seconds;
  int threads;
} options = {NULL, 0, UINT64_MAX, 10, 4};

static vpps_engine *engine;
static uint32_t quiet; /* a parameter {1, 2} that only known sums read */
enum { PARAMETERS = 16 };
static uint32_t parameters[PARAMETERS];
static int made_parameters; /* atomic */
static void *pool[KINDS][POOL], *old[KINDS][OLD], *foreign[KINDS][2];
static uint32_t rule_of[POOL], size_of[PARAMETERS];            /* of trainers; of parameters */
static const uint32_t vectors_of[] = {0, 1, 1, 2, 1, 2, 3, 1}; /* that a rule remembers */
static uint32_t parameters_of[POOL];                           /* bits */
static Thread threads[MOST_THREADS];
static int alone; /* in the first part */
static double end_at;
static char folder[] = "/tmp/vpps_calls_XXXXXX"; /* of checkpoints */

static void fail(const char *format, ...) {
  va_list a;
  va_start(a, format);
  fprintf(stderr, "FAILED (seed %llu): ", (unsigned long long)options.seed);
  vfprintf(stderr, format, a);
  fprintf(stderr, "; last error: %s\n", vpps_last_error());
  va_end(a);
  _exit(1);
}
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      fail("%s:%d: not: %s", __FILE__, __LINE__, #condition);                                      \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
