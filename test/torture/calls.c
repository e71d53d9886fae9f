/* Random calls of every function of vpps.h from several threads: with live objects, destroyed ones,
 * those of other engines and junk; with arguments that are right, NULL, 0, huge or NaN; over small
 * graphs that are mostly right. No call may crash, hang, return a status that is none or
 * VPPS_ERR_INTERNAL, or fail without a text of one line. Sums that are known come out right. In the
 * first part, of one thread, everything that can be read is read before and after each call: if it
 * failed, all is as before, bit by bit.
 *
 * calls [--seconds N] [--calls N] [--threads N] [--seed N] [--device NAME]
 * The first part takes a fifth of the seconds; --threads 1 is this part alone. */
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
static uint32_t rule_of[POOL], size_of[PARAMETERS]; /* of trainers; of parameters */
static uint32_t parameters_of[POOL];                /* bits */
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

/* ---- random arguments ------------------------------------------------------------------------ */

static uint32_t draw(Thread *t) { /* xorshift64* */
  t->random ^= t->random >> 12;
  t->random ^= t->random << 25;
  t->random ^= t->random >> 27;
  return (uint32_t)(t->random * 2685821657736338717u >> 32);
}
static uint32_t below(Thread *t, uint32_t n) { return draw(t) % n; }
static int one_in(Thread *t, uint32_t n) { return below(t, n) == 0; }

static uint32_t any_number(Thread *t) {
  static const uint32_t some[] = {0, 1, 2, 3, 7, 8, 100, 1u << 20, 1u << 31, UINT32_MAX};
  return one_in(t, 4) ? draw(t) : some[below(t, sizeof some / sizeof *some)];
}
static uint64_t any_count(Thread *t, uint64_t right) {
  static const uint64_t huge[] = {1ull << 33, 1ull << 40, 1ull << 62, UINT64_MAX};
  if (!one_in(t, 8))
    return right;
  return one_in(t, 2) ? below(t, 16) : huge[below(t, 4)];
}
static float any_float(Thread *t) {
  const float some[] = {0, 0.1f, 0.5f, 1, -1, 1e-30f, 1e30f, INFINITY, -INFINITY, NAN};
  return one_in(t, 6) ? some[below(t, 10)] : (float)below(t, 1000) * 0.001f - 0.25f;
}

