/* Memory that runs out: under limits of the address space, and each allocation that the library
 * makes itself failing in turn. Calls fail with VPPS_ERR_MEMORY; parameters are as before and the
 * engine goes on. NOT_SANITIZED: it replaces the allocations that a sanitizer replaces. */
#include "again.h"
#include "host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- the library's allocations, which fail when they are told to
 * ------------------------------------------------ */

/* The library takes memory of its own by calloc, by mappings without reserve and by mremap
 * (jit/kernel/memory.cc); Go's runtime uses malloc and other mappings. */
static struct {
  const char *begin, *end; /* of the library's code */
  long countdown;          /* the allocation at which it becomes 0 fails */
  int failed;
} library;

static int find_code(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  for (int i = 0; strstr(info->dlpi_name, "libvpps.so") && i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
      library.begin = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      library.end = library.begin + info->dlpi_phdr[i].p_memsz;
    }
  return 0;
}

static int fails(const void *caller) {
  if ((const char *)caller < library.begin || (const char *)caller >= library.end ||
      __atomic_load_n(&library.countdown, __ATOMIC_RELAXED) <= 0 ||
      __atomic_sub_fetch(&library.countdown, 1, __ATOMIC_RELAXED) != 0)
    return 0;
  library.failed = 1;
  return 1;
}

extern void *__libc_calloc(size_t, size_t);
void *calloc(size_t n, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  if (flags & MAP_NORESERVE && fails(__builtin_return_address(0)))
    return MAP_FAILED;
  return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
void *mremap(void *at, size_t size, size_t new_size, int flags, ...) {
  if (fails(__builtin_return_address(0)))
    return MAP_FAILED;
  return (void *)syscall(SYS_mremap, at, size, new_size, flags, NULL);
}

enum { PARAMETERS = 80, ALLOCATIONS = 200, SIDE = 16 };

/* A call that failed for lack of memory succeeds when there is some again. */
static int failures;
#define WITH_MEMORY(call)                                                                          \
  do {                                                                                             \
    vpps_status s_ = (call);                                                                       \
    if (s_ == VPPS_ERR_MEMORY) {                                                                   \
      failures++;                                                                                  \
      s_ = (call);                                                                                 \
    }                                                                                              \
    CHECK(s_ == VPPS_OK);                                                                          \
  } while (0)

/* Two batches of loss = sum(W tanh(p), 17 times one below the other): the shape rules need memory
 * for more than 16 arguments. */
static void train(vpps_engine *engine, vpps_handle *handle, uint32_t w, uint32_t p) {
  enum { MATRIX_MULTIPLY = 81, CONCATENATE = 96, TIMES = 17 };
  static const vpps_dim dims[] = {
      {1, 1, {1}}, {1, 1, {SIDE}}, {2, 1, {SIDE, SIDE}}, {1, 1, {TIMES * SIDE}}};
  uint32_t nodes[14 + TIMES] = {NODE(PARAMETER, 2),
                                w,
                                NODE(PARAMETER, 1),
                                p,
                                NODE(TANH, 1),
                                1,
                                NODE(MATRIX_MULTIPLY, 1),
                                0,
                                2,
                                NODE(CONCATENATE, 3),
                                TIMES};
  vpps_words words = {VPPS_WIRE_VERSION, nodes, sizeof nodes / sizeof *nodes, 6, dims, 4, NULL, 0};
  for (int k = 0; k < TIMES; k++)
    nodes[11 + k] = 3;
  nodes[11 + TIMES] = 0; /* the axis */
  nodes[12 + TIMES] = NODE(SUM_ELEMENTS, 0);
  nodes[13 + TIMES] = 4;
  vpps_graph *graph;
  for (int k = 0; k < 2; k++) {
    vpps_status s = VPPS_ERR_MEMORY;
    CHECK(vpps_graph_create(engine, &graph) == VPPS_OK);
    for (int tries = 0; s == VPPS_ERR_MEMORY && tries < 2; tries++) {
      float loss;
      s = vpps_fb(handle, graph, &words, 5, NULL);
      if (s == VPPS_OK)
        s = vpps_sync_latest_loss(handle, &loss); /* a batch on its way tells late */
      failures += s == VPPS_ERR_MEMORY;
      if (s == VPPS_ERR_MEMORY) {
        vpps_graph_destroy(graph);
        CHECK(vpps_graph_create(engine, &graph) == VPPS_OK);
      }
    }
    CHECK(s == VPPS_OK);
    vpps_graph_destroy(graph);
  }
}

/* A program that needs more than ALLOCATIONS allocations, of which the n-th fails; 0: none. */
static void program(int n, float results[PARAMETERS]) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  const vpps_dim vector = {1, 1, {SIDE}}, matrix = {2, 1, {SIDE, SIDE}};
  vpps_engine *engine;
  vpps_handle *handle;
  uint32_t collection, w, ids[PARAMETERS + 1];
  float values[SIDE * SIDE], *seen;
  options.device = getenv("VPPS_DEVICE");
  options.snapshot_batches = 1;
  options.seed = 1;
  CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  library.failed = failures = 0;
  library.countdown = n;
  for (int i = 0; i < SIDE * SIDE; i++)
    values[i] = 0.01f * (float)(i % 17);
  CHECK(vpps_collection_create(engine, 0, &collection) == VPPS_OK);
  WITH_MEMORY(vpps_parameter_create(engine, collection, "/W", &matrix, 0, values, &w));
  for (int i = 0; i < PARAMETERS; i++)
    WITH_MEMORY(vpps_parameter_create(engine, collection, "/p", &vector, 0, values + i, &ids[i]));
  ids[PARAMETERS] = w;
  WITH_MEMORY(vpps_handle_create(engine, ids, PARAMETERS + 1, NULL, &handle));
  train(engine, handle, w, ids[0]);
  for (int i = 0; i < PARAMETERS; i++)
    for (int part = 0; part < 2; part++)
      WITH_MEMORY(vpps_parameter_expose(engine, ids[i], (vpps_part)part, &seen));
  train(engine, handle, w, ids[1]);
  library.countdown = 0;
  for (int i = 0; i < PARAMETERS; i++) {
    WITH_MEMORY(vpps_parameter_read(engine, ids[i], VPPS_VALUES, 0, SIDE, values));
    results[i] = values[0] + values[SIDE - 1];
  }
  vpps_handle_destroy(handle);
  vpps_engine_close(engine);
}

