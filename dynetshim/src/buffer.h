// A growable array of plain values that keeps its memory when emptied, so that
// recording one graph after another does not allocate.
#ifndef DYNETSHIM_BUFFER_H
#define DYNETSHIM_BUFFER_H

#include <cstddef>
#include <cstdlib>

#include "dynet/except.h"

namespace dynet {

template <class T> class Buffer {
public:
  Buffer() : data_(nullptr), size_(0), capacity_(0) {}
  ~Buffer() {
    std::free(data_);
    size_ = capacity_ = 0; // at exit, a static parameter may still look into a static buffer
  }
  // Room for n more: what is then appended cannot fail.
  T *room(size_t n) {
    if (size_ + n > capacity_)
      grow(size_ + n);
    return data_ + size_;
  }
  void took(size_t n) { size_ += n; }
  void push(const T &x) {
    *room(1) = x;
    ++size_;
  }
  void resize(size_t n) { size_ = n; } // smaller only
  size_t size() const { return size_; }
  T *data() { return data_; }
  const T *data() const { return data_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  T &back() { return data_[size_ - 1]; }

private:
  Buffer(const Buffer &);
  Buffer &operator=(const Buffer &);
  void grow(size_t wanted) {
    size_t capacity = capacity_ ? capacity_ * 2 : 256;
    while (capacity < wanted)
      capacity *= 2;
    void *data = std::realloc(data_, capacity * sizeof(T));
    if (data == nullptr)
      throw out_of_memory("no memory to record the graph: make it smaller, or free some");
    data_ = static_cast<T *>(data);
    capacity_ = capacity;
  }
  T *data_;
  size_t size_, capacity_;
};

} // namespace dynet
#endif
