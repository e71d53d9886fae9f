/* A process ends while batches are on their way, in every way that processes end: at once, without
 * a crash or a hang, and with the status that it chose. */
#include "again.h"
#include "host.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { CHAIN = 3000 };

static atomic_int handed_over;

/* Near the process's end the driver refuses what a thread still asks for; the thread must not end
 * the process in its own way then. */
#define UNLESS_LEAVING(call)                                                                       \
  while ((call) != VPPS_OK) {                                                                      \
    CHECK(atomic_load(&handed_over));                                                              \
    pause();                                                                                       \
  }

/* loss = sum(tanh(... tanh(w * x) ...)), which takes the device a while. */
static void start_batches(int batches) {
  static uint32_t nodes[7 + 2 * CHAIN + 2];
  Model m = open_model();
  vpps_handle *handle;
  Loss l;
  uint32_t n = 3, at = 7;
  record_loss(&l, m.w, 1, 1);
  memcpy(nodes, l.nodes, 7 * sizeof *nodes);
  for (; n < 3 + CHAIN; n++) {
    nodes[at++] = NODE(TANH, 1);
    nodes[at++] = n - 1;
  }
  nodes[at++] = NODE(SUM_ELEMENTS, 0);
  nodes[at++] = n - 1;
  l.words.nodes = nodes;
  l.words.node_words = at;
  l.words.node_count = n + 1;
  CHECK(vpps_handle_create(m.engine, &m.w, 1, NULL, &handle) == VPPS_OK);
  for (int k = 0; k < batches; k++) {
    vpps_graph *graph;
    UNLESS_LEAVING(vpps_graph_create(m.engine, &graph));
    UNLESS_LEAVING(vpps_fb(handle, graph, &l.words, n, NULL));
    atomic_store(&handed_over, 1);
  }
}

static void *start_many(void *unused) {
  start_batches(1000000);
  return unused;
}

static void leave(int status) { exit(status); }
static void say_so(void) { fflush(stdout); }

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  struct timespec nap = {0, 10000000};
  pthread_t thread;
  if (strcmp(how, "return") == 0) {
    start_batches(3);
    return 5;
  } else if (strcmp(how, "exit") == 0) {
    atexit(say_so);
    start_batches(2);
    leave(5);
  } else if (strcmp(how, "at once") == 0) {
    start_batches(2);
    _exit(5);
  } else if (strcmp(how, "another thread is inside") == 0) {
    CHECK(pthread_create(&thread, NULL, start_many, NULL) == 0);
    while (!atomic_load(&handed_over))
      nanosleep(&nap, NULL);
    nanosleep(&nap, NULL);
    exit(5);
  } else if (strcmp(how, "terminated") == 0) {
    start_batches(2);
    kill(getpid(), SIGTERM);
    pause();
  }
  CHECK(again_status(argv[0], "return", "IN_FLIGHT", "1") == 5);
  CHECK(again_status(argv[0], "exit", "IN_FLIGHT", "1") == 5);
  CHECK(again_status(argv[0], "at once", "IN_FLIGHT", "1") == 5);
  CHECK(again_status(argv[0], "another thread is inside", "IN_FLIGHT", "1") == 5);
  CHECK(again_status(argv[0], "terminated", "IN_FLIGHT", "1") == 128 + SIGTERM);
  return 0;
}
