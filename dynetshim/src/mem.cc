// Allocators of host memory.
#include "dynet/mem.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "dynet/except.h"

namespace dynet {

namespace {
[[noreturn]] void none_left(std::size_t n) {
  throw out_of_memory("no memory for " + std::to_string(n) + " bytes: use less, or free some");
}
} // namespace

MemAllocator::~MemAllocator() {}

void *CPUAllocator::malloc(std::size_t n) {
  void *p = nullptr;
  if (posix_memalign(&p, static_cast<std::size_t>(align), n) != 0)
    none_left(n);
  return p;
}

void CPUAllocator::free(void *mem) { std::free(mem); }
void CPUAllocator::zero(void *p, std::size_t n) { std::memset(p, 0, n); }

void *SharedAllocator::malloc(std::size_t n) {
  void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
  if (p == MAP_FAILED)
    none_left(n);
  return p;
}

void SharedAllocator::free(void *) {}
void SharedAllocator::zero(void *p, std::size_t n) { std::memset(p, 0, n); }

} // namespace dynet
