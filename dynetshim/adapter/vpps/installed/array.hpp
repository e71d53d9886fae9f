// A growable array of plain values that keeps its memory when emptied.
#ifndef VPPS_INSTALLED_ARRAY_HPP
#define VPPS_INSTALLED_ARRAY_HPP

#include <cstddef>
#include <cstdlib>
#include <new>

namespace vpps {
namespace installed {

template <class T> class array {
public:
  array() : data_(nullptr), size_(0), capacity_(0) {}
  ~array() { std::free(data_); }
  // Appends n values and returns where they are, to be written.
  T *add(size_t n) {
    if (size_ + n > capacity_)
      grow(size_ + n);
    size_ += n;
    return data_ + size_ - n;
  }
  void push(const T &x) { *add(1) = x; }
  void resize(size_t n) { size_ = n; } // smaller only
  size_t size() const { return size_; }
  T *data() { return data_; }
  const T *data() const { return data_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }

private:
  array(const array &);
  array &operator=(const array &);
  void grow(size_t wanted) {
    size_t capacity = capacity_ ? capacity_ * 2 : 256;
    while (capacity < wanted)
      capacity *= 2;
    void *data = std::realloc(data_, capacity * sizeof(T));
    if (data == nullptr)
      throw std::bad_alloc();
    data_ = static_cast<T *>(data);
    capacity_ = capacity;
  }
  T *data_;
  size_t size_, capacity_;
};

} // namespace installed
} // namespace vpps
#endif
