/* Objects that are destroyed twice, by the wrong function, while a call uses them, or that never
 * were: each is an error of that call, and all other objects go on. */
#include "host.h"

#include <pthread.h>

typedef void (*destroyer)(void *);
static void close_engine(void *x) { vpps_engine_close(x); }
static void destroy_graph(void *x) { vpps_graph_destroy(x); }
static void destroy_trainer(void *x) { vpps_trainer_destroy(x); }
static void destroy_handle(void *x) { vpps_handle_destroy(x); }
static const destroyer destroyers[] = {close_engine, destroy_graph, destroy_trainer,
                                       destroy_handle};
enum { KINDS = 4 };

/* Destroying x is an error whose text holds the words. */
static void refused(destroyer destroy, void *x, const char *words) {
  CHECK(vpps_engine_open(NULL, NULL) == VPPS_ERR_ARGUMENT); /* another last error */
  destroy(x);
  CHECK(strstr(vpps_last_error(), words) != NULL && strchr(vpps_last_error(), '\n') == NULL);
}

typedef struct Objects {
  vpps_graph *graph;
  vpps_trainer *trainer;
  vpps_handle *handle;
} Objects;

static Objects make(Model m) {
  vpps_trainer_options rule = VPPS_TRAINER_OPTIONS_INIT;
  Objects o;
  rule.rule = VPPS_RULE_MOMENTUM;
  rule.learning_rate = 0;
  CHECK(vpps_graph_create(m.engine, &o.graph) == VPPS_OK);
  CHECK(vpps_trainer_create(m.engine, &rule, &m.w, 1, &o.trainer) == VPPS_OK);
  CHECK(vpps_handle_create(m.engine, &m.w, 1, o.trainer, &o.handle) == VPPS_OK);
  return o;
}

static void work(Model m, Objects o) {
  uint64_t n;
  float stale, loss = 0;
  Loss l;
  record_loss(&l, m.w, 3, 4);
  CHECK(vpps_graph_truncate(o.graph, 0) == VPPS_OK);
  CHECK(vpps_fb(o.handle, o.graph, &l.words, 3, &stale) == VPPS_OK);
  CHECK(vpps_sync_latest_loss(o.handle, &loss) == VPPS_OK && loss == 11);
  CHECK(vpps_trainer_updates(o.trainer, &n) == VPPS_OK);
  all_is_well(m);
}

static void of_the_wrong_type(Model m) {
  Objects o = make(m);
  void *const all[KINDS] = {m.engine, o.graph, o.trainer, o.handle};
  static const char *const words[KINDS] = {"no engine", "no graph", "no trainer", "no handle"};
  for (int d = 0; d < KINDS; d++)
    for (int x = 0; x < KINDS; x++)
      if (d != x)
        refused(destroyers[d], all[x], words[d]);
  work(m, o);
  for (int x = 1; x < KINDS; x++) {
    destroyers[x](all[x]);
    for (int d = 0; d < KINDS; d++)
      refused(destroyers[d], all[x], words[d]);
  }
  all_is_well(m);
}

/* Numbers that were never given out: of no object, or one bit away from one. */
static void of_junk(Model m) {
  Objects o = make(m);
  const uintptr_t numbers[] = {
      (uintptr_t)m.engine, (uintptr_t)o.graph, (uintptr_t)o.trainer, (uintptr_t)o.handle, 0,
      UINTPTR_MAX,         (uintptr_t)&o,      (uintptr_t)make,      0x5555555555555555u};
  for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
    for (int bit = 0; bit < 64; bit++) {
      const uintptr_t junk = numbers[n] ^ (uintptr_t)1 << bit;
      int real = 0;
      for (int k = 0; k < KINDS; k++)
        real |= junk == numbers[k];
      if (real)
        continue;
      FAILS(VPPS_ERR_ARGUMENT, "no engine", vpps_engine_seed((vpps_engine *)junk, 1));
      FAILS(VPPS_ERR_ARGUMENT, "no graph", vpps_forward((vpps_graph *)junk, NULL, 0, 1));
      FAILS(VPPS_ERR_ARGUMENT, "no trainer", vpps_update((vpps_trainer *)junk, NULL));
      FAILS(VPPS_ERR_ARGUMENT, "no graph", vpps_fb(o.handle, (vpps_graph *)junk, NULL, 0, NULL));
      for (int d = 0; d < KINDS; d++)
        refused(destroyers[d], (void *)junk, "no ");
    }
  CHECK(vpps_handle_trainer((vpps_handle *)o.graph) == NULL);
  CHECK(strstr(vpps_last_error(), "no handle") != NULL);
  work(m, o);
  vpps_handle_destroy(o.handle);
  vpps_trainer_destroy(o.trainer);
  vpps_graph_destroy(o.graph);
}

