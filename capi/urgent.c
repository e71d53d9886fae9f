/* SIGURG has two meanings: data out of band on a socket, and, sent by Go's runtime to one of its
 * threads, a wish that the goroutine there stops. Go takes all of them. A host that had a handler
 * keeps those that Go did not send. */
#include "enter.h"
#include <signal.h>
#include <unistd.h>

static struct sigaction host, go;

static void urgent(int signal, siginfo_t *info, void *context) {
  if (info->si_code == SI_TKILL && info->si_pid == getpid())
    go.sa_sigaction(signal, info, context);
  else if (host.sa_flags & SA_SIGINFO)
    host.sa_sigaction(signal, info, context);
  else
    host.sa_handler(signal);
}

void vpps_before_go(void) { sigaction(SIGURG, NULL, &host); }

void vpps_after_go(void) {
  if (!(host.sa_flags & SA_SIGINFO) && (host.sa_handler == SIG_DFL || host.sa_handler == SIG_IGN))
    return;
  sigaction(SIGURG, NULL, &go);
  struct sigaction both = go;
  both.sa_sigaction = urgent;
  sigaction(SIGURG, &both, NULL);
}
