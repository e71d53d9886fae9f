/* Runs the program again, as another process with another environment: what the library reads at
 * its first call cannot be changed later. */
#ifndef AGAIN_H
#define AGAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status, or 128 and the signal that ended it. */
static inline int again_status(const char *program, const char *task, const char *variable,
                               const char *value) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    setenv(variable, value, 1);
    alarm(120); /* instead of hanging */
    execl("/proc/self/exe", program, task, (char *)NULL);
    _exit(126);
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* It must exit with 0. */
static inline void again(const char *program, const char *task, const char *variable,
                         const char *value) {
  int status = again_status(program, task, variable, value);
  if (status != 0) {
    fprintf(stderr, "%s %s with %s=%s: exit status %d\n", program, task, variable, value, status);
    exit(1);
  }
}

#endif