/* A number is never given out again, so its late destroyer hits nobody. */
static void of_old_numbers(Model m) {
  vpps_graph *old, *graph;
  CHECK(vpps_graph_create(m.engine, &old) == VPPS_OK);
  vpps_graph_destroy(old);
  for (int k = 0; k < 2000; k++) {
    CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
    CHECK(graph != old);
    refused(destroy_graph, old, "no graph");
    CHECK(vpps_graph_truncate(graph, 0) == VPPS_OK);
    vpps_graph_destroy(graph);
  }
}

/* A handle keeps its trainer. */
static void of_shared_trainers(Model m) {
  Objects o = make(m);
  vpps_handle *second, *own;
  vpps_trainer *trainer;
  float state[2];
  CHECK(vpps_handle_create(m.engine, &m.w, 1, o.trainer, &second) == VPPS_OK);
  CHECK(vpps_handle_trainer(o.handle) == o.trainer);
  vpps_trainer_destroy(o.trainer);
  FAILS(VPPS_ERR_ARGUMENT, "no trainer", vpps_trainer_restart(o.trainer));
  trainer = vpps_handle_trainer(o.handle);
  CHECK(trainer != NULL && trainer != o.trainer);
  CHECK(vpps_handle_trainer(second) == trainer);
  o.trainer = trainer;
  work(m, o);
  refused(destroy_trainer, trainer, "handle's");
  vpps_handle_destroy(o.handle);
  o.handle = second;
  work(m, o);
  CHECK(vpps_trainer_read_state(trainer, m.w, 2, state) == VPPS_OK);
  vpps_handle_destroy(second);
  FAILS(VPPS_ERR_ARGUMENT, "no trainer", vpps_trainer_restart(trainer));

  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &own) == VPPS_OK);
  trainer = vpps_handle_trainer(own);
  CHECK(trainer == vpps_handle_trainer(own));
  refused(destroy_trainer, trainer, "handle's");
  CHECK(vpps_trainer_restart(trainer) == VPPS_OK);
  /* Another handle with it keeps it, too. */
  CHECK(vpps_handle_create(m.engine, &m.w, 1, trainer, &second) == VPPS_OK);
  vpps_handle_destroy(own);
  CHECK(vpps_trainer_restart(trainer) == VPPS_OK);
  vpps_handle_destroy(second);
  FAILS(VPPS_ERR_ARGUMENT, "no trainer", vpps_trainer_restart(trainer));
  vpps_graph_destroy(o.graph);
}

/* ---- while a call of another thread uses it ------------------------------------------------- */

enum { LAYERS = 4000 };
static struct {
  Model model;
  vpps_graph *graph;
  uint32_t nodes[3 * LAYERS + 10];
  vpps_words words;
  vpps_status status;
  int began; /* atomic */
} slow;

static void record_slow(uint32_t w) {
  uint32_t *n = slow.nodes;
  static uint32_t x[2];
  *n++ = NODE(PARAMETER, 1), *n++ = w;
  for (uint32_t k = 0; k < LAYERS; k++)
    *n++ = NODE(TANH, 1), *n++ = k;
  slow.words.version = VPPS_WIRE_VERSION;
  slow.words.nodes = slow.nodes;
  slow.words.node_words = (size_t)(n - slow.nodes);
  slow.words.node_count = LAYERS + 1;
  slow.words.dims = model_dims;
  slow.words.dim_count = 2;
  slow.words.inputs = x;
}

static void *call_slowly(void *unused) {
  __atomic_store_n(&slow.began, 1, __ATOMIC_RELEASE);
  slow.status = vpps_forward(slow.graph, &slow.words, LAYERS, 1);
  return unused;
}

/* Who destroys a graph is early, too late, or is refused while the call goes on as if nothing was.
 */
static void of_running_calls(Model m) {
  int refusals = 0;
  slow.model = m;
  record_slow(m.w);
  for (int tries = 0; refusals < 3; tries++) {
    pthread_t thread;
    CHECK(tries < 1000);
    CHECK(vpps_graph_create(m.engine, &slow.graph) == VPPS_OK);
    CHECK(vpps_engine_open(NULL, NULL) == VPPS_ERR_ARGUMENT);
    slow.began = 0;
    CHECK(pthread_create(&thread, NULL, call_slowly, NULL) == 0);
    while (!__atomic_load_n(&slow.began, __ATOMIC_ACQUIRE))
      ;
    usleep((useconds_t)(tries % 10) * 100);
    vpps_graph_destroy(slow.graph);
    const int late = strstr(vpps_last_error(), "another thread") != NULL;
    CHECK(pthread_join(thread, NULL) == 0);
    if (late) {
      float v[2];
      refusals++;
      CHECK(slow.status == VPPS_OK);
      CHECK(vpps_value(slow.graph, NULL, 0, v, 2) == VPPS_OK && v[0] == 1 && v[1] == 2);
      vpps_graph_destroy(slow.graph);
    } else
      CHECK(slow.status == VPPS_OK || slow.status == VPPS_ERR_ARGUMENT);
    FAILS(VPPS_ERR_ARGUMENT, "no graph", vpps_graph_truncate(slow.graph, 0));
  }
  all_is_well(m);
}

