// Allocators and pools of host memory.
#include "dynet/mem.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "dynet/aligned-mem-pool.h"
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

AlignedMemoryPool::AlignedMemoryPool(const std::string &, std::size_t initial,
                                     MemAllocator *allocator, std::size_t expanding)
    : allocator_(allocator), next_(initial), expanding_(expanding) {}

AlignedMemoryPool::~AlignedMemoryPool() { drop(); }

void AlignedMemoryPool::drop() {
  for (const Block &b : blocks_)
    allocator_->free(b.memory);
  blocks_.clear();
}

void AlignedMemoryPool::grow(std::size_t size) {
  blocks_.reserve(blocks_.size() + 1);
  const Block b = {static_cast<char *>(allocator_->malloc(size)), size, 0};
  blocks_.push_back(b);
  next_ = expanding_;
}

void *AlignedMemoryPool::allocate(std::size_t n) {
  n = allocator_->round_up_align(n);
  if (blocks_.empty() || blocks_.back().size - blocks_.back().used < n)
    grow(std::max(n, next_));
  Block &b = blocks_.back();
  b.used += n;
  return b.memory + b.used - n;
}

void AlignedMemoryPool::free() {
  if (blocks_.size() > 1) { // one that is large enough for all
    next_ = get_cap();
    drop();
  }
  for (Block &b : blocks_)
    b.used = 0;
}

void AlignedMemoryPool::zero_allocated_memory() {
  for (const Block &b : blocks_)
    allocator_->zero(b.memory, b.used);
}

std::size_t AlignedMemoryPool::used() const {
  std::size_t sum = 0;
  for (const Block &b : blocks_)
    sum += b.used;
  return sum;
}

std::size_t AlignedMemoryPool::get_cap() const {
  std::size_t sum = 0;
  for (const Block &b : blocks_)
    sum += b.size;
  return sum;
}

} // namespace dynet
