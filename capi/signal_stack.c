/* Go code runs on small stacks of its own, even on a thread of the host's: a signal that arrives
 * meanwhile needs the thread's alternate stack. Go sees to one when a thread calls for the first
 * time only, and the host may turn it off later, as Boost.Test does between test cases. So each
 * call looks, and a thread that has none gets one and keeps it until it ends. A signal between two
 * calls needs none: it meets the host's code on the host's stack. */
#include "enter.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { STACK_SIZE = 64 << 10 };
static pthread_key_t stacks;

static void end_of_thread(void *stack) {
  stack_t now, none = {.ss_flags = SS_DISABLE};
  if (sigaltstack(NULL, &now) || (now.ss_sp == stack && sigaltstack(&none, NULL)))
    return; /* the thread ends in a signal handler, on this stack */
  free(stack);
}
__attribute__((constructor)) static void make_key(void) {
  pthread_key_create(&stacks, end_of_thread);
}

static void *stack_of_thread(void) {
  void *stack = pthread_getspecific(stacks);
  if (!stack && (stack = malloc(STACK_SIZE)) && pthread_setspecific(stacks, stack)) {
    free(stack);
    stack = NULL;
  }
  return stack;
}

int vpps_signal_stack(void) {
  stack_t now;
  if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
    return 0;
  now = (stack_t){.ss_sp = stack_of_thread(), .ss_size = STACK_SIZE};
  return now.ss_sp ? sigaltstack(&now, NULL) : -1;
}
