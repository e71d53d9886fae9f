/* Ranks that NCCL connects train a model, and say whether they have the same parameters, how far
 * these are from those of one engine that trains with the batches joined, and how long a step takes
 * with the exchange and without.
 *
 *   nccl_ranks RANKS [STEPS] [FAULT]     starts the ranks itself, rank k on cuda:k
 *
 * Where RANK and WORLD_SIZE are set, as torchrun does, it is one rank, on cuda:LOCAL_RANK, and the
 * file VPPS_TEST_ID brings the group's id. VPPS_TEST_SMALL leaves the large model out. FAULT is
 * what rank 1 does in the end: "abort", "sleep" or "kill"; the others must be told. */
#include "host.h"

#include <math.h>
#include <sys/wait.h>
#include <time.h>

enum { LOOKUP = 7, SQUARE = 22, SUM = 54, AFFINE = 80 };
enum { SCALAR, VECTOR, MATRIX, TABLE }; /* dims */
enum { LAYERS = 4, MOST_SENTENCES = 16, WORDS_EACH = 12 };

typedef struct Size {
  const char *name;
  uint32_t width, rows, sentences;
} Size;
static const Size sizes[] = {{"small", 32, 50, 4}, {"large", 1024, 4096, 8}};

typedef struct Trainee {
  vpps_engine *engine;
  vpps_handle *handle;
  vpps_dim dims[4];
  uint32_t table, weights[LAYERS], biases[LAYERS];
  uint64_t floats;
  const Size *size;
} Trainee;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static uint32_t parameter(Trainee *t, uint32_t dim, int lookup, uint32_t seed, float scale) {
  const vpps_dim *d = &t->dims[dim];
  size_t n = d->d[0] * (size_t)(d->nd > 1 ? d->d[1] : 1);
  float *values = malloc(n * sizeof *values);
  uint32_t id;
  char name[16];
  for (size_t i = 0; i < n; i++) {
    seed = 1664525 * seed + 1013904223;
    values[i] = scale * ((float)(seed >> 8) / (float)(1 << 23) - 1);
  }
  snprintf(name, sizeof name, "/%u", (unsigned)(t->floats % 100000000));
  CHECK(vpps_parameter_create(t->engine, 0, name, d, lookup, values, &id) == VPPS_OK);
  t->floats += n;
  free(values);
  return id;
}

static Trainee open_trainee(const char *device, const Size *size, uint32_t seed) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_trainer_options how = VPPS_TRAINER_OPTIONS_INIT;
  vpps_trainer *trainer;
  uint32_t ids[1 + 2 * LAYERS], n = 0, collection, w = size->width;
  const vpps_dim dims[4] = {{1, 1, {1}}, {1, 1, {w}}, {2, 1, {w, w}}, {2, 1, {w, size->rows}}};
  Trainee t = {0};
  memcpy(t.dims, dims, sizeof dims);
  t.size = size;
  options.device = device;
  CHECK(vpps_engine_open(&options, &t.engine) == VPPS_OK);
  CHECK(vpps_collection_create(t.engine, 0, &collection) == VPPS_OK);
  ids[n++] = t.table = parameter(&t, TABLE, 1, seed, 1);
  for (int k = 0; k < LAYERS; k++) {
    ids[n++] = t.weights[k] =
        parameter(&t, MATRIX, 0, seed + 2 * (uint32_t)k, sqrtf(3.0f / (float)w));
    ids[n++] = t.biases[k] = parameter(&t, VECTOR, 0, seed + 2 * (uint32_t)k + 1, 0.1f);
  }
  how.learning_rate = 0.01f;
  CHECK(vpps_trainer_create(t.engine, &how, ids, n, &trainer) == VPPS_OK);
  CHECK(vpps_handle_create(t.engine, ids, n, trainer, &t.handle) == VPPS_OK);
  return t;
}

