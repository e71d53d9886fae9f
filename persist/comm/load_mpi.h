/* The plug-in for MPI, once it is loaded. */
#ifndef VPPS_LOAD_MPI_H
#define VPPS_LOAD_MPI_H

#include "vpps_mpi.h"

/* Loads the plug-in: a file, or "" for libvpps_mpi.so. Returns 0, or -1 and why not in text. */
int vpps_load_mpi(const char *file, char *text, size_t size);

/* The same, but only tells the file and the MPI that it takes, a line or more each. */
int vpps_find_mpi(const char *file, char *text, size_t size);

/* The plug-in's functions, as in vpps_mpi.h. */
int vpps_mpi_begin(int *rank, int *size, char *text, size_t size_of_text);
int vpps_mpi_move(vpps_mpi_message *messages, size_t n, double seconds, const int *stop, char *text,
                  size_t size);
void vpps_mpi_say(const char *text);

/* Has an exchange that runs end. */
void vpps_mpi_stop(int *stop);

#endif
