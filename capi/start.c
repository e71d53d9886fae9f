/* Go's runtime starts at the first call of libvpps, not when the library is loaded. Go's linker
 * lists the function that starts it in .init_array, for the loader to call; packaging/start.ld
 * takes that entry out and names it vpps_go_start. A process that forks before its first call has
 * no threads of Go yet, so the child may use the library. Linked without that script, by a plain
 * "go build", the library starts Go while it is loaded. */
#include "enter.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

typedef void start_function(int argc, char **argv, char **envp);
extern start_function *const vpps_go_start[] __attribute__((weak, visibility("hidden")));
extern char **environ;

static int started, running, forked; /* started: Go has, or may have, threads */

static void in_child(void) { forked = __atomic_load_n(&started, __ATOMIC_RELAXED); }
__attribute__((constructor)) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, in_child);
  started = running = vpps_go_start == NULL;
}

int vpps_forked(void) { return forked; }

/* What the kernel leaves on a new process's stack, where Go looks for it: arguments, environment
 * and auxiliary vector, each ended by zeros. The environment is that of now. Go keeps the
 * addresses, so the block is never freed. NULL if there is no memory. */
enum { ARGUMENTS = 2, AUXILIARY = 64 };
static char **process_block(void) {
  size_t n = 0, bytes = 0;
  for (char **e = environ; e && *e; e++, n++)
    bytes += strlen(*e) + 1;
  char **block = calloc(1, sizeof *block * (ARGUMENTS + n + 1 + 2 * AUXILIARY) + bytes);
  if (!block)
    return NULL;
  char *text = (char *)(block + ARGUMENTS + n + 1 + 2 * AUXILIARY);
  block[0] = "libvpps";
  for (size_t i = 0; i < n; i++) {
    block[ARGUMENTS + i] = text;
    text = stpcpy(text, environ[i]) + 1;
  }
  uintptr_t *pair = (uintptr_t *)(block + ARGUMENTS + n + 1);
  for (uintptr_t type = 1; type < AUXILIARY; type++) {
    errno = 0;
    unsigned long value = getauxval(type);
    if (value || errno == 0) {
      *pair++ = type;
      *pair++ = value;
    }
  }
  return block;
}

/* Go's threads inherit the signals that are blocked here: a signal of the host's is delivered to
 * the host's threads, never to one of Go's. */
static int start(void) {
  sigset_t all, before;
  char **block = process_block();
  if (!block)
    return -1;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  __atomic_store_n(&started, 1, __ATOMIC_RELAXED);
  vpps_before_go();
  vpps_go_start[0](1, block, block + ARGUMENTS);
  vpps_after_go();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return 0;
}

int vpps_start_go(void) {
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  if (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
    return 0;
  pthread_mutex_lock(&one_at_a_time);
  if (!running && start() == 0)
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&one_at_a_time);
  return running ? 0 : -1;
}
