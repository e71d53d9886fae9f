/* Random calls of every function of vpps.h from several threads: with live objects, destroyed ones,
 * those of other engines and junk; with arguments that are right, NULL, 0, huge or NaN; over small
 * graphs that are mostly right. No call may crash, hang, return a status that is none or
 * VPPS_ERR_INTERNAL, or fail without a text of one line. Sums that are known come out right. In the
 * first part, of one thread, everything that can be read is read before and after each call: if it
 * failed, all is as before, bit by bit.
 *
 * calls [--seconds N] [--calls N] [--threads N] [--seed N] [--device NAME]
 * The first part takes a fifth of the seconds; --threads 1 is this part alone. */
#include "everything.h"
#include "functions.h"

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
    const int status = once(t), failed = status != VPPS_OK;
    fresh = failed;
    /* vpps_fb() tells it if the weight decay is multiplied into the values, for which it waits. */
    const int told = status == VPPS_ERR_NUMERIC && t->function == FN_fb;
    const int batch_failed = settle() || told;
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