/* Sentences from..to of a step, each a path of words through the layers. */
static vpps_status train(Trainee *t, uint32_t step, uint32_t from, uint32_t to, float *loss) {
  enum { MOST = 65536 };
  static uint32_t nodes[MOST], inputs[MOST];
  uint32_t n = 0, count = 0, k_in = 0, losses[64 * WORDS_EACH], k_loss = 0, w[LAYERS], b[LAYERS];
  vpps_words words = {0};
  vpps_graph *graph;
#define ADD(...)                                                                                   \
  do {                                                                                             \
    const uint32_t x[] = {__VA_ARGS__};                                                            \
    memcpy(nodes + n, x, sizeof x);                                                                \
    n += sizeof x / 4;                                                                             \
    count++;                                                                                       \
  } while (0)
  for (int k = 0; k < LAYERS; k++) {
    w[k] = count;
    ADD(NODE(PARAMETER, MATRIX), t->weights[k]);
    b[k] = count;
    ADD(NODE(PARAMETER, VECTOR), t->biases[k]);
  }
  for (uint32_t s = from; s < to; s++)
    for (uint32_t i = 0; i < WORDS_EACH; i++) {
      inputs[k_in] = (s * 7919 + i * 104729 + step * 31) % t->size->rows;
      ADD(NODE(LOOKUP, VECTOR), t->table, k_in++);
      for (int k = 0; k < LAYERS; k++) {
        ADD(NODE(AFFINE, VECTOR), 3, b[k], w[k], count - 1);
        ADD(NODE(TANH, VECTOR), count - 1);
      }
      ADD(NODE(SQUARE, VECTOR), count - 1);
      losses[k_loss++] = count;
      ADD(NODE(SUM_ELEMENTS, SCALAR), count - 1);
    }
  nodes[n++] = NODE(SUM, SCALAR);
  nodes[n++] = k_loss;
  memcpy(nodes + n, losses, 4 * k_loss);
  n += k_loss;
  CHECK(n < MOST);
  words.version = VPPS_WIRE_VERSION;
  words.nodes = nodes, words.node_words = n, words.node_count = count + 1;
  words.dims = t->dims, words.dim_count = 4;
  words.inputs = inputs, words.input_words = k_in;
  CHECK(vpps_graph_create(t->engine, &graph) == VPPS_OK);
  vpps_status s = vpps_fb(t->handle, graph, &words, count, NULL);
  vpps_graph_destroy(graph);
  if (s == VPPS_OK && loss)
    s = vpps_sync_latest_loss(t->handle, loss);
  return s;
}

/* All parameters, which are the caller's to free. */
static float *values_of(Trainee *t) {
  const uint32_t w = t->size->width;
  float *all = malloc(t->floats * sizeof *all), *at = all;
  CHECK(vpps_parameter_read(t->engine, t->table, VPPS_VALUES, 0, w * t->size->rows, at) == VPPS_OK);
  at += w * t->size->rows;
  for (int k = 0; k < LAYERS; k++, at += w) {
    CHECK(vpps_parameter_read(t->engine, t->weights[k], VPPS_VALUES, 0, w * w, at) == VPPS_OK);
    at += w * w;
    CHECK(vpps_parameter_read(t->engine, t->biases[k], VPPS_VALUES, 0, w, at) == VPPS_OK);
  }
  return all;
}

static uint64_t hash_of(const float *x, uint64_t n) {
  uint64_t h = 14695981039346656037u;
  for (const unsigned char *p = (const unsigned char *)x, *end = (const unsigned char *)(x + n);
       p < end; p++)
    h = (h ^ *p) * 1099511628211u;
  return h;
}

