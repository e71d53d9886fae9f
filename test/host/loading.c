/* The library is loaded, closed and loaded again, while signal handlers that the host installed
 * before stay in place; and a process that has just started batches exits as it likes. This
 * program is not linked to the library. */
#define LOADED_BY_HAND
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include "host.h"

static volatile sig_atomic_t usr1;
static sigjmp_buf back;
static int *volatile nowhere;

static void count(int signal) {
  (void)signal;
  usr1++;
}
static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

#define HOLDS(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #condition);                         \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    fprintf(stderr, "%s\n", dlerror());
  HOLDS(library != NULL);
  HOLDS(find_functions(library));
  return library;
}

/* Starts batches and exits with them in flight, by exit or by return from main. */
static void start_and_leave(const char *path, int batches) {
  load(path);
  Model m = open_model();
  vpps_handle *handle;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  for (int k = 0; k < batches; k++) {
    vpps_graph *graph;
    Loss l;
    float stale;
    CHECK(vpps_graph_create(m.engine, &graph) == VPPS_OK);
    record_loss(&l, m.w, 1, 1);
    CHECK(vpps_fb(handle, graph, &l.words, 3, &stale) == VPPS_OK);
    vpps_graph_destroy(graph);
  }
  exit(0);
}

static void exits_in_flight(const char *path) {
  for (int batches = 1; batches <= 3; batches++) {
    int status = -1;
    pid_t child = fork(); /* before the library is loaded: allowed */
    if (child == 0)
      start_and_leave(path, batches);
    HOLDS(waitpid(child, &status, 0) == child);
    HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static void install_handlers(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = count;
  HOLDS(sigaction(SIGUSR1, &a, NULL) == 0);
  a.sa_handler = jump;
  HOLDS(sigaction(SIGSEGV, &a, NULL) == 0);
}

static void handlers_work(void) {
  int before = usr1;
  raise(SIGUSR1);
  HOLDS(usr1 == before + 1);
  if (sigsetjmp(back, 1) == 0) {
    *nowhere = 1;
    HOLDS(!"the fault was not noticed");
  }
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "libvpps.so";
  exits_in_flight(path);
  install_handlers();
  handlers_work();
  void *library = load(path);
  Model m = open_model();
  all_is_well(m);
  handlers_work();
  HOLDS(dlclose(library) == 0);
  handlers_work();
  load(path);
  all_is_well(m); /* it is where it was */
  all_is_well(open_model());
  handlers_work();
  return 0;
}
