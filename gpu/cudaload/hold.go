package cudaload

// The end of a process waits for the compiler: its destructors would take NVRTC's memory from a thread that still works in it.

/*
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int held;
static pid_t waits; // the process that waits at its end; one that it forks has no such threads

static void change_held(int by) {
	pthread_mutex_lock(&held_lock);
	held += by;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&held_lock);
}

static void wait_for_released(void) {
	if (getpid() != waits)
		return;
	pthread_mutex_lock(&held_lock);
	while (held > 0)
		pthread_cond_wait(&released, &held_lock);
	pthread_mutex_unlock(&held_lock);
}

static int wait_at_exit(void) {
	pthread_mutex_lock(&held_lock);
	int known = waits == getpid();
	waits = getpid();
	pthread_mutex_unlock(&held_lock);
	return known ? 0 : atexit(wait_for_released);
}
*/
import "C"

import "sync"

// Hold has the process not end until release is called, from WaitAtExit on.
func Hold() (release func()) {
	C.change_held(1)
	return sync.OnceFunc(func() { C.change_held(-1) })
}

// WaitAtExit has the process wait at its end for all that is held. Handlers run in reverse order, so it is called after a first
// compilation, by which NVRTC has registered its own.
func WaitAtExit() { C.wait_at_exit() }
