/// \file
/// AlignedMemoryPool: memory that is given piece by piece and taken back as a whole. The engine has
/// its own: Device::pools are for forward_impl and backward_impl of a program's own nodes.
#ifndef DYNET_ALIGNED_MEM_POOL_H
#define DYNET_ALIGNED_MEM_POOL_H

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "dynet/except.h"
#include "dynet/globals.h"
#include "dynet/mem.h"

namespace dynet {

/// Pieces of memory from an allocator, until free().
class AlignedMemoryPool {
public:
  /// An empty pool, which takes `initial` bytes at first and then at least `expanding` at a time.
  /// The allocator must outlive it. name counts for nothing.
  AlignedMemoryPool(const std::string &name, std::size_t initial, MemAllocator *allocator,
                    std::size_t expanding = 1 << 24);
  ~AlignedMemoryPool();
  /// n bytes at a multiple of the allocator's alignment. None left: dynet::out_of_memory.
  void *allocate(std::size_t n);
  /// Takes all pieces back. The pool keeps its memory.
  void free();
  /// Sets all pieces to 0.
  void zero_allocated_memory();
  /// How many bytes all pieces have.
  std::size_t used() const;
  /// How many bytes the pool has.
  std::size_t get_cap() const;

private:
  struct Block {
    char *memory;
    std::size_t size, used;
  };
  AlignedMemoryPool(const AlignedMemoryPool &);
  AlignedMemoryPool &operator=(const AlignedMemoryPool &);
  void grow(std::size_t size);
  void drop();

  MemAllocator *allocator_;
  std::size_t next_, expanding_;
  std::vector<Block> blocks_; // pieces come from the last
};

} // namespace dynet
#endif