static void allocations_fail(void) {
  float want[PARAMETERS], have[PARAMETERS];
  dl_iterate_phdr(find_code, NULL);
  CHECK(library.begin != NULL);
  program(0, want);
  CHECK(failures == 0);
  for (int n = 1; n <= ALLOCATIONS; n++) {
    program(n, have);
    CHECK(library.failed);
    CHECK(memcmp(want, have, sizeof want) == 0);
  }
}

/* ---- limits
 * ------------------------------------------------------------------------------------------------------
 */

/* Bounds the address space to what the process has and so many MiB more. */
static void limit(size_t more) {
  struct rlimit r;
  size_t pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%zu", &pages) == 1);
  fclose(f);
  r.rlim_cur = r.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + (more << 20);
  CHECK(setrlimit(RLIMIT_AS, &r) == 0);
}

/* A parameter of 4 GiB, zeros, when 1 GiB is left. */
static void large_parameter(void) {
  static const vpps_dim large = {2, 1, {1 << 10, 1 << 20}};
  Model m = open_model();
  uint32_t id;
  all_is_well(m);
  limit(1024);
  for (uint32_t flags = 0; flags < 2; flags++)
    FAILS(VPPS_ERR_MEMORY, "large",
          vpps_parameter_create(m.engine, m.collection, "/large", &large, flags, NULL, &id));
  all_is_well(m);
}

