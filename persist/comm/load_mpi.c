#define _GNU_SOURCE
#include "load_mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#pragma GCC visibility push(hidden)

static vpps_mpi_start_function *start;
static vpps_mpi_exchange_function *exchange;
static vpps_mpi_tell_function *tell;

/* Open MPI's components look for its symbols among those that all may use. */
static void *open_file(const char *file) { return dlopen(file, RTLD_NOW | RTLD_GLOBAL); }

/* Next to this library, then where the linker looks. */
static void *find(void) {
  char path[4096];
  Dl_info me;
  const char *slash =
      dladdr((void *)&start, &me) && me.dli_fname ? strrchr(me.dli_fname, '/') : NULL;
  void *so = NULL;
  if (slash && (size_t)snprintf(path, sizeof path, "%.*s/libvpps_mpi.so",
                                (int)(slash - me.dli_fname), me.dli_fname) < sizeof path)
    so = open_file(path);
  return so ? so : open_file("libvpps_mpi.so");
}

int vpps_load_mpi(const char *file, char *text, size_t size) {
  void *so = *file ? open_file(file) : find();
  if (!so) {
    snprintf(text, size, "%s", dlerror());
    return -1;
  }
  vpps_mpi_version_function *version;
  *(void **)&version = dlsym(so, "vpps_mpi_version");
  *(void **)&start = dlsym(so, "vpps_mpi_start");
  *(void **)&exchange = dlsym(so, "vpps_mpi_exchange");
  *(void **)&tell = dlsym(so, "vpps_mpi_tell");
  if (!version || !start || !exchange || !tell || version() != VPPS_MPI_VERSION) {
    snprintf(text, size, "%s is of another version of libvpps", *file ? file : "libvpps_mpi.so");
    return -1;
  }
  return 0;
}

int vpps_mpi_begin(int *rank, int *size, char *text, size_t size_of_text) {
  return start(rank, size, text, size_of_text);
}

int vpps_mpi_move(vpps_mpi_message *messages, size_t n, double seconds, const int *stop, char *text,
                  size_t size) {
  return exchange(messages, n, seconds, stop, text, size);
}

void vpps_mpi_say(const char *text) { tell(text); }

void vpps_mpi_stop(int *stop) { __atomic_store_n(stop, 1, __ATOMIC_RELAXED); }
