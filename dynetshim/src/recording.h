// Functions that record: input words, indices, and nodes of one or two arguments. Expression
// functions are made of them.
#ifndef DYNETSHIM_RECORDING_H
#define DYNETSHIM_RECORDING_H

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynet/expr.h"

#include "recorder.h"

namespace dynet {

typedef const std::initializer_list<Expression> &List;
typedef const std::vector<Expression> &Vector;

template <class T> const T *given(const T *p, const char *what) {
  if (p == nullptr)
    throw std::invalid_argument(std::string(what) + ": the pointer is null");
  return p;
}

// Input words of one node: reserved first, so that appending them after the node was
// recorded cannot fail.
inline uint32_t inputs_at(size_t n) {
  recorder.inputs.room(n);
  recorder.patches.room(1);
  recorder.awaits_inputs = true;
  return static_cast<uint32_t>(recorder.inputs.size());
}

inline void copy_inputs(const void *from, size_t n) {
  if (n == 0)
    return;
  std::memcpy(recorder.inputs.room(n), from, n * sizeof(uint32_t));
  recorder.inputs.took(n);
}

inline Expression append(const Expression &e, const void *from, size_t n) {
  copy_inputs(from, n);
  recorder.inputs_complete(e);
  return e;
}

// The words are there but get their values in the call that evaluates the node.
inline void append_words_later(const Expression &e, uint32_t kind, const void *from, size_t n) {
  Patch p = {from, kind, e.i, static_cast<uint32_t>(recorder.inputs.size()),
             static_cast<uint32_t>(n)};
  std::memset(recorder.inputs.room(n), 0, n * sizeof(uint32_t));
  recorder.inputs.took(n);
  recorder.patches.push(p);
}

inline Expression append_later(const Expression &e, uint32_t kind, const void *from, size_t n) {
  append_words_later(e, kind, from, n);
  recorder.inputs_complete(e);
  return e;
}

// The same for lists one after the other, each of which is read anew.
inline Expression append_lists_later(const Expression &e,
                                     const std::vector<std::vector<unsigned>> &lists) {
  for (const std::vector<unsigned> &v : lists)
    append_words_later(e, Patch::indices, &v, v.size());
  recorder.inputs_complete(e);
  return e;
}

// Index numbers of a node: one or several, copied or by pointer.
struct Indices {
  Indices(unsigned index) : one(index), values(nullptr), n(1), pointer(nullptr) {}
  Indices(const std::vector<unsigned> &v)
      : one(0), values(v.data()), n(v.size()), pointer(nullptr), several(true) {}
  Indices(const unsigned *p)
      : one(0), values(nullptr), n(1), pointer(given(p, "index")), kind(Patch::one_index) {}
  Indices(const std::vector<unsigned> *p)
      : one(0), values(nullptr), n(given(p, "indices")->size()), pointer(p), kind(Patch::indices),
        several(true) {}
  uint32_t at() const { return inputs_at(n); }
  Expression add(const Expression &e) const {
    return pointer ? append_later(e, kind, pointer, n) : append(e, values ? values : &one, n);
  }
  // One number for each batch element of x.
  void match(const char *what, const Expression &x) const {
    unsigned bd = recorder.batch(x);
    if (n != bd)
      throw std::invalid_argument(std::string(what) + ": got " + std::to_string(n) +
                                  (n == 1 ? " index" : " indices") + " for a batch of " +
                                  std::to_string(bd) + "; give one for each element");
  }
  unsigned one;
  const unsigned *values;
  size_t n;
  const void *pointer;
  uint32_t kind = Patch::one_index;
  bool several = false; // a vector, even if of one
};

// A node whose attributes are a list of index numbers and its length.
inline Expression listed(uint32_t op, const Expression &x, const Indices &v) {
  uint32_t attrs[2] = {v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(op, &x, 1, attrs, 2));
}

inline Expression binary(uint32_t op, const Expression &x, const Expression &y) {
  Expression xy[2] = {x, y};
  return recorder.node(op, xy, 2);
}
inline Expression checked(uint32_t op, const Expression &x) { return recorder.node(op, &x, 1); }

} // namespace dynet

#endif
