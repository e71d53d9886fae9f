package env

/*
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Writes a line to standard error. Where nobody reads that, the signal goes no further.
static void vpps_say(const char *line) {
  sigset_t pipe, before, pending;
  struct timespec now = {0, 0};
  int mine;
  sigpending(&pending);
  mine = !sigismember(&pending, SIGPIPE);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  if (write(2, line, strlen(line)) < 0 && mine)
    while (sigtimedwait(&pipe, 0, &now) > 0) {
    }
  pthread_sigmask(SIG_SETMASK, &before, 0);
}
*/
import "C"

import (
	"sync"
	"unsafe"
)

var said sync.Map // of lines

// Warn says on standard error what Problems are, each once.
func Warn() {
	for _, line := range Problems() {
		if _, before := said.LoadOrStore(line, true); !before {
			Say(line)
		}
	}
}

// Say writes a line to standard error.
func Say(line string) {
	text := append([]byte(line), '\n', 0)
	C.vpps_say((*C.char)(unsafe.Pointer(&text[0])))
}
