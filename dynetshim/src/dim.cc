// Dim: construction, editing, printing.
#include "dynet/dim.h"

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>

namespace dynet {

namespace {
template <class I> void fill(Dim &to, I begin, I end, unsigned b) {
  for (; begin != end; ++begin) {
    if (to.nd == DYNET_MAX_TENSOR_DIM)
      throw std::invalid_argument("Dim: more than 7 axes");
    to.d[to.nd++] = static_cast<unsigned>(*begin);
  }
  to.bd = b;
}
} // namespace

Dim::Dim(std::initializer_list<unsigned> x) : d(), nd(0), bd(1) {
  fill(*this, x.begin(), x.end(), 1);
}
Dim::Dim(std::initializer_list<unsigned> x, unsigned b) : d(), nd(0), bd(1) {
  fill(*this, x.begin(), x.end(), b);
}
Dim::Dim(const std::vector<long> &x) : d(), nd(0), bd(1) { fill(*this, x.begin(), x.end(), 1); }
Dim::Dim(const std::vector<long> &x, unsigned b) : d(), nd(0), bd(1) {
  fill(*this, x.begin(), x.end(), b);
}

unsigned Dim::sum_dims() const {
  unsigned n = 0;
  for (unsigned i = 0; i < nd; ++i)
    n += d[i];
  return n;
}

Dim Dim::truncate() const {
  Dim r = *this;
  while (r.nd > 1 && r.d[r.nd - 1] == 1)
    r.d[--r.nd] = 0;
  return r;
}

Dim Dim::single_batch() const {
  Dim r = *this;
  r.bd = 1;
  return r;
}

void Dim::resize(unsigned i) {
  if (i > DYNET_MAX_TENSOR_DIM)
    throw std::invalid_argument("Dim::resize: more than 7 axes");
  while (nd < i)
    d[nd++] = 1;
  nd = i;
}

unsigned Dim::num_nonone_dims() const {
  unsigned n = 0;
  for (unsigned i = 0; i < nd; ++i)
    n += d[i] != 1;
  return n;
}

void Dim::set(unsigned i, unsigned s) {
  if (i >= nd && s != 1)
    throw std::invalid_argument("Dim::set: axis " + std::to_string(i) + " of " +
                                std::to_string(nd));
  if (s == 0)
    throw std::invalid_argument("Dim::set: a size of 0");
  if (i < nd)
    d[i] = s;
}

void Dim::delete_dim(unsigned i) {
  if (i >= nd)
    throw std::invalid_argument("Dim::delete_dim: axis " + std::to_string(i) + " of " +
                                std::to_string(nd));
  if (nd == 1) {
    d[0] = 1;
    return;
  }
  std::copy(d + i + 1, d + nd, d + i);
  d[--nd] = 0;
}

void Dim::delete_dims(std::vector<unsigned> dims, bool reduce_batch) {
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  for (size_t k = dims.size(); k-- > 0;)
    delete_dim(dims[k]);
  if (reduce_batch)
    bd = 1;
}

void Dim::add_dim(unsigned n) { insert_dim(nd, n); }

void Dim::insert_dim(unsigned i, unsigned n) {
  if (nd == DYNET_MAX_TENSOR_DIM || i > nd)
    throw std::invalid_argument("Dim::insert_dim: axis " + std::to_string(i) + " of " +
                                std::to_string(nd) + ", 7 at most");
  std::copy_backward(d + i, d + nd, d + nd + 1);
  d[i] = n;
  ++nd;
}

Dim Dim::transpose() const {
  if (nd == 1)
    return Dim({1, d[0]}, bd);
  if (nd == 2)
    return Dim({d[1], d[0]}, bd);
  throw std::invalid_argument("Dim::transpose: needs a vector or matrix");
}

void Dim::print_profile(std::ostream &out) const {
  out << '{';
  for (unsigned i = 0; i < nd; ++i)
    out << (i ? "," : "") << d[i];
  out << '}';
}

bool operator==(const Dim &a, const Dim &b) {
  return a.nd == b.nd && a.bd == b.bd && std::equal(a.d, a.d + a.nd, b.d);
}

std::ostream &operator<<(std::ostream &os, const Dim &d) {
  os << '{';
  for (unsigned i = 0; i < d.nd; ++i)
    os << (i ? "," : "") << d.d[i];
  if (d.bd != 1)
    os << 'X' << d.bd;
  return os << '}';
}

std::ostream &operator<<(std::ostream &os, const std::vector<Dim> &ds) {
  os << '[';
  for (size_t i = 0; i < ds.size(); ++i)
    os << (i ? " " : "") << ds[i];
  return os << ']';
}

std::istream &operator>>(std::istream &is, Dim &d) {
  d = Dim();
  char c = 0;
  is >> c;
  if (c != '{') {
    is.setstate(std::ios::failbit);
    return is;
  }
  is >> std::ws;
  if (is.peek() == '}') {
    is.get();
    return is;
  }
  while (is) {
    unsigned n = 0;
    is >> n >> c;
    if (!is)
      break;
    if (d.nd == DYNET_MAX_TENSOR_DIM) {
      is.setstate(std::ios::failbit);
      break;
    }
    d.d[d.nd++] = n;
    if (c == 'X')
      is >> d.bd >> c;
    if (c == '}')
      break;
    if (c != ',')
      is.setstate(std::ios::failbit);
  }
  return is;
}

} // namespace dynet
