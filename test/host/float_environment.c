/* A host rounds otherwise, flushes denormal numbers or traps every floating-point exception, before
 * the library is loaded or later: the same bits come out, and the host's environment is as before
 * after every call. This program is not linked to the library. */
#define LOADED_BY_HAND
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "host.h"

/* What a thread's environment is, exceptions that were raised included. */
enum { MODES = 6 }; /* four roundings, denormal numbers flushed, everything trapped */
#if defined(__x86_64__)
static uint64_t environment(void) {
  uint32_t sse;
  uint16_t x87;
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(sse), "=m"(x87));
  return (uint64_t)x87 << 32 | sse;
}
static void set_mode(int mode) {
  static const uint32_t round[] = {0, 2, 1, 3}; /* to nearest, up, down, to zero */
  uint32_t sse = mode == 4 ? 0x1F80 | 0x8040 : mode == 5 ? 0 : 0x1F80 | round[mode] << 13;
  uint16_t x87 = mode == 4 ? 0x37F : mode == 5 ? 0x340 : (uint16_t)(0x37F | round[mode] << 10);
  __asm__ volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(sse), "m"(x87));
}
#elif defined(__aarch64__)
static uint64_t environment(void) {
  uint64_t control, status;
  __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status));
  return control << 32 | status;
}
static void set_mode(int mode) {
  uint64_t control = mode == 4 ? 1u << 24 : mode == 5 ? 0x9F00 : (uint64_t)mode << 22;
  __asm__ volatile("msr fpcr, %0" ::"r"(control));
}
#endif

/* Calls change nothing of it. Only integers are computed here: everything else would trap. */
#define SAME(call)                                                                                 \
  do {                                                                                             \
    const uint64_t before_ = environment();                                                        \
    CHECK(call);                                                                                   \
    CHECK(environment() == before_);                                                               \
  } while (0)
#define OK(call) SAME((call) == VPPS_OK)
#define VOID(call) SAME(((call), 1))

enum { RUNS = 2, BATCHES = 24, RESULTS = 16 };

/* loss = sum(tanh(log(w * x))), whose every step rounds. */
static void record(Loss *l, uint32_t w, int negative) {
  static uint32_t nodes[16];
  const uint32_t more[] = {NODE(LOG, 1), 2, NODE(TANH, 1), 3, NODE(SUM_ELEMENTS, 0), 4};
  record_loss(l, w, negative ? -1.1f : 1.1f, 2.3f);
  memcpy(nodes, l->nodes, 7 * sizeof *nodes);
  memcpy(nodes + 7, more, sizeof more);
  l->words.nodes = nodes;
  l->words.node_words = 13;
  l->words.node_count = 6;
}

static vpps_graph *new_graph(Model m) {
  vpps_graph *graph;
  OK(vpps_graph_create(m.engine, &graph));
  return graph;
}

/* A log function runs in the middle of calls, which go on in the default environment after it. */
static int heard;
static void round_otherwise(void *unused, vpps_log_level level, const char *line) {
  (void)unused, (void)level, (void)line;
  set_mode(1 + heard++ % 3);
}

