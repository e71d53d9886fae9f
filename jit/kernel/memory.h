// Memory of the host that libvpps itself takes: calloc, and mappings that grow. All of it is made
// here, so that a test can have any of these fail.
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

// n elements that are 0, aligned to a line of the cache; vpps_free_lines frees them. NULL: there is
// no memory.
void *vpps_alloc_lines(size_t n, size_t size);
void vpps_free_lines(void *lines);

// Maps bytes that are 0, at the address near if nobody is there. NULL: there is no address space.
void *vpps_map(size_t bytes, uintptr_t near_address);
// Makes a mapping larger, where it is if that can be, else elsewhere if it may move. NULL: it stays
// as it was.
void *vpps_extend(void *map, size_t old_bytes, size_t bytes, int may_move);
void vpps_unmap(void *map, size_t bytes);
// Makes whole pages of a mapping 0 by giving them back to the system. Not 0: it refused, nothing
// has changed.
int vpps_discard(void *pages, size_t bytes);

// Whether bytes bytes could be mapped now, by the limits of the process and the system's.
int vpps_available(size_t bytes);

#ifdef __cplusplus
}
#endif