static void *in_pool(Thread *t, enum kind kind) {
  if (kind == ENGINE)
    return engine;
  if (kind == GRAPH && one_in(t, 2)) {
    Thread *owner = &threads[alone ? 0 : below(t, (uint32_t)options.threads)];
    return __atomic_load_n(&owner->own[below(t, GRAPHS)].graph, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&pool[kind][below(t, POOL)], __ATOMIC_RELAXED);
}
static void *any(Thread *t, enum kind kind) {
  uint32_t r = below(t, 100);
  if (r < 82)
    return in_pool(t, kind);
  if (r < 88)
    return __atomic_load_n(&old[kind][below(t, OLD)], __ATOMIC_RELAXED);
  if (r < 91)
    return foreign[kind][below(t, 2)];
  if (r < 94) {
    enum kind other = (enum kind)((kind + 1 + below(t, KINDS - 1)) % KINDS);
    return in_pool(t, other);
  }
  if (r < 96)
    return NULL;
  if (r < 98) /* a number whose type or mark is spoilt */
    return (void *)((uintptr_t)in_pool(t, kind) ^ (uintptr_t)1 << (50 + below(t, 14)));
  return r == 98 ? (void *)t : (void *)((uintptr_t)draw(t) << 32 | draw(t));
}

static uint32_t any_id(Thread *t) {
  uint32_t r = below(t, 40);
  return r < 36 ? __atomic_load_n(&parameters[r % PARAMETERS], __ATOMIC_RELAXED) : any_number(t);
}
/* Notes which parameters a trainer of the pool has: those among the first n of t->ids. */
static void has(const Thread *t, uint32_t trainer, size_t n) {
  for (size_t k = 0; k < n; k++)
    for (int p = 0; p < PARAMETERS; p++)
      if (parameters[p] == t->ids[k])
        parameters_of[trainer] |= 1u << p;
}
/* Fills t->ids, and returns how many of them there are said to be. */
static size_t any_ids(Thread *t) {
  const uint32_t n = below(t, 6);
  for (uint32_t k = 0; k < IDS; k++)
    t->ids[k] = any_id(t);
  return (size_t)any_count(t, n);
}
static uint32_t any_collection(Thread *t) { return one_in(t, 6) ? any_number(t) : 1 + below(t, 3); }

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { SCALAR, TWO, THREE, MATRIX, BATCH, DIMS };
static const vpps_dim dims[DIMS] = {
    {1, 1, {1}}, {1, 1, {2}}, {1, 1, {3}}, {2, 1, {3, 2}}, {1, 2, {2}}};
static const uint32_t sizes[DIMS] = {1, 2, 3, 6, 4};
enum {
  P_TWO,
  P_THREE,
  P_MATRIX,
  P_TABLE,
  FIXED_PARAMETERS
}; /* of dims TWO, THREE, MATRIX, rows of TWO */

static Shadow *any_own(Thread *t) { return &t->own[below(t, GRAPHS)]; }

/* A node that there is, of a dim; -1: none. */
static int some_node(Thread *t, const Shadow *s, int nodes, uint32_t dim) {
  const int from = nodes > 0 ? (int)below(t, (uint32_t)nodes) : 0;
  for (int k = 0; k < nodes; k++) {
    const int n = (from + k) % nodes;
    if ((n < s->nodes ? s->dim[n] : t->coming[n - s->nodes]) == dim)
      return n;
  }
  return -1;
}

/* Appends a node to the words at w and returns where they end. */
static uint32_t *some_words(Thread *t, const Shadow *s, int nodes, uint32_t *w, uint8_t *its_dim) {
  static const uint8_t unary[] = {
      VPPS_OP_TANH, VPPS_OP_LOGISTIC_SIGMOID, VPPS_OP_RECTIFY, VPPS_OP_SQUARE,
      VPPS_OP_ABS,  VPPS_OP_NEGATE,           VPPS_OP_EXP,     VPPS_OP_LOG,
      VPPS_OP_SQRT};
  uint32_t dim = below(t, DIMS);
  int x = some_node(t, s, nodes, dim), y = some_node(t, s, nodes, dim);
  *its_dim = (uint8_t)dim;
  switch (x < 0 ? below(t, 3) : below(t, 10)) {
  case 0:
    *w++ = VPPS_OP_INPUT_NODE | dim << 8, *w++ = below(t, INPUTS - 8);
    return w;
  case 1:
    dim = TWO + below(t, 3);
    *its_dim = (uint8_t)dim;
    *w++ = VPPS_OP_PARAMETER_NODE | dim << 8, *w++ = parameters[dim - TWO + P_TWO];
    return w;
  case 2:
    dim = one_in(t, 2) ? TWO : BATCH;
    *its_dim = (uint8_t)dim;
    *w++ = VPPS_OP_LOOKUP_NODE | dim << 8, *w++ = parameters[P_TABLE], *w++ = INPUTS - 2;
    return w;
  case 3:
  case 4:
    *w++ = unary[below(t, sizeof unary)] | dim << 8, *w++ = (uint32_t)x;
    return w;
  case 5:
    *w++ = (one_in(t, 2) ? VPPS_OP_CWISE_SUM : VPPS_OP_CWISE_MULTIPLY) | dim << 8;
    *w++ = (uint32_t)x, *w++ = (uint32_t)y;
    return w;
  case 6: {
    const float p = one_in(t, 10) ? any_float(t) : 0.5f;
    *w++ = VPPS_OP_DROPOUT | dim << 8, *w++ = (uint32_t)x;
    memcpy(w++, &p, 4);
    return w;
  }
  case 7:
    x = some_node(t, s, nodes, MATRIX), y = some_node(t, s, nodes, TWO);
    if (x >= 0 && y >= 0) {
      *its_dim = THREE;
      *w++ = VPPS_OP_MATRIX_MULTIPLY | THREE << 8, *w++ = (uint32_t)x, *w++ = (uint32_t)y;
      return w;
    }
    /* fall through */
  default:
    if (dim == BATCH)
      x = some_node(t, s, nodes, SCALAR);
    *its_dim = SCALAR;
    *w++ = VPPS_OP_SUM_ELEMENTS | SCALAR << 8, *w++ = (uint32_t)x;
    return w;
  }
}

/* Spoils one of the words, or how many there are said to be. */
static void spoil(Thread *t, vpps_words *w) {
  switch (below(t, 8)) {
  case 0:
    w->version = any_number(t);
    break;
  case 1:
    w->nodes = NULL;
    break;
  case 2:
    w->node_words =
        w->node_words > 0 && one_in(t, 2) ? below(t, (uint32_t)w->node_words) : (size_t)1 << 60;
    break;
  case 3:
    w->node_count = any_number(t);
    break;
  case 4:
    w->dims = NULL;
    break;
  case 5:
    w->input_words = below(t, INPUTS);
    break;
  default:
    if (w->node_words > 0)
      t->words[below(t, (uint32_t)w->node_words)] = any_number(t);
  }
}

/* Words that bring the graph up to four nodes and a scalar; how many is returned. */
static int some_graph(Thread *t, const Shadow *s, vpps_words *words) {
  uint32_t *w = t->words;
  int count = 0, nodes = s->nodes;
  for (int more = nodes + 5 > NODES ? 0 : (int)below(t, 5); count < more; count++, nodes++)
    w = some_words(t, s, nodes, w, &t->coming[count]);
  if (count > 0 && t->coming[count - 1] != BATCH) {
    *w++ = VPPS_OP_SUM_ELEMENTS | SCALAR << 8, *w++ = (uint32_t)nodes - 1;
    t->coming[count++] = SCALAR;
  }
  memset(words, 0, sizeof *words);
  words->version = VPPS_WIRE_VERSION;
  words->nodes = t->words;
  words->node_words = (size_t)(w - t->words);
  words->node_count = (uint32_t)count;
  words->dims = dims;
  words->dim_count = s->dims_sent ? 0 : DIMS;
  words->inputs = (const uint32_t *)s->inputs;
  words->input_words = INPUTS;
  return count;
}

typedef vpps_status (*graph_call)(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node);

/* A call that brings a graph words. */
static vpps_status with_words(Thread *t, int evaluates, graph_call call) {
  Shadow *s = any_own(t);
  vpps_words room, *w = &room;
  const int count = some_graph(t, s, w), nodes = s->nodes + count;
  const uint32_t node = one_in(t, 10) ? any_number(t) : nodes > 0 ? (uint32_t)nodes - 1 : 0;
  const int spoilt = one_in(t, 6);
  vpps_graph *g = one_in(t, 6) ? any(t, GRAPH) : s->graph;
  if (spoilt)
    spoil(t, w);
  if (count == 0 && one_in(t, 2))
    w = NULL;
  if (g != s->graph && alone)
    w = NULL; /* nobody notices that another graph has grown */
  const vpps_status status = call(t, g, w, node);
  if (g != s->graph)
    return status;
  if (status == VPPS_OK && w != NULL) {
    memcpy(s->dim + s->nodes, t->coming, (size_t)count);
    s->nodes = nodes;
    s->dims_sent = 1;
    s->suspect = spoilt;
  } else if (status == VPPS_ERR_GRAPH || status == VPPS_ERR_ARGUMENT)
    s->suspect |= !alone && one_in(t, 8); /* another thread may have shortened it */
  if (status == VPPS_OK)
    s->evaluated = evaluates ? (int)node + 1 > s->evaluated ? (int)node + 1 : s->evaluated : 0;
  return status;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void destroy(Thread *t, enum kind kind, void *x) {
  switch (kind) {
  case ENGINE:
    vpps_engine_close(x);
    break;
  case GRAPH:
    vpps_graph_destroy(x);
    break;
  case TRAINER:
    vpps_trainer_destroy(x);
    break;
  case HANDLE:
    vpps_handle_destroy(x);
    break;
  case COMM:
    vpps_comm_destroy(x);
    break;
  default:
    vpps_checkpoint_close(x);
  }
  if (x != NULL && !alone && strstr(vpps_last_error(), "another thread") != NULL &&
      t->lefts[kind] < 64)
    t->left[kind][t->lefts[kind]++] = x;
}
static void destroyed(Thread *t, enum kind kind, void *x) {
  __atomic_store_n(&old[kind][below(t, OLD)], x, __ATOMIC_RELAXED);
}

/* A new object takes the place of another, which is destroyed. */
static void put(Thread *t, enum kind kind, uint32_t at, void *x) {
  void *before = __atomic_exchange_n(&pool[kind][at], x, __ATOMIC_ACQ_REL);
  destroy(t, kind, before);
  destroyed(t, kind, before);
}

/* Destroys an object of the pool, or what is none of it or none any more. */
static int call_destroy(Thread *t, enum kind kind) {
  void *x;
  if (one_in(t, 4))
    x = __atomic_exchange_n(&pool[kind][below(t, POOL)], NULL, __ATOMIC_ACQ_REL);
  else if (one_in(t, 2))
    x = __atomic_load_n(&old[kind][below(t, OLD)], __ATOMIC_RELAXED);
  else
    do
      x = any(t, kind);
    while (x == engine && kind == ENGINE);
  destroy(t, kind, x);
  destroyed(t, kind, x);
  for (int k = 0; k < GRAPHS; k++)
    if (kind == GRAPH && t->own[k].graph == x)
      __atomic_store_n(&t->own[k].graph, NULL, __ATOMIC_RELAXED);
  return VPPS_OK;
}

static int call_version(Thread *t) {
  CHECK(t != NULL && strcmp(vpps_version(), "") != 0);
  return VPPS_OK;
}
static int call_build_info(Thread *t) {
  CHECK(t != NULL && strncmp(vpps_build_info(), "libvpps", 7) == 0);
  return VPPS_OK;
}
static int call_last_error(Thread *t) {
  CHECK(t != NULL && strchr(vpps_last_error(), '\n') == NULL);
  return VPPS_OK;
}
static int call_frontend(Thread *t) {
  static const char *const kinds[] = {"random calls", VPPS_FRONTEND_BUNDLED, "", NULL};
  return vpps_frontend(kinds[below(t, 4)]);
}

static int call_engine_open(Thread *t) {
  static const char *const devices[] = {"abacus", "cuda:", "cuda:99999", "cpu "};
  vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *e = NULL;
  o.device = one_in(t, 2) ? options.device : devices[below(t, 4)];
  o.threads = any_number(t), o.processors = any_number(t), o.seed = any_number(t);
  if (one_in(t, 4))
    o.struct_size = any_number(t);
  if (o.struct_size < sizeof o && o.struct_size >= 4)
    o.device = "abacus", o.struct_size |= 1; /* without a device: any */
  const int status = vpps_engine_open(one_in(t, 20) ? NULL : &o, one_in(t, 20) ? NULL : &e);
  if (status == VPPS_OK && e != engine)
    fail("opening %s gave another engine", options.device);
  vpps_engine_close(e); /* which others have open still */
  return status;
}
static int call_engine_close(Thread *t) { return call_destroy(t, ENGINE); }
static int call_engine_describe(Thread *t) {
  return vpps_engine_describe(any(t, ENGINE), one_in(t, 9) ? NULL : t->text, below(t, ROOM));
}
static int call_engine_seed(Thread *t) { return vpps_engine_seed(any(t, ENGINE), draw(t)); }
static int call_engine_statistics(Thread *t) {
  union {
    vpps_statistics s;
    char room[4096];
  } u = {.s = VPPS_STATISTICS_INIT};
  if (one_in(t, 4))
    u.s.struct_size = any_number(t);
  return vpps_engine_statistics(any(t, ENGINE), one_in(t, 9) ? NULL : &u.s);
}
static int call_engine_times(Thread *t) {
  union {
    vpps_times s;
    char room[4096];
  } u = {.s = VPPS_TIMES_INIT};
  if (one_in(t, 4))
    u.s.struct_size = any_number(t);
  return vpps_engine_times(any(t, ENGINE), one_in(t, 9) ? NULL : &u.s);
}
static int call_clock_table(Thread *t) {
  size_t n;
  return vpps_clock_table(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}
static int call_memory_report(Thread *t) {
  size_t n;
  return vpps_memory_report(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                            one_in(t, 2) ? NULL : &n);
}
static int call_system_report(Thread *t) {
  size_t n;
  return vpps_system_report(one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                            one_in(t, 2) ? NULL : &n);
}
/* Gets lines of all threads, while others set it anew. */
static void log_line(void *data, vpps_log_level level, const char *line) {
  if (data != &options || level < VPPS_LOG_INFO || !strstr(line, ": ") || strchr(line, '\n'))
    fail("the log has the line %s", line);
  if (vpps_engine_seed(engine, 1) != VPPS_ERR_STATE)
    fail("a call from the function of %s is let in", "vpps_set_log");
}
static int call_set_log(Thread *t) {
  return vpps_set_log((vpps_log_level)(below(t, 5) - 1), log_line, &options);
}
static int call_flush_timeline(Thread *t) { return vpps_flush_timeline(any(t, ENGINE)); }
static int call_script_dump(Thread *t) {
  size_t n;
  return vpps_script_dump(any(t, ENGINE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}

static int call_collection_create(Thread *t) {
  uint32_t c;
  return vpps_collection_create(any(t, ENGINE), one_in(t, 50) ? 0.01f : NAN,
                                one_in(t, 9) ? NULL : &c);
}
static int call_collection_set_lambda(Thread *t) {
  return vpps_collection_set_lambda(any(t, ENGINE), any_collection(t), any_float(t) * 0.01f);
}
static int call_collection_factor(Thread *t) {
  float f;
  return vpps_collection_factor(any(t, ENGINE), any_collection(t), one_in(t, 9) ? NULL : &f);
}

static int call_parameter_create(Thread *t) {
  vpps_dim d = {1, 1, {1 + below(t, 4)}};
  uint32_t id = 0;
  const uint32_t at = FIXED_PARAMETERS + below(t, PARAMETERS - FIXED_PARAMETERS);
  if (one_in(t, 2)) /* no dim, or a dim of none */
    ((uint32_t *)&d)[below(t, 9)] = one_in(t, 2) ? 0 : UINT32_MAX - below(t, 3);
  if (d.nd > 1 || d.bd > 1 || __atomic_load_n(&made_parameters, __ATOMIC_RELAXED) > MOST_PARAMETERS)
    d.d[0] = 0;
  const int status = vpps_parameter_create(
      any(t, ENGINE), any_collection(t), one_in(t, 4) ? NULL : "/x", one_in(t, 9) ? NULL : &d,
      below(t, 3), one_in(t, 2) ? NULL : t->floats, one_in(t, 9) ? NULL : &id);
  if (status == VPPS_OK) {
    __atomic_add_fetch(&made_parameters, 1, __ATOMIC_RELAXED);
    vpps_parameter_destroy(engine, __atomic_exchange_n(&parameters[at], id, __ATOMIC_RELAXED));
    size_of[at] = d.d[0];
  }
  return status;
}
static int call_parameter_destroy(Thread *t) {
  const uint32_t at = FIXED_PARAMETERS + below(t, PARAMETERS - FIXED_PARAMETERS);
  if (one_in(t, 3))
    return vpps_parameter_destroy(any(t, ENGINE), UINT32_MAX - below(t, 9));
  const int status = vpps_parameter_destroy(any(t, ENGINE), parameters[at]);
  if (status == VPPS_OK)
    size_of[at] = 0;
  return status;
}
static vpps_part any_part(Thread *t) {
  return (vpps_part)(one_in(t, 9) ? any_number(t) : below(t, 2));
}
static int call_parameter_read(Thread *t) {
  return vpps_parameter_read(any(t, ENGINE), any_id(t), any_part(t), any_count(t, below(t, 3)),
                             any_count(t, below(t, 4)), one_in(t, 9) ? NULL : t->floats);
}
static int call_parameter_write(Thread *t) {
  for (int k = 0; k < 16; k++)
    t->floats[k] = (float)below(t, 100) * 0.01f;
  t->floats[below(t, 16)] = any_float(t);
  return vpps_parameter_write(any(t, ENGINE), any_id(t), any_part(t), any_count(t, below(t, 3)),
                              any_count(t, below(t, 4)), one_in(t, 9) ? NULL : t->floats);
}
static int call_parameter_scale(Thread *t) {
  return vpps_parameter_scale(any(t, ENGINE), any_id(t), any_part(t),
                              one_in(t, 2) ? 0 : any_float(t));
}
static int call_parameter_expose(Thread *t) {
  float *values; /* those of new parameters only: calls are slower while something is exposed */
  return vpps_parameter_expose(any(t, ENGINE), parameters[15], any_part(t),
                               one_in(t, 9) ? NULL : &values);
}
static int call_parameter_set_updated(Thread *t) {
  return vpps_parameter_set_updated(any(t, ENGINE), any_id(t), !one_in(t, 4));
}
static int call_parameter_touched(Thread *t) {
  uint64_t n;
  int all;
  return vpps_parameter_touched(any(t, ENGINE), any_id(t), one_in(t, 4) ? NULL : t->words,
                                any_count(t, 8), one_in(t, 9) ? NULL : &n, &all);
}
static int call_parameter_memory(Thread *t) {
  float *values;
  return vpps_parameter_memory(any(t, ENGINE), any_id(t), one_in(t, 9) ? NULL : &values);
}
static int call_parameter_gradient_memory(Thread *t) {
  float *gradient; /* mostly given back: there is no fb meanwhile */
  return vpps_parameter_gradient_memory(any(t, ENGINE), parameters[14], one_in(t, 6),
                                        one_in(t, 9) ? NULL : &gradient);
}
static int call_parameter_set_touched(Thread *t) {
  return vpps_parameter_set_touched(any(t, ENGINE), one_in(t, 2) ? parameters[14] : any_id(t),
                                    one_in(t, 9) ? NULL : t->ids, any_count(t, IDS), one_in(t, 4));
}

static int call_graph_create(Thread *t) {
  vpps_graph *g = NULL;
  const int status = vpps_graph_create(any(t, ENGINE), one_in(t, 9) ? NULL : &g);
  if (status == VPPS_OK)
    put(t, GRAPH, below(t, POOL), g); /* one that nobody records */
  return status;
}
static int call_graph_destroy(Thread *t) {
  if (!one_in(t, 8))
    return call_destroy(t, GRAPH);
  Shadow *s = any_own(t);
  destroy(t, GRAPH, s->graph);
  destroyed(t, GRAPH, s->graph);
  __atomic_store_n(&s->graph, NULL, __ATOMIC_RELAXED);
  return VPPS_OK;
}

static vpps_status forward(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_forward(g, w, node, (int)below(t, 2));
}
static vpps_status value(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_value(g, w, node, one_in(t, 9) ? NULL : t->floats, (size_t)any_count(t, 1));
}
static vpps_status backward(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  return vpps_backward(g, w, node, (int)below(t, 2));
}
static vpps_status node_gradients(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  (void)t;
  return vpps_node_gradients(g, w, node);
}
static vpps_status fb(Thread *t, vpps_graph *g, const vpps_words *w, uint32_t node) {
  float stale;
  return vpps_fb(any(t, HANDLE), g, w, node, one_in(t, 4) ? NULL : &stale);
}
static int call_forward(Thread *t) { return with_words(t, 1, forward); }
static int call_value(Thread *t) { return with_words(t, 1, value); }
static int call_backward(Thread *t) { return with_words(t, 1, backward); }
static int call_node_gradients(Thread *t) { return with_words(t, 1, node_gradients); }
static int call_fb(Thread *t) { return with_words(t, 0, fb); }
static int call_gradient(Thread *t) {
  Shadow *s = any_own(t);
  const uint32_t node =
      one_in(t, 9) || s->nodes == 0 ? any_number(t) : below(t, (uint32_t)s->nodes);
  return vpps_gradient(one_in(t, 4) ? any(t, GRAPH) : s->graph, node,
                       one_in(t, 9) ? NULL : t->floats,
                       (size_t)any_count(t, node < (uint32_t)s->nodes ? sizes[s->dim[node]] : 1));
}
static int call_graph_truncate(Thread *t) {
  Shadow *s = any_own(t);
  const uint32_t node = one_in(t, 4) ? any_number(t) : below(t, NODES);
  if (one_in(t, 4))
    return vpps_graph_truncate(!alone || s->graph == NULL ? any(t, GRAPH) : s->graph, UINT32_MAX);
  const int status = vpps_graph_truncate(s->graph, node);
  if (status == VPPS_OK && (int64_t)node < s->nodes) {
    s->nodes = (int)node;
    s->evaluated = s->evaluated < s->nodes ? s->evaluated : s->nodes;
  }
  return status;
}
static int call_graph_invalidate(Thread *t) {
  Shadow *s = any_own(t);
  vpps_graph *g = one_in(t, 4) ? any(t, GRAPH) : s->graph;
  const int status = vpps_graph_invalidate(g, below(t, NODES));
  if (g == s->graph && status == VPPS_OK)
    s->evaluated = 0;
  return status;
}

static vpps_trainer_options any_options(Thread *t, uint32_t rule) {
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  float *const floats[] = {&o.learning_rate, &o.clip_threshold, &o.momentum, &o.rho,
                           &o.epsilon,       &o.beta_1,         &o.beta_2};
  o.rule = rule;
  o.learning_rate = 0.01f;
  o.collection = any_collection(t);
  o.clipping = !one_in(t, 3), o.sparse = !one_in(t, 3);
  if (one_in(t, 2))
    *floats[below(t, 7)] = any_float(t);
  if (one_in(t, 8))
    o.struct_size = any_number(t) & 0xFFF;
  if (o.struct_size > sizeof o)
    o.struct_size = sizeof o;
  return o;
}
static int call_trainer_create(Thread *t) {
  const uint32_t rule = one_in(t, 16) ? any_number(t) : below(t, 7), at = below(t, POOL);
  const vpps_trainer_options o = any_options(t, rule);
  vpps_trainer *trainer = NULL;
  const size_t n = any_ids(t);
  const int status =
      vpps_trainer_create(any(t, ENGINE), one_in(t, 20) ? NULL : &o, one_in(t, 20) ? NULL : t->ids,
                          n, one_in(t, 20) ? NULL : &trainer);
  if (status == VPPS_OK) {
    put(t, TRAINER, at, trainer);
    rule_of[at] = o.struct_size >= 8 ? rule : 0;
    parameters_of[at] = 0;
    has(t, at, n);
  }
  return status;
}
static int call_trainer_set(Thread *t) {
  const uint32_t at = below(t, POOL);
  const vpps_trainer_options o = any_options(t, rule_of[at]);
  return vpps_trainer_set(one_in(t, 2) ? any(t, TRAINER) : pool[TRAINER][at],
                          one_in(t, 20) ? NULL : &o);
}
static int call_trainer_add(Thread *t) {
  const size_t n = any_ids(t);
  const uint32_t at = below(t, POOL);
  const int status = vpps_trainer_add(one_in(t, 2) ? any(t, TRAINER) : pool[TRAINER][at],
                                      one_in(t, 9) ? NULL : t->ids, n);
  for (uint32_t k = 0; status == VPPS_OK && k < POOL; k++)
    has(t, k, n); /* of one of them */
  return status;
}
static int call_trainer_restart(Thread *t) { return vpps_trainer_restart(any(t, TRAINER)); }
static const uint32_t vectors_of[] = {0, 1, 1, 2, 1, 2, 3, 1}; /* that a rule remembers */
static int call_trainer_read_state(Thread *t) {
  const uint32_t k = below(t, POOL), p = below(t, PARAMETERS);
  return vpps_trainer_read_state(one_in(t, 4) ? any(t, TRAINER) : pool[TRAINER][k], parameters[p],
                                 any_count(t, vectors_of[rule_of[k] & 7] * size_of[p]),
                                 one_in(t, 9) ? NULL : t->floats);
}
static int call_trainer_write_state(Thread *t) {
  const uint32_t k = below(t, POOL), p = below(t, PARAMETERS);
  for (int i = 0; i < 32; i++)
    t->floats[i] = (float)below(t, 100) * 0.01f;
  return vpps_trainer_write_state(one_in(t, 4) ? any(t, TRAINER) : pool[TRAINER][k], parameters[p],
                                  any_count(t, vectors_of[rule_of[k] & 7] * size_of[p]),
                                  one_in(t, 9) ? NULL : t->floats);
}
static int call_trainer_updates(Thread *t) {
  uint64_t n;
  return vpps_trainer_updates(any(t, TRAINER), one_in(t, 9) ? NULL : &n);
}
static int call_trainer_set_updates(Thread *t) {
  return vpps_trainer_set_updates(any(t, TRAINER), any_count(t, below(t, 100)));
}
static int call_update(Thread *t) {
  int clipped;
  return vpps_update(any(t, TRAINER), one_in(t, 4) ? NULL : &clipped);
}
static int call_trainer_destroy(Thread *t) { return call_destroy(t, TRAINER); }

static int call_handle_create(Thread *t) {
  vpps_handle *h = NULL;
  const size_t n = any_ids(t);
  const int status =
      vpps_handle_create(any(t, ENGINE), one_in(t, 20) ? NULL : t->ids, n,
                         one_in(t, 4) ? NULL : any(t, TRAINER), one_in(t, 20) ? NULL : &h);
  if (status == VPPS_OK)
    put(t, HANDLE, below(t, POOL), h);
  return status;
}
static int call_handle_destroy(Thread *t) { return call_destroy(t, HANDLE); }
static int call_handle_trainer(Thread *t) {
  vpps_trainer *trainer = vpps_handle_trainer(any(t, HANDLE));
  if (trainer == NULL)
    return VPPS_ERR_ARGUMENT;
  if (one_in(t, 8)) /* refused, if it is the handle's */
    destroyed(t, TRAINER, trainer);
  return VPPS_OK;
}
static int call_handle_keep(Thread *t) {
  const uint32_t n = below(t, 3);
  for (uint32_t k = 0; k < n; k++)
    t->words[k] = below(t, NODES);
  return vpps_handle_keep(any(t, HANDLE), one_in(t, 2) ? any_own(t)->graph : any(t, GRAPH),
                          one_in(t, 9) ? NULL : t->words, one_in(t, 9) ? (size_t)1 << 50 : n);
}
static int call_sync_latest_loss(Thread *t) {
  float loss;
  return vpps_sync_latest_loss(any(t, HANDLE), one_in(t, 9) ? NULL : &loss);
}
static int call_handle_clips(Thread *t) {
  uint64_t n;
  return vpps_handle_clips(any(t, HANDLE), one_in(t, 9) ? NULL : &n);
}
/* Groups of one rank: those of more would wait for calls that come by chance. */
static int call_comm_create_local(Thread *t) {
  vpps_comm *comm = NULL;
  const uint32_t size = one_in(t, 4) ? one_in(t, 2) ? 0 : UINT32_MAX : 1;
  const int status = vpps_comm_create_local(size, one_in(t, 4) ? (double)any_float(t) : 0,
                                            one_in(t, 9) ? NULL : &comm);
  if (status == VPPS_OK)
    put(t, COMM, below(t, POOL), comm);
  return status;
}
static int call_comm_create_mpi(Thread *t) { /* would start MPI, if its arguments were right */
  vpps_comm *comm;
  return vpps_comm_create_mpi(-1, one_in(t, 2) ? NULL : &comm);
}
static int call_comm_nccl_id(Thread *t) { /* would leave a thread, if its argument were right */
  (void)t;
  return vpps_comm_nccl_id(NULL);
}
static int call_comm_create_nccl(Thread *t) { /* would wait for others, likewise */
  const char id[VPPS_NCCL_ID_BYTES] = {0};
  vpps_comm *comm;
  return vpps_comm_create_nccl(one_in(t, 4) ? NULL : "cuda", below(t, 3), below(t, 3),
                               one_in(t, 4) ? NULL : id, -1, one_in(t, 2) ? NULL : &comm);
}
/* No launcher has started this program: it is the only rank. */
static int call_comm_create_launched(Thread *t) {
  vpps_comm *comm = NULL;
  const int status = vpps_comm_create_launched(
      any(t, ENGINE), one_in(t, 4) ? (double)any_float(t) : 0, one_in(t, 9) ? NULL : &comm);
  if (status == VPPS_OK)
    put(t, COMM, below(t, POOL), comm);
  return status;
}
static int call_comm_broadcast(Thread *t) {
  char bytes[9] = "as it is";
  const int status =
      vpps_comm_broadcast(any(t, COMM), one_in(t, 9) ? NULL : bytes,
                          one_in(t, 9) ? SIZE_MAX : below(t, sizeof bytes), one_in(t, 9));
  CHECK(!strcmp(bytes, "as it is"));
  return status;
}
static int call_comm_rank(Thread *t) {
  uint32_t rank = 0, size = 1;
  const int status =
      vpps_comm_rank(any(t, COMM), one_in(t, 9) ? NULL : &rank, one_in(t, 9) ? NULL : &size);
  CHECK(rank == 0 && size == 1);
  return status;
}
static int call_comm_barrier(Thread *t) { return vpps_comm_barrier(any(t, COMM)); }
static int call_comm_abort(Thread *t) {
  return vpps_comm_abort(any(t, COMM), one_in(t, 9) ? NULL : "by chance");
}
static int call_comm_destroy(Thread *t) { return call_destroy(t, COMM); }
static int call_comm_attach(Thread *t) {
  return vpps_comm_attach(any(t, COMM), any(t, ENGINE), (vpps_reduction)below(t, 5));
}
static int call_comm_detach(Thread *t) { return vpps_comm_detach(any(t, ENGINE)); }
static int call_comm_count(Thread *t) { return vpps_comm_count(any(t, ENGINE), any_float(t)); }
static int call_comm_join(Thread *t) { return vpps_comm_join(any(t, ENGINE)); }
static int call_global_loss(Thread *t) {
  float loss;
  return vpps_global_loss(any(t, HANDLE), one_in(t, 9) ? NULL : &loss);
}
static int call_plan_report(Thread *t) {
  size_t n;
  return vpps_plan_report(any(t, HANDLE), one_in(t, 4) ? NULL : t->text, below(t, ROOM),
                          one_in(t, 2) ? NULL : &n);
}

/* Contents of a checkpoint: parameters, trainers and handles as they are, most of the time. */
typedef struct Contents {
  vpps_checkpoint_contents c;
  vpps_trainer *trainers[POOL];
  vpps_handle *handles[POOL];
  vpps_blob blobs[2];
} Contents;
static const vpps_checkpoint_contents *any_contents(Thread *t, Contents *room) {
  static const char bytes[] = "blob";
  const vpps_checkpoint_contents init = VPPS_CHECKPOINT_CONTENTS_INIT;
  room->c = init;
  size_t n = 0;
  for (int p = 0; p < PARAMETERS; p++)
    if (size_of[p] != 0)
      t->ids[n++] = __atomic_load_n(&parameters[p], __ATOMIC_RELAXED);
  room->c.ids = t->ids;
  room->c.id_count = (size_t)any_count(t, n);
  for (int k = 0; k < 2; k++) {
    room->trainers[k] = one_in(t, 20) ? any(t, TRAINER) : pool[TRAINER][k];
    room->handles[k] = one_in(t, 20) ? any(t, HANDLE) : pool[HANDLE][k];
    room->blobs[k].name = one_in(t, 20) ? NULL : k ? "first" : "second";
    room->blobs[k].data = one_in(t, 20) ? NULL : bytes;
    room->blobs[k].size = below(t, sizeof bytes);
  }
  room->c.trainers = room->trainers;
  room->c.trainer_count = room->trainers[0] == NULL ? 0 : below(t, 2);
  room->c.handles = room->handles;
  room->c.handle_count = room->handles[0] == NULL || !one_in(t, 4) ? 0 : below(t, 2);
  if (one_in(t, 2)) { /* what there always is */
    n = FIXED_PARAMETERS;
    room->c.id_count = n;
    room->c.trainer_count = room->c.handle_count = 0;
  }
  room->c.blobs = one_in(t, 20) ? NULL : room->blobs;
  room->c.blob_count = below(t, 3);
  if (one_in(t, 9))
    room->c.struct_size = below(t, sizeof room->c);
  return one_in(t, 20) ? NULL : &room->c;
}
/* A file that there may be, or none that can be. */
static const char *any_path(Thread *t) {
  if (one_in(t, 4))
    return one_in(t, 4) ? NULL : one_in(t, 2) ? folder : "/nowhere/checkpoint";
  snprintf(t->text, ROOM, "%s/%u", folder, (unsigned)below(t, 3));
  return t->text;
}
static int call_checkpoint_save(Thread *t) {
  Contents room;
  const vpps_checkpoint_contents *c = any_contents(t, &room);
  const char *path = one_in(t, alone ? 1 : 8)
                         ? any_path(t)
                         : "/nowhere/checkpoint"; /* a file takes long to be stored */
  return vpps_checkpoint_save(any(t, ENGINE), path, c);
}
static int call_checkpoint_open(Thread *t) {
  vpps_checkpoint *checkpoint = NULL;
  const int status = vpps_checkpoint_open(any_path(t), one_in(t, 9) ? NULL : &checkpoint);
  if (status == VPPS_OK)
    put(t, CHECKPOINT, below(t, POOL), checkpoint);
  return status;
}
static int call_checkpoint_blob(Thread *t) {
  static const char *const blobs[] = {"first", "second", "third", NULL};
  uint64_t n;
  return vpps_checkpoint_blob(any(t, CHECKPOINT), blobs[below(t, 4)], one_in(t, 4) ? NULL : t->text,
                              one_in(t, 4) ? 0 : ROOM, one_in(t, 9) ? NULL : &n);
}
static int call_checkpoint_load(Thread *t) {
  Contents room;
  const vpps_checkpoint_contents *c = any_contents(t, &room);
  return vpps_checkpoint_load(any(t, CHECKPOINT), any(t, ENGINE), c);
}
static int call_checkpoint_close(Thread *t) { return call_destroy(t, CHECKPOINT); }

#define CALL(name, weight) call_##name,
static int (*const calls[])(Thread *) = {FUNCTIONS(CALL)};

/* ---- what is known --------------------------------------------------------------------------- */

/* The sum of {1, 2} times an input, and its gradients. */
static void known_sums(Thread *t) {
  const uint32_t nodes[] = {VPPS_OP_PARAMETER_NODE | TWO << 8,
                            quiet,
                            VPPS_OP_INPUT_NODE | TWO << 8,
                            0,
                            VPPS_OP_CWISE_MULTIPLY | TWO << 8,
                            0,
                            1,
                            VPPS_OP_SUM_ELEMENTS | SCALAR << 8,
                            2};
  const float x[2] = {(float)below(t, 1000), (float)below(t, 1000)};
  const vpps_words words = {VPPS_WIRE_VERSION, nodes, 9, 4, dims, DIMS, (const uint32_t *)x, 2};
  vpps_graph *g;
  float loss = -1, w[2];
  vpps_status s;
  CHECK(vpps_graph_create(engine, &g) == VPPS_OK);
  while ((s = vpps_value(g, &words, 3, &loss, 1)) == VPPS_ERR_NUMERIC) /* of a batch in flight */
    ;
  CHECK(s == VPPS_OK);
  if (loss != x[0] + 2 * x[1])
    fail("%g + 2 * %g gave %g", (double)x[0], (double)x[1], (double)loss);
  while ((s = vpps_backward(g, NULL, 3, 1)) == VPPS_ERR_NUMERIC)
    ;
  CHECK(s == VPPS_OK);
  CHECK(vpps_gradient(g, 1, w, 2) == VPPS_OK && w[0] == 1 && w[1] == 2);
  CHECK(vpps_gradient(g, 0, w, 2) == VPPS_OK && w[0] == x[0] && w[1] == x[1]);
  vpps_graph_destroy(g);
}

/* ---- a failed call changes nothing ----------------------------------------------------------- */

/* All that can be read: of each thing what it is, a status and bytes. */
enum { MOST_THINGS = 2048 };
typedef struct Everything {
  struct {
    const char *what;
    int a, b;
    vpps_status status;
    size_t at, size;
  } things[MOST_THINGS];
  int count;
  size_t used;
  char bytes[1 << 17];
} Everything;
static Everything before, after;

static void note(Everything *e, const char *what, int a, int b, vpps_status status,
                 const void *bytes, size_t size) {
  CHECK(e->count < MOST_THINGS && e->used + size <= sizeof e->bytes);
  if (status != VPPS_OK)
    size = 0;
  e->things[e->count].what = what;
  e->things[e->count].a = a, e->things[e->count].b = b;
  e->things[e->count].status = status;
  e->things[e->count].at = e->used, e->things[e->count].size = size;
  memcpy(e->bytes + e->used, bytes, size);
  e->used += size;
  e->count++;
}

/* Waits for all batches; 1: one of them failed. */
static int settle(void) {
  float v[2];
  int failed = 0;
  vpps_status s;
  while ((s = vpps_parameter_read(engine, quiet, VPPS_VALUES, 0, 2, v)) == VPPS_ERR_NUMERIC)
    failed = 1;
  CHECK(s == VPPS_OK && v[0] == 1 && v[1] == 2);
  return failed;
}

static void read_parameters(Everything *e) {
  float v[64];
  for (int p = 0; p < PARAMETERS; p++) {
    struct {
      uint64_t count;
      uint32_t rows[8];
      int all;
    } touched;
    const uint32_t id = parameters[p], size = size_of[p];
    memset(&touched, 0, sizeof touched);
    note(e, "values", p, 0, vpps_parameter_read(engine, id, VPPS_VALUES, 0, size, v), v, 4 * size);
    note(e, "gradient", p, 0, vpps_parameter_read(engine, id, VPPS_GRADIENT, 0, size, v), v,
         4 * size);
    note(e, "rows with a gradient", p, 0,
         vpps_parameter_touched(engine, id, touched.rows, 8, &touched.count, &touched.all),
         &touched, sizeof touched);
  }
  for (uint32_t c = 1; c < 4; c++)
    note(e, "factor", (int)c, 0, vpps_collection_factor(engine, c, v), v, 4);
}

static void read_trainers(Everything *e) {
  float v[64];
  for (int k = 0; k < POOL; k++) {
    vpps_trainer *trainer = pool[TRAINER][k];
    uint64_t n = 0;
    if (trainer == NULL)
      continue;
    note(e, "updates", k, 0, vpps_trainer_updates(trainer, &n), &n, sizeof n);
    for (int p = 0; p < PARAMETERS; p++) {
      if (!(parameters_of[k] >> p & 1))
        continue;
      const uint32_t size = vectors_of[rule_of[k] & 7] * size_of[p];
      note(e, "state", k, p, vpps_trainer_read_state(trainer, parameters[p], size, v), v, 4 * size);
    }
  }
}

static void read_graphs(Everything *e, Thread *t) {
  float v[64];
  for (int k = 0; k < GRAPHS; k++) {
    Shadow *s = &t->own[k];
    if (vpps_gradient(s->graph, UINT32_MAX, v, 1) == VPPS_ERR_ARGUMENT) /* tells how many nodes */
      note(e, "nodes", k, 0, VPPS_OK, vpps_last_error(), strlen(vpps_last_error()));
    for (int n = 0; n < s->nodes; n += 3) {
      const uint32_t size = sizes[s->dim[n]];
      note(e, "gradient of node", k, n, vpps_gradient(s->graph, (uint32_t)n, v, size), v, 4 * size);
      if (n < s->evaluated)
        note(e, "value of node", k, n, vpps_value(s->graph, NULL, (uint32_t)n, v, size), v,
             4 * size);
    }
  }
}

static void read_everything(Everything *e, Thread *t) {
  e->count = 0, e->used = 0;
  read_parameters(e);
  read_trainers(e);
  read_graphs(e, t);
}

/* Compares before and after; trained: only what belongs to parameters and trainers. */
static void compare(const char *function, int trained) {
  for (int k = 0; k < before.count || k < after.count; k++) {
    const char *what = k < before.count ? before.things[k].what : after.things[k].what;
    if (trained && strcmp(what, "values") != 0 && strcmp(what, "factor") != 0 &&
        strcmp(what, "updates") != 0 && strcmp(what, "state") != 0)
      continue;
    if (k >= before.count || k >= after.count || before.things[k].what != after.things[k].what ||
        before.things[k].status != after.things[k].status ||
        before.things[k].size != after.things[k].size ||
        memcmp(before.bytes + before.things[k].at, after.bytes + after.things[k].at,
               after.things[k].size) != 0)
      fail("vpps_%s failed and changed: %s %d %d (status %d, then %d)", function, what,
           before.things[k].a, before.things[k].b, before.things[k].status, after.things[k].status);
  }
}

/* ---- running --------------------------------------------------------------------------------- */

static uint8_t deck[4096]; /* functions, each as often as it weighs */
static uint32_t deck_size;

/* Makes graphs that are missing, and tries again to destroy what calls of other threads used. */
static void maintain(Thread *t) {
  for (int k = 0; k < GRAPHS; k++) {
    Shadow *s = &t->own[k];
    if (s->graph != NULL && !s->suspect)
      continue;
    s->nodes = s->evaluated = s->suspect = 0;
    if (s->graph != NULL && vpps_graph_truncate(s->graph, 0) == VPPS_OK)
      continue;
    vpps_graph *g = NULL;
    destroy(t, GRAPH, s->graph);
    CHECK(vpps_graph_create(engine, &g) == VPPS_OK);
    __atomic_store_n(&s->graph, g, __ATOMIC_RELAXED);
    s->dims_sent = 0;
    for (int i = 0; i < INPUTS; i++)
      s->inputs[i] = one_in(t, 50) ? any_float(t) : (float)below(t, 200) * 0.01f - 1;
    const uint32_t rows[2] = {below(t, 3), below(t, 3)};
    memcpy(&s->inputs[INPUTS - 2], rows, sizeof rows);
  }
  for (int kind = GRAPH; kind < KINDS; kind++)
    for (int n = t->lefts[kind]; n > 0; n--)
      destroy(t, (enum kind)kind, t->left[kind][--t->lefts[kind]]);
}

/* One call, and what holds of every one. */
static int once(Thread *t) {
  const int f = deck[below(t, deck_size)];
  __atomic_store_n(&t->function, f, __ATOMIC_RELAXED);
  if (alone)
    CHECK(vpps_frontend(NULL) == VPPS_ERR_ARGUMENT); /* another last error */
  const int status = calls[f](t);
  if (status < 0 || status >= STATUSES || status == VPPS_ERR_INTERNAL ||
      status == VPPS_ERR_FORKED || status == VPPS_ERR_DEVICE)
    fail("vpps_%s: status %d", names[f], status);
  if (status != VPPS_OK) {
    const char *text = vpps_last_error();
    if (*text == 0 || strchr(text, '\n') != NULL)
      fail("vpps_%s: status %d without a text of one line", names[f], status);
    if (alone && f != FN_frontend && strncmp(text, "vpps_frontend:", 14) == 0)
      fail("vpps_%s: status %d and no text", names[f], status);
  }
  t->calls[f]++;
  t->fine[f] += status == VPPS_OK;
  __atomic_store_n(&t->statuses[status], t->statuses[status] + 1, __ATOMIC_RELAXED);
  return status;
}

static uint64_t count_of(const Thread *t) {
  uint64_t n = 0;
  for (int s = 0; s < STATUSES; s++)
    n += __atomic_load_n(&t->statuses[s], __ATOMIC_RELAXED);
  return n;
}
static uint64_t count_of_all(void) {
  uint64_t n = 0;
  for (int k = 0; k < MOST_THREADS; k++)
    n += count_of(&threads[k]);
  return n;
}

/* The first part: reads everything before and after each call. */
static void compare_calls(Thread *t) {
  for (uint64_t n = 0, fresh = 0; now() < end_at && n < options.calls; n++) {
    maintain(t);
    if (!fresh) { /* twice, for reading may evaluate */
      settle();
      read_everything(&before, t);
      read_everything(&before, t);
    }
    const int failed = once(t) != VPPS_OK;
    fresh = failed;
    const int batch_failed = settle();
    if (failed || batch_failed) {
      read_everything(&after, t);
      compare(names[t->function], batch_failed);
      fresh = !batch_failed;
    }
    if (n % 64 == 0) {
      known_sums(t);
      fresh = 0;
    }
  }
}

static void *call_at_will(void *thread) {
  Thread *t = thread;
  for (uint64_t n = 0;; n++) {
    if (n % 256 == 0) {
      if (now() >= end_at || count_of_all() >= options.calls)
        break;
      if (n % 8192 == 0)
        known_sums(t);
    }
    if (n % 16 == 0)
      maintain(t);
    once(t);
  }
  return NULL;
}

/* Says every few seconds how far it is; a thread that is in one call for a minute hangs. */
static void *watch(void *unused) {
  static uint64_t last[MOST_THREADS];
  static double moved[MOST_THREADS];
  const double began = now();
  double said = began;
  for (int k = 0; k < MOST_THREADS; k++)
    moved[k] = began;
  for (;;) {
    usleep(200000);
    for (int k = 0; k < options.threads; k++) {
      const uint64_t n = count_of(&threads[k]);
      if (n != last[k] || __atomic_load_n(&threads[k].resting, __ATOMIC_RELAXED))
        last[k] = n, moved[k] = now();
      else if (now() - moved[k] > 60) {
        fprintf(stderr, "FAILED (seed %llu): thread %d hangs in or after vpps_%s\n",
                (unsigned long long)options.seed, k, names[threads[k].function]);
        _exit(1);
      }
    }
    if (now() - said > 5) {
      said = now();
      printf("calls: %llu in %.0f s\n", (unsigned long long)count_of_all(), said - began);
      fflush(stdout);
    }
  }
  return unused;
}

/* An engine with an object of each kind, closed again or not: foreign to the calls. */
static void make_foreign(int at, const char *device, int closed) {
  vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
  vpps_trainer_options rule = VPPS_TRAINER_OPTIONS_INIT;
  uint32_t c, p;
  vpps_engine *e;
  o.device = device;
  if (vpps_engine_open(&o, &e) != VPPS_OK)
    return;
  foreign[ENGINE][at] = e;
  CHECK(vpps_collection_create(e, 0, &c) == VPPS_OK);
  CHECK(vpps_parameter_create(e, c, "/foreign", &dims[TWO], 0, NULL, &p) == VPPS_OK);
  CHECK(vpps_graph_create(e, (vpps_graph **)&foreign[GRAPH][at]) == VPPS_OK);
  CHECK(vpps_trainer_create(e, &rule, &p, 1, (vpps_trainer **)&foreign[TRAINER][at]) == VPPS_OK);
  CHECK(vpps_handle_create(e, &p, 1, NULL, (vpps_handle **)&foreign[HANDLE][at]) == VPPS_OK);
  if (closed)
    vpps_engine_close(e);
}

static void set_up(void) {
  static const float two[] = {1, 2};
  const vpps_dim table = {2, 1, {2, 3}};
  vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
  uint32_t c, other;
  make_foreign(0, options.device, 1);
  if (strcmp(options.device, "cpu") != 0)
    make_foreign(1, "cpu", 0);
  o.device = options.device;
  o.seed = (uint32_t)options.seed | 1;
  if (vpps_engine_open(&o, &engine) != VPPS_OK)
    fail("%s does not open", options.device);
  CHECK(vpps_frontend("random calls") == VPPS_OK);
  for (int k = 0; k < 6; k++)
    CHECK(vpps_collection_create(engine, 0, &c) == VPPS_OK);
  const vpps_dim *const fixed[] = {&dims[TWO], &dims[THREE], &dims[MATRIX], &table};
  for (int p = 0; p < FIXED_PARAMETERS; p++) {
    const uint32_t lookup = p == P_TABLE ? VPPS_PARAMETER_LOOKUP : 0;
    CHECK(vpps_parameter_create(engine, 1 + (uint32_t)p % 3, "/fixed", fixed[p], lookup, NULL,
                                &parameters[p]) == VPPS_OK);
    size_of[p] = p == P_TABLE ? 6 : sizes[p + TWO];
  }
  /* Ids and collections that random arguments do not hit are those of what stays as it is. */
  CHECK(vpps_parameter_create(engine, 1, "/other", &dims[TWO], 0, NULL, &other) == VPPS_OK);
  CHECK(vpps_parameter_create(engine, c, "/quiet", &dims[TWO], 0, two, &quiet) == VPPS_OK);
  CHECK(c == 5 && quiet == 5);
  for (int p = FIXED_PARAMETERS; p < PARAMETERS; p++) {
    CHECK(vpps_parameter_create(engine, 1, "/first", &dims[TWO], 0, NULL, &parameters[p]) ==
          VPPS_OK);
    size_of[p] = 2;
  }
  for (int f = 0; f < FUNCTION_COUNT; f++)
    for (int k = 0; k < weights[f]; k++)
      deck[deck_size++] = (uint8_t)f;
}

/* Destroys all there is; the engine works to its end. */
static void tear_down(void) {
  for (int k = 0; k < options.threads; k++)
    for (int n = 0; n < GRAPHS; n++)
      vpps_graph_destroy(threads[k].own[n].graph);
  for (int n = 0; n < POOL; n++) {
    vpps_handle_destroy(pool[HANDLE][n]);
    vpps_trainer_destroy(pool[TRAINER][n]);
    vpps_graph_destroy(pool[GRAPH][n]);
    vpps_checkpoint_close(pool[CHECKPOINT][n]);
    vpps_comm_destroy(pool[COMM][n]);
  }
  for (int n = 0; n < 3; n++) {
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/%d", folder, n);
    unlink(path);
  }
  rmdir(folder);
  settle();
  known_sums(&threads[0]);
  vpps_engine_close(engine);
  CHECK(vpps_engine_seed(engine, 1) == VPPS_ERR_ARGUMENT);
}

static void report(double seconds) {
  static const char *const statuses[STATUSES] = {"OK",          "ARGUMENT", "GRAPH",    "STATE",
                                                 "NUMERIC",     "DEVICE",   "MEMORY",   "IO",
                                                 "UNSUPPORTED", "FORKED",   "INTERNAL", "RANK"};
  for (int f = 0; f < FUNCTION_COUNT; f++) {
    uint64_t n = 0, fine = 0;
    for (int k = 0; k < MOST_THREADS; k++)
      n += threads[k].calls[f], fine += threads[k].fine[f];
    printf("%-24s %12llu, %llu of them successful\n", names[f], (unsigned long long)n,
           (unsigned long long)fine);
  }
  for (int s = 0; s < STATUSES; s++) {
    uint64_t n = 0;
    for (int k = 0; k < MOST_THREADS; k++)
      n += threads[k].statuses[s];
    printf("%-24s %12llu\n", statuses[s], (unsigned long long)n);
  }
  printf("calls: %llu in %.1f s on %s with %d threads, seed %llu: nothing found\n",
         (unsigned long long)count_of_all(), seconds, options.device, options.threads,
         (unsigned long long)options.seed);
}

static void read_options(int argc, char **argv) {
  options.device = getenv("VPPS_DEVICE");
  options.seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid();
  for (int k = 1; k < argc; k++) {
    const char *value = k + 1 < argc ? argv[k + 1] : NULL;
    if (value != NULL && strcmp(argv[k], "--seconds") == 0)
      options.seconds = atof(value);
    else if (value != NULL && strcmp(argv[k], "--calls") == 0)
      options.calls = strtoull(value, NULL, 10);
    else if (value != NULL && strcmp(argv[k], "--threads") == 0)
      options.threads = atoi(value);
    else if (value != NULL && strcmp(argv[k], "--seed") == 0)
      options.seed = strtoull(value, NULL, 10);
    else if (value != NULL && strcmp(argv[k], "--device") == 0)
      options.device = value;
    else {
      fprintf(stderr, "calls [--seconds N] [--calls N] [--threads N] [--seed N] [--device NAME]\n");
      exit(2);
    }
    k++;
  }
  if (options.device == NULL)
    options.device = "cpu";
  if (options.threads < 1 || options.threads > MOST_THREADS)
    options.threads = 4;
}

int main(int argc, char **argv) {
  pthread_t watcher, running[MOST_THREADS];
  read_options(argc, argv);
  printf("random calls: seed %llu, %d threads, %s\n", (unsigned long long)options.seed,
         options.threads, options.device);
  fflush(stdout);
  const double began = now();
  for (int k = 0; k < MOST_THREADS; k++) {
    threads[k].number = k;
    threads[k].resting = 1;
    threads[k].random = (options.seed + (uint64_t)k) * 0x9E3779B97F4A7C15u | 1;
    draw(&threads[k]);
  }
  CHECK(mkdtemp(folder) != NULL);
  set_up();
  threads[0].resting = 0;
  CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
  alone = 1;
  end_at = began + (options.threads == 1 ? 1 : 0.2) * options.seconds;
  compare_calls(&threads[0]);
  printf("calls: %llu compared in %.1f s\n", (unsigned long long)count_of_all(), now() - began);
  if (options.threads > 1) {
    alone = 0;
    end_at = began + options.seconds;
    for (int k = 0; k < options.threads; k++) {
      __atomic_store_n(&threads[k].resting, 0, __ATOMIC_RELAXED);
      CHECK(pthread_create(&running[k], NULL, call_at_will, &threads[k]) == 0);
    }
    for (int k = 0; k < options.threads; k++) {
      CHECK(pthread_join(running[k], NULL) == 0);
      __atomic_store_n(&threads[k].resting, 1, __ATOMIC_RELAXED);
    }
  }
  tear_down();
  report(now() - began);
  return 0;
}
