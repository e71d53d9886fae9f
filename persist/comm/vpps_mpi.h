/* What libvpps asks of libvpps_mpi.so, a plug-in that is compiled against the installed mpi.h: the
 * ABIs of MPI libraries differ. It moves words from rank to rank. persist/comm does the rest. */
#ifndef VPPS_MPI_H
#define VPPS_MPI_H

#include <stddef.h>
#include <stdint.h>

/* Of these declarations. */
enum { VPPS_MPI_VERSION = 1 };

/* What became of an exchange. */
enum {
  VPPS_MPI_DONE = 0,
  VPPS_MPI_LATE = 1,    /* some messages did not arrive in time */
  VPPS_MPI_TOLD = 2,    /* another rank has told why the group ends, in text */
  VPPS_MPI_STOPPED = 3, /* this rank has */
  VPPS_MPI_FAILED = 4   /* an error of MPI, in text */
};

/* A message of at most 2^31 - 1 words. Its memory belongs to the exchange until that is done: an
 * exchange that ends otherwise leaves messages that may still be under way. */
typedef struct vpps_mpi_message {
  uint32_t *words;
  int count, peer;
  int receive; /* else it is sent */
  int done;    /* after the exchange */
} vpps_mpi_message;

typedef int vpps_mpi_version_function(void);
/* Joins the program's MPI world, which it starts if the program has not. */
typedef int vpps_mpi_start_function(int *rank, int *size, char *text, size_t size_of_text);
/* Moves n messages. seconds: until they are late. stop: becomes other than 0 if this rank aborts.
 */
typedef int vpps_mpi_exchange_function(vpps_mpi_message *messages, size_t n, double seconds,
                                       const int *stop, char *text, size_t size_of_text);
/* Tells all other ranks why the group ends. Does not wait for them. */
typedef void vpps_mpi_tell_function(const char *text);

#endif