/* The id of a group, which rank 0 makes and the others wait for. */
static void share_id(uint32_t rank, uint32_t number, void *id) {
  const char *file = getenv("VPPS_TEST_ID");
  char name[512], other[520];
  CHECK(file != NULL);
  snprintf(name, sizeof name, "%s.%u", file, (unsigned)number);
  snprintf(other, sizeof other, "%s.new", name);
  if (rank == 0) {
    CHECK(vpps_comm_nccl_id(id) == VPPS_OK);
    FILE *f = fopen(other, "wb");
    CHECK(f && fwrite(id, VPPS_NCCL_ID_BYTES, 1, f) == 1 && fclose(f) == 0);
    CHECK(rename(other, name) == 0);
    return;
  }
  for (int tries = 0;; tries++) {
    FILE *f = fopen(name, "rb");
    if (f) {
      CHECK(fread(id, VPPS_NCCL_ID_BYTES, 1, f) == 1);
      fclose(f);
      return;
    }
    CHECK(tries < 6000);
    usleep(10000);
  }
}

/* The time of a step in us, once it is warm. */
static double time_steps(Trainee *t, uint32_t steps, uint32_t from, uint32_t to) {
  double began = 0;
  float loss;
  for (uint32_t step = 0; step < 5 + steps; step++) {
    if (step == 5)
      began = now();
    CHECK(train(t, 1000 + step, from, to, &loss) == VPPS_OK);
  }
  return (now() - began) / steps;
}

static void fault_of(const char *fault, Trainee *t, vpps_comm *comm, uint32_t rank) {
  float *before = values_of(t), *after;
  double began = now();
  if (rank == 1) {
    if (!strcmp(fault, "abort"))
      CHECK(vpps_comm_abort(comm, "out of data") == VPPS_OK);
    if (!strcmp(fault, "kill"))
      _exit(7);
    sleep(8);
    return;
  }
  float loss; /* fb returns before its step is made */
  CHECK(train(t, 0, 0, 1, &loss) == VPPS_ERR_RANK);
  printf("rank %u was told after %.2f s: %s\n", (unsigned)rank, (now() - began) * 1e-6,
         vpps_last_error());
  after = values_of(t);
  CHECK(memcmp(before, after, t->floats * sizeof *after) == 0);
  fflush(stdout);
}

/* Which rank this is, and what it does. */
typedef struct Rank {
  uint32_t rank, size, steps;
  char device[16];
  const char *fault;
} Rank;

enum { TRAINED = 20 }; /* steps that are compared */

/* What has become of a rank's training. */
typedef struct Learnt {
  float *values;
  float losses[TRAINED];
  double alone, together, barrier; /* us of a step, and of a barrier */
} Learnt;

static void close_trainee(Trainee *t) {
  vpps_handle_destroy(t->handle);
  vpps_engine_close(t->engine);
}

static void train_alone(const Rank *r, const Size *z, Learnt *l) {
  Trainee t = open_trainee(r->device, z, 1 + r->rank);
  l->alone = time_steps(&t, r->steps, r->rank * z->sentences, (r->rank + 1) * z->sentences);
  close_trainee(&t);
}

static double time_barriers(vpps_comm *comm, uint32_t steps) {
  const double began = now();
  for (uint32_t step = 0; step < steps; step++)
    CHECK(vpps_comm_barrier(comm) == VPPS_OK);
  return (now() - began) / steps;
}

/* The group's number tells its id's file from others. */
static void train_together(const Rank *r, const Size *z, uint32_t number, Learnt *l) {
  const uint32_t from = r->rank * z->sentences, to = from + z->sentences;
  char id[VPPS_NCCL_ID_BYTES];
  vpps_comm *comm;
  Trainee t = open_trainee(r->device, z, 1 + r->rank);
  share_id(r->rank, number, id);
  const double began = now();
  CHECK(vpps_comm_create_nccl(r->device, r->rank, r->size, id, *r->fault ? 3 : 60, &comm) ==
        VPPS_OK);
  const double joined = now() - began;
  CHECK(vpps_comm_attach(comm, t.engine, VPPS_SUM) == VPPS_OK);
  for (uint32_t step = 0; step < TRAINED; step++) {
    CHECK(train(&t, step, from, to, NULL) == VPPS_OK);
    CHECK(vpps_global_loss(t.handle, &l->losses[step]) == VPPS_OK);
  }
  l->values = values_of(&t);
  printf("%s: rank %u of %u on %s: %llu floats, hash %016llx, joined in %.0f ms\n", z->name,
         (unsigned)r->rank, (unsigned)r->size, r->device, (unsigned long long)t.floats,
         (unsigned long long)hash_of(l->values, t.floats), joined * 1e-3);
  fflush(stdout);
  l->together = time_steps(&t, r->steps, from, to);
  l->barrier = time_barriers(comm, r->steps);
  if (*r->fault) {
    fault_of(r->fault, &t, comm, r->rank);
    _exit(0);
  }
  CHECK(vpps_comm_detach(t.engine) == VPPS_OK);
  close_trainee(&t);
  vpps_comm_destroy(comm);
}

