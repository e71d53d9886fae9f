#define _GNU_SOURCE
#include "load_mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(hidden)

static vpps_mpi_start_function *start;
static vpps_mpi_exchange_function *exchange;
static vpps_mpi_tell_function *tell;

/* Next to this library, then where the linker looks. */
static void *find(int flags) {
  char path[4096];
  Dl_info me;
  const char *slash =
      dladdr((void *)&start, &me) && me.dli_fname ? strrchr(me.dli_fname, '/') : NULL;
  void *so = NULL;
  if (slash && (size_t)snprintf(path, sizeof path, "%.*s/libvpps_mpi.so",
                                (int)(slash - me.dli_fname), me.dli_fname) < sizeof path)
    so = dlopen(path, flags);
  return so ? so : dlopen("libvpps_mpi.so", flags);
}

static void *open_plug_in(const char *file, int flags, vpps_mpi_version_function **version,
                          char *text, size_t size) {
  void *so = *file ? dlopen(file, flags) : find(flags);
  if (!so) {
    snprintf(text, size, "%s", dlerror());
    return NULL;
  }
  *(void **)version = dlsym(so, "vpps_mpi_version");
  if (*version && (*version)() == VPPS_MPI_VERSION && dlsym(so, "vpps_mpi_start") &&
      dlsym(so, "vpps_mpi_exchange") && dlsym(so, "vpps_mpi_tell"))
    return so;
  snprintf(text, size, "%s is of another version of libvpps", *file ? file : "libvpps_mpi.so");
  dlclose(so);
  return NULL;
}

int vpps_load_mpi(const char *file, char *text, size_t size) {
  vpps_mpi_version_function *version;
  /* Open MPI's components look for its symbols among those that all may use. */
  void *so = open_plug_in(file, RTLD_NOW | RTLD_GLOBAL, &version, text, size);
  if (!so)
    return -1;
  *(void **)&start = dlsym(so, "vpps_mpi_start");
  *(void **)&exchange = dlsym(so, "vpps_mpi_exchange");
  *(void **)&tell = dlsym(so, "vpps_mpi_tell");
  return 0;
}

int vpps_find_mpi(const char *file, char *text, size_t size) {
  enum { LONGEST = 8192 }; /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING; others have less */
  vpps_mpi_version_function *version;
  void *so = open_plug_in(file, RTLD_NOW | RTLD_LOCAL, &version, text, size);
  if (!so)
    return -1;
  int (*describe)(char *, int *), n = 0;
  char *library = calloc(1, LONGEST);
  Dl_info where = {0};
  *(void **)&describe = dlsym(so, "MPI_Get_library_version"); /* allowed before MPI_Init */
  if (!library || !describe || describe(library, &n))
    n = 0;
  dladdr((void *)version, &where);
  snprintf(text, size, "%s\n%.*s", where.dli_fname ? where.dli_fname : "libvpps_mpi.so", n,
           library ? library : "");
  free(library);
  dlclose(so);
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