/* Threads that destroy what others made, over and over, while others work. */
static struct {
  Model model;
  void *numbers[64]; /* atomic */
  int done;          /* atomic */
} crowd;

static void *destroy_others(void *seed) {
  uint32_t r = (uint32_t)(uintptr_t)seed;
  while (!__atomic_load_n(&crowd.done, __ATOMIC_RELAXED)) {
    r = r * 1664525u + 1013904223u;
    void *x = __atomic_load_n(&crowd.numbers[r >> 26], __ATOMIC_RELAXED);
    destroyers[1 + (r >> 10) % 3](x);
  }
  return NULL;
}

static void *work_alone(void *number) {
  for (int k = 0; k < 500; k++) {
    vpps_graph *before;
    Objects o;
    CHECK(vpps_graph_create(crowd.model.engine, &before) == VPPS_OK);
    vpps_graph_destroy(before);
    __atomic_store_n(&crowd.numbers[k & 63], before, __ATOMIC_RELAXED);
    all_is_well(crowd.model);
    if (k % 50 == 0) {
      o = make(crowd.model);
      work(crowd.model, o);
      vpps_trainer_destroy(o.trainer);
      vpps_handle_destroy(o.handle);
      vpps_graph_destroy(o.graph);
      __atomic_store_n(&crowd.numbers[1], o.trainer, __ATOMIC_RELAXED);
      __atomic_store_n(&crowd.numbers[2], o.handle, __ATOMIC_RELAXED);
    }
  }
  return number;
}

static void of_crowds(Model m) {
  pthread_t thread[4];
  crowd.model = m;
  for (uintptr_t k = 0; k < 4; k++)
    CHECK(pthread_create(&thread[k], NULL, k < 2 ? destroy_others : work_alone, (void *)k) == 0);
  CHECK(pthread_join(thread[2], NULL) == 0 && pthread_join(thread[3], NULL) == 0);
  __atomic_store_n(&crowd.done, 1, __ATOMIC_RELAXED);
  CHECK(pthread_join(thread[0], NULL) == 0 && pthread_join(thread[1], NULL) == 0);
  all_is_well(m);
}

/* What is left of a closed engine says so, and can be destroyed. */
static void of_a_closed_engine(Model m) {
  vpps_trainer_options rule = VPPS_TRAINER_OPTIONS_INIT;
  Objects o = make(m);
  uint64_t n;
  float v[2];
  Loss l;
  record_loss(&l, m.w, 3, 4);
  CHECK(vpps_value(o.graph, &l.words, 3, v, 1) == VPPS_OK);
  vpps_engine_close(m.engine);
  refused(close_engine, m.engine, "no engine");
  FAILS(VPPS_ERR_ARGUMENT, "no engine", vpps_engine_seed(m.engine, 1));
#define CLOSED(...) FAILS(VPPS_ERR_STATE, "the engine is closed", __VA_ARGS__)
  CLOSED(vpps_forward(o.graph, NULL, 3, 1));
  CLOSED(vpps_value(o.graph, NULL, 3, v, 1));
  CLOSED(vpps_backward(o.graph, NULL, 3, 0));
  CLOSED(vpps_node_gradients(o.graph, NULL, 3));
  CLOSED(vpps_gradient(o.graph, 3, v, 1));
  CLOSED(vpps_graph_truncate(o.graph, 0));
  CLOSED(vpps_graph_invalidate(o.graph, 0));
  rule.rule = VPPS_RULE_MOMENTUM;
  CLOSED(vpps_trainer_set(o.trainer, &rule));
  CLOSED(vpps_trainer_add(o.trainer, &m.w, 1));
  CLOSED(vpps_trainer_add(o.trainer, NULL, 0));
  CLOSED(vpps_trainer_restart(o.trainer));
  CLOSED(vpps_trainer_read_state(o.trainer, m.w, 2, v));
  CLOSED(vpps_trainer_write_state(o.trainer, m.w, 2, v));
  CLOSED(vpps_trainer_updates(o.trainer, &n));
  CLOSED(vpps_trainer_set_updates(o.trainer, 1));
  CLOSED(vpps_update(o.trainer, NULL));
  CLOSED(vpps_fb(o.handle, o.graph, NULL, 3, NULL));
  CLOSED(vpps_handle_keep(o.handle, o.graph, NULL, 0));
  CLOSED(vpps_sync_latest_loss(o.handle, v));
  CLOSED(vpps_handle_clips(o.handle, &n));
  CLOSED(vpps_plan_report(o.handle, NULL, 0, NULL));
  vpps_handle_destroy(o.handle);
  vpps_trainer_destroy(o.trainer);
  vpps_graph_destroy(o.graph);
  all_is_well(open_model());
}

int main(void) {
  Model m = open_model();
  alarm(120); /* nothing may wait for ever */
  of_the_wrong_type(m);
  of_junk(m);
  of_old_numbers(m);
  of_shared_trainers(m);
  of_running_calls(m);
  of_crowds(m);
  of_a_closed_engine(m);
  return 0;
}
