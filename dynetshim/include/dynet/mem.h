/// \file
/// Allocators of host memory. The engine has its own: these are for programs that use DyNet's.
#ifndef DYNET_MEM_H
#define DYNET_MEM_H

#include <cstddef>
#include <vector>

namespace dynet {

/// The interface of allocators.
struct MemAllocator {
  /// For memory at multiples of alignment bytes.
  explicit MemAllocator(int alignment) : align(alignment) {}
  virtual ~MemAllocator();
  /// n bytes, to be given to free(). None left: dynet::out_of_memory.
  virtual void *malloc(std::size_t n) = 0;
  /// Frees what malloc() gave.
  virtual void free(void *mem) = 0;
  /// Sets n bytes to 0.
  virtual void zero(void *p, std::size_t n) = 0;
  /// n, or the next multiple of the alignment.
  std::size_t round_up_align(std::size_t n) const {
    const std::size_t a = static_cast<std::size_t>(align);
    return align < 2 ? n : (n + a - 1) / a * a;
  }
  const int align; ///< bytes

private:
  MemAllocator(const MemAllocator &);
  MemAllocator &operator=(const MemAllocator &);
};

/// Memory of this process at multiples of 32 bytes.
struct CPUAllocator : public MemAllocator {
  CPUAllocator() : MemAllocator(32) {}
  void *malloc(std::size_t n) override;
  void free(void *mem) override;
  void zero(void *p, std::size_t n) override;
};

/// Memory that processes forked later share. free() gives nothing back, as in DyNet.
struct SharedAllocator : public MemAllocator {
  SharedAllocator() : MemAllocator(32) {}
  void *malloc(std::size_t n) override;
  void free(void *mem) override;
  void zero(void *p, std::size_t n) override;
};

} // namespace dynet
#endif
