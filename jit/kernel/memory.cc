#ifndef _GNU_SOURCE
#define _GNU_SOURCE // mremap
#endif
#include "memory.h"
#include <stdlib.h>
#include <sys/mman.h>

// The address that calloc returned is kept in front of the lines.
void *vpps_alloc_lines(size_t n, size_t size) {
  const size_t line = 64;
  if (size && n > (SIZE_MAX - 2 * line) / size)
    return nullptr;
  char *all = (char *)calloc(n * size + 2 * line, 1);
  if (!all)
    return nullptr;
  char *lines = all + 2 * line - (uintptr_t)all % line;
  ((void **)lines)[-1] = all;
  return lines;
}

void vpps_free_lines(void *lines) {
  if (lines)
    free(((void **)lines)[-1]);
}

void *vpps_map(size_t bytes, uintptr_t near_address) {
  void *p = mmap((void *)near_address, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void *vpps_extend(void *map, size_t old_bytes, size_t bytes, int may_move) {
  void *p = mremap(map, old_bytes, bytes, may_move ? MREMAP_MAYMOVE : 0);
  return p == MAP_FAILED ? nullptr : p;
}

void vpps_unmap(void *map, size_t bytes) { munmap(map, bytes); }

int vpps_discard(void *pages, size_t bytes) { return madvise(pages, bytes, MADV_DONTNEED); }

int vpps_available(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return 0;
  munmap(p, bytes);
  return 1;
}