/* Asynchronous batches, then DyNet's three calls; then what the host side computes. */
static void train(uint32_t threads, float *results) {
  const float values[] = {1.7f, 2.9f}, denormal[] = {1.3e-38f, 2.7e-39f};
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_trainer_options adam = VPPS_TRAINER_OPTIONS_INIT;
  vpps_trainer *trainer;
  vpps_handle *handle;
  Model m;
  Loss l;
  uint32_t d;
  options.device = getenv("VPPS_DEVICE");
  options.threads = threads;
  options.seed = 1;
  OK(vpps_set_log(VPPS_LOG_DEBUG, round_otherwise, NULL));
  heard = 0;
  OK(vpps_engine_open(&options, &m.engine));
  OK(vpps_collection_create(m.engine, 0.01f, &m.collection));
  OK(vpps_parameter_create(m.engine, m.collection, "/w", &model_dims[1], 0, values, &m.w));
  OK(vpps_parameter_create(m.engine, m.collection, "/d", &model_dims[1], 0, denormal, &d));
  adam.rule = VPPS_RULE_ADAM;
  adam.learning_rate = 0.01f;
  adam.collection = m.collection;
  OK(vpps_trainer_create(m.engine, &adam, &m.w, 1, &trainer));
  OK(vpps_handle_create(m.engine, &m.w, 1, trainer, &handle));
  for (int k = 0; k < BATCHES; k++) {
    vpps_graph *graph = new_graph(m);
    record(&l, m.w, 0);
    OK(vpps_fb(handle, graph, &l.words, 5, NULL));
    VOID(vpps_graph_destroy(graph));
  }
  OK(vpps_sync_latest_loss(handle, results));
  for (int k = 0; k < 2; k++) {
    vpps_graph *graph = new_graph(m);
    record(&l, m.w, 0);
    OK(vpps_backward(graph, &l.words, 5, 0));
    OK(vpps_value(graph, NULL, 5, results + 1 + k, 1));
    OK(vpps_update(trainer, NULL));
    VOID(vpps_graph_destroy(graph));
  }
  vpps_graph *graph = new_graph(m); /* NaN of a negative number's logarithm, which trap */
  record(&l, m.w, 1);
  OK(vpps_value(graph, &l.words, 5, results + 3, 1));
  VOID(vpps_graph_destroy(graph));
  graph = new_graph(m);
  SAME(vpps_value(graph, NULL, 9, results, 1) == VPPS_ERR_ARGUMENT);
  SAME(vpps_value(NULL, NULL, 9, results, 1) == VPPS_ERR_ARGUMENT);
  VOID(vpps_graph_destroy(graph));
  OK(vpps_parameter_scale(m.engine, d, VPPS_VALUES, 0.3f)); /* to denormal numbers */
  OK(vpps_collection_factor(m.engine, m.collection, results + 4));
  OK(vpps_parameter_read(m.engine, m.w, VPPS_VALUES, 0, 2, results + 5));
  OK(vpps_parameter_read(m.engine, d, VPPS_VALUES, 0, 2, results + 7));
  OK(vpps_trainer_read_state(trainer, m.w, 4, results + 9));
  VOID(vpps_handle_destroy(handle));
  VOID(vpps_trainer_destroy(trainer));
  VOID(vpps_engine_close(m.engine));
  CHECK(heard > 0);
}

typedef struct Run {
  int mode;
  float (*results)[RESULTS];
} Run;

static void *in_a_thread(void *argument) {
  Run *run = argument;
  set_mode(run->mode);
  for (uint32_t k = 0; k < RUNS; k++)
    train(1 + 2 * k, run->results[k]);
  return NULL;
}

/* Loads the library in the mode and trains, in the mode on a new thread if it is loaded before. */
static void child(const char *path, int mode, int before, float (*results)[RESULTS]) {
  Run run = {mode, results};
  if (!before)
    set_mode(mode);
  const uint64_t mine = environment();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || !find_functions(library) || environment() != mine) {
    fprintf(stderr, "the library was not loaded, or has changed the environment\n");
    _exit(1);
  }
  if (before) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_a_thread, &run) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  } else {
    in_a_thread(&run);
  }
  _exit(0);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "libvpps.so";
  float(*results)[RESULTS] = mmap(NULL, 2 * MODES * RUNS * sizeof *results, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int failures = results == MAP_FAILED;
  for (int k = 0; k < 2 * MODES && !failures; k++) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
      child(path, k / 2, k % 2, results + RUNS * k);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
      fprintf(stderr, "mode %d, loaded %s: status %#x\n", k / 2, k % 2 ? "before" : "in it",
              (unsigned)status);
      failures++;
    }
    for (int r = 0; r < RUNS; r++) /* the first run of all is the default's on one thread */
      if (memcmp(results[0], results[RUNS * k + r], sizeof *results) != 0) {
        fprintf(stderr, "mode %d, loaded %s, run %d: other bits\n", k / 2,
                k % 2 ? "before" : "in it", r);
        failures++;
      }
  }
  for (int i = 0; i < 13 && !failures; i++)
    failures += results[0][i] == 0; /* each was written */
  return failures != 0;
}