/* One engine with the batches joined, from the same parameters. */
static void compare(const Rank *r, const Size *z, const Learnt *l) {
  Trainee one = open_trainee(r->device, z, 1);
  double worst = 0, worst_loss = 0, largest = 0;
  float loss = 0;
  for (uint32_t step = 0; step < TRAINED; step++) {
    CHECK(train(&one, step, 0, r->size * z->sentences, &loss) == VPPS_OK);
    worst_loss = fmax(worst_loss, fabsf(loss - l->losses[step]) / fabsf(loss));
  }
  float *its = values_of(&one);
  for (uint64_t i = 0; i < one.floats; i++) {
    worst = fmax(worst, fabsf(its[i] - l->values[i]));
    largest = fmax(largest, fabsf(its[i]));
  }
  printf("%s: against one rank: losses differ by %.2g at most (relative), parameters by %.2g (of "
         "%.2g); last loss %g\n",
         z->name, worst_loss, worst, largest, (double)loss);
  CHECK(worst_loss < 1e-4 && worst < 1e-3);
  printf("%s: us a step: alone %.1f, with %u ranks %.1f; a barrier %.1f\n", z->name, l->alone,
         (unsigned)r->size, l->together, l->barrier);
  free(its);
  close_trainee(&one);
}

static int run(uint32_t rank, uint32_t size, uint32_t local, uint32_t steps, const char *fault) {
  const uint32_t kinds = getenv("VPPS_TEST_SMALL") ? 1 : sizeof sizes / sizeof *sizes;
  Rank r = {rank, size, steps, "", fault};
  snprintf(r.device, sizeof r.device, "cuda:%u", (unsigned)local);
  for (uint32_t k = 0; k < kinds; k++) {
    Learnt l = {0};
    train_alone(&r, &sizes[k], &l);
    train_together(&r, &sizes[k], k, &l);
    if (rank == 0)
      compare(&r, &sizes[k], &l);
    free(l.values);
  }
  printf("rank %u is done\n", (unsigned)rank);
  return 0;
}

static uint32_t number(const char *variable) {
  const char *v = getenv(variable);
  return v ? (uint32_t)atoi(v) : 0;
}

int main(int argc, char **argv) {
  const uint32_t steps = argc > 2 ? (uint32_t)atoi(argv[2]) : 100;
  const char *fault = argc > 3 ? argv[3] : "";
  char file[64];
  int status, failed = 0;
  if (getenv("RANK"))
    return run(number("RANK"), number("WORLD_SIZE"), number("LOCAL_RANK"), steps, fault);
  const int ranks = argc > 1 ? atoi(argv[1]) : 2;
  snprintf(file, sizeof file, "/tmp/vpps_nccl_%d", (int)getpid());
  setenv("VPPS_TEST_ID", file, 1);
  for (int k = 0; k < ranks; k++)
    if (fork() == 0)
      return run((uint32_t)k, (uint32_t)ranks, (uint32_t)k, steps, fault);
  while (wait(&status) > 0)
    failed = failed || !WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 7);
  for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    char name[80];
    snprintf(name, sizeof name, "%s.%u", file, (unsigned)k);
    unlink(name);
  }
  printf(failed ? "FAILED\n" : "%d ranks train as one\n", ranks);
  return failed;
}
