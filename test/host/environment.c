/* What is malformed or unknown in the environment is said once, a malformed device is an error, and
 * a process with more rights than its user reads nothing of it. */
#define LOADED_BY_HAND
#include "again.h"
#include "host.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

/* What is written to standard error meanwhile. */
static char said[4096];
static int saved, caught[2];
static void listen_to_stderr(void) {
  CHECK(pipe(caught) == 0);
  saved = dup(2);
  dup2(caught[1], 2);
}
static void stop_listening(void) {
  ssize_t n;
  dup2(saved, 2);
  close(caught[1]);
  n = read(caught[0], said, sizeof said - 1);
  said[n < 0 ? 0 : n] = 0;
}

static void open_twice(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  int k;
  options.device = "cpu";
  listen_to_stderr();
  for (k = 0; k < 2; k++) {
    if (vpps_engine_open(&options, &engine) != VPPS_OK)
      _exit(2);
    vpps_engine_close(engine);
  }
  stop_listening();
}

/* Nobody reads standard error: the process goes on. */
static void nobody_reads(void) {
  vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
  vpps_engine *engine;
  CHECK(pipe(caught) == 0);
  dup2(caught[1], 2);
  close(caught[0]);
  close(caught[1]);
  options.device = "cpu";
  if (vpps_engine_open(&options, &engine) != VPPS_OK)
    _exit(3);
}

static int times(const char *text) {
  int n = 0;
  const char *at = said;
  while ((at = strstr(at, text)) != NULL)
    n++, at++;
  return n;
}

static void setuid_copy(const char *library) {
  char dir[] = "/tmp/vpps-environment-XXXXXX", program[64], command[256];
  int status;
  if (geteuid() != 0) {
    puts("skipped: needs root");
    exit(77);
  }
  CHECK(mkdtemp(dir) != NULL && chmod(dir, 0755) == 0);
  snprintf(program, sizeof program, "%s/program", dir);
  snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), program);
  CHECK(system(command) == 0);
  CHECK(chown(program, 65534, (gid_t)-1) == 0 && chmod(program, 04755) == 0);
  setenv("VPPS_THREADS", "three", 1);
  setenv("VPPS_PLAN", "nonsense", 1);
  if (fork() == 0) {
    execl(program, program, "privileged", library, (char *)NULL);
    _exit(126);
  }
  CHECK(wait(&status) > 0);
  snprintf(command, sizeof command, "rm -r %s", dir);
  CHECK(system(command) == 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    puts("skipped: needs a /tmp where setuid programs have their rights");
    exit(77);
  }
  CHECK(status == 0);
}

int main(int argc, char **argv) {
  struct link_map *map;
  const char *file = argc > 2 ? argv[2] : getenv("LIBVPPS");
  void *library;
  char path[4096];
  if (file == NULL) { /* beside the folder of this program */
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    CHECK(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/../libvpps.so");
    file = path;
  }
  library = dlopen(file, RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  CHECK(find_functions(library) && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  if (argc > 1 && strcmp(argv[1], "malformed") == 0) {
    open_twice();
    CHECK(times("VPPS_THREADS=abc") == 1 && times("whole number from 1") == 1);
  } else if (argc > 1 && strcmp(argv[1], "unknown") == 0) {
    open_twice();
    CHECK(times("VPPS_THREAD: did you mean VPPS_THREADS?") == 1);
  } else if (argc > 1 && strcmp(argv[1], "device") == 0) {
    vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
    vpps_engine *engine;
    FAILS(VPPS_ERR_ARGUMENT, "VPPS_DEVICE=gpu: write cpu, cuda",
          vpps_engine_open(&options, &engine));
    options.device = "auto";
    FAILS(VPPS_ERR_ARGUMENT, "VPPS_DEVICE=gpu", vpps_engine_open(&options, &engine));
    options.device = "cpu"; /* the program's choice */
    CHECK(vpps_engine_open(&options, &engine) == VPPS_OK);
  } else if (argc > 1 && strcmp(argv[1], "plan") == 0) {
    vpps_engine_options options = VPPS_ENGINE_OPTIONS_INIT;
    vpps_engine *engine;
    options.device = "cpu";
    FAILS(VPPS_ERR_ARGUMENT, "\"nonsense\" is unknown", vpps_engine_open(&options, &engine));
  } else if (argc > 1 && strcmp(argv[1], "unread") == 0) {
    nobody_reads();
  } else if (argc > 1 && strcmp(argv[1], "privileged") == 0) {
    if (getuid() == geteuid())
      return 77;
    open_twice();
    CHECK(said[0] == 0);
  } else {
    again(argv[0], "malformed", "VPPS_THREADS", "abc");
    again(argv[0], "unknown", "VPPS_THREAD", "4");
    again(argv[0], "unread", "VPPS_THREADS", "abc");
    again(argv[0], "device", "VPPS_DEVICE", "gpu");
    again(argv[0], "plan", "VPPS_PLAN", "nonsense");
    setuid_copy(map->l_name);
  }
  return 0;
}