/* vpps_fb of a million nodes. */
static int large_graph(size_t more) {
  enum { NODES = 1000000 };
  uint32_t *nodes = malloc(sizeof *nodes * (7 + 2 * NODES + 2)), n = 3, at = 7;
  Model m = open_model();
  vpps_handle *handle;
  vpps_graph *graph;
  vpps_status s;
  Loss l;
  float loss;
  CHECK(nodes != NULL);
  record_loss(&l, m.w, 0, 0); /* without a gradient, so that the parameter stays */
  memcpy(nodes, l.nodes, 7 * sizeof *nodes);
  for (; n < 3 + NODES; n++) {
    nodes[at++] = NODE(TANH, 1);
    nodes[at++] = n - 1;
  }
  nodes[at++] = NODE(SUM_ELEMENTS, 0);
  nodes[at++] = n - 1;
  l.words.nodes = nodes;
  l.words.node_words = at;
  l.words.node_count = n + 1;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  all_is_well(m);
  limit(more);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  s = vpps_fb(handle, graph, &l.words, n, NULL);
  if (s == VPPS_OK)
    s = vpps_sync_latest_loss(handle, &loss);
  CHECK(s == VPPS_OK || s == VPPS_ERR_MEMORY);
  vpps_graph_destroy(graph);
  all_is_well(m);
  return s != VPPS_OK;
}

/* A small model in 4 GB on so many threads. */
static void small_model(void) {
  Model m = open_model();
  vpps_handle *handle;
  vpps_graph *graph;
  Loss l;
  float loss;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
  for (int k = 0; k < 5; k++) {
    record_loss(&l, m.w, 0, 0);
    CHECK(vpps_fb(handle, graph, &l.words, 3, NULL) == VPPS_OK);
    CHECK(vpps_graph_truncate(graph, 0) == VPPS_OK);
  }
  CHECK(vpps_sync_latest_loss(handle, &loss) == VPPS_OK);
  all_is_well(m);
}

static void too_many(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  options.device = "cpu";
  options.processors = UINT32_MAX;
  FAILS(VPPS_ERR_ARGUMENT, "4294967295 processors", vpps_engine_open(&options, &engine));
  options.processors = 0;
  options.threads = UINT32_MAX;
  FAILS(VPPS_ERR_ARGUMENT, "4294967295 threads", vpps_engine_open(&options, &engine));
}

int main(int argc, char **argv) {
  static const char *const room[] = {"16", "300", "900", "3000"};
  const char *task = argc > 1 ? argv[1] : "";
  if (strcmp(task, "large parameter") == 0) {
    large_parameter();
  } else if (strcmp(task, "large graph") == 0) {
    return 40 + large_graph((size_t)atol(getenv("ROOM")));
  } else if (strcmp(task, "limited") == 0) {
    struct rlimit r = {4000000000, 4000000000};
    CHECK(setrlimit(RLIMIT_AS, &r) == 0);
    execl("/proc/self/exe", argv[0], "small model", (char *)NULL);
    return 1;
  } else if (strcmp(task, "small model") == 0) {
    small_model();
  } else {
    size_t refused = 0;
    if (getenv("VPPS_DEVICE") == NULL || strcmp(getenv("VPPS_DEVICE"), "cpu") == 0) {
      setenv("VPPS_DEVICE", "cpu", 1);
      too_many();
      again(argv[0], "limited", "VPPS_THREADS", "1");
      again(argv[0], "limited", "VPPS_THREADS", "8");
      again(argv[0], "large parameter", "VPPS_THREADS", "2");
      setenv("VPPS_THREADS", "1", 1); /* for the programs below */
      for (size_t k = 0; k < sizeof room / sizeof *room; k++) {
        int status = again_status(argv[0], "large graph", "ROOM", room[k]);
        CHECK(status == 40 || status == 41);
        refused += status == 41;
      }
      CHECK(refused > 0 && refused < sizeof room / sizeof *room);
      unsetenv("VPPS_THREADS");
    }
    allocations_fail();
  }
  return 0;
}
