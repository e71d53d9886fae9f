// Dim: the shape of a tensor, up to seven axes and a batch size. A vector has one
// axis; storage is column-major with the batch slowest.
#ifndef DYNET_DIM_H
#define DYNET_DIM_H

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#define DYNET_MAX_TENSOR_DIM 7

namespace dynet {

struct Dim {
  unsigned d[DYNET_MAX_TENSOR_DIM]; // sizes of the axes, the first nd of them
  unsigned nd;                      // number of axes
  unsigned bd;                      // batch size

  Dim() : d(), nd(0), bd(1) {}
  // More than seven axes: std::invalid_argument.
  Dim(std::initializer_list<unsigned> x);
  Dim(std::initializer_list<unsigned> x, unsigned b);
  Dim(const std::vector<long> &x);
  Dim(const std::vector<long> &x, unsigned b);

  // Elements in all, and in one batch element.
  unsigned size() const { return batch_size() * bd; }
  unsigned batch_size() const {
    unsigned n = 1;
    for (unsigned i = 0; i < nd; ++i)
      n *= d[i];
    return n;
  }
  unsigned sum_dims() const;
  // Without trailing ones (the first axis stays), without the batch.
  Dim truncate() const;
  Dim single_batch() const;
  // Exactly i axes, new ones of size 1.
  void resize(unsigned i);
  unsigned ndims() const { return nd; }
  unsigned rows() const { return nd > 0 ? d[0] : 1; }
  unsigned cols() const { return nd > 1 ? d[1] : 1; }
  unsigned batch_elems() const { return bd; }
  unsigned num_nonone_dims() const;
  // Sets the size of axis i (i < nd, or s == 1), s > 0.
  void set(unsigned i, unsigned s);
  unsigned operator[](unsigned i) const { return i < nd ? d[i] : 1; }
  unsigned size(unsigned i) const { return (*this)[i]; }
  // The last axis that goes leaves {1}.
  void delete_dim(unsigned i);
  void delete_dims(std::vector<unsigned> dims, bool reduce_batch);
  void add_dim(unsigned n);
  void insert_dim(unsigned i, unsigned n);
  Dim transpose() const;
  void print_profile(std::ostream &out) const;
};

// Compare batch, number of axes and their sizes: {3} is not {3,1}.
bool operator==(const Dim &a, const Dim &b);
inline bool operator!=(const Dim &a, const Dim &b) { return !(a == b); }

// {3,4}, or {3,4X2} with a batch of 2.
std::ostream &operator<<(std::ostream &os, const Dim &d);
std::ostream &operator<<(std::ostream &os, const std::vector<Dim> &ds);
std::istream &operator>>(std::istream &is, Dim &d);

} // namespace dynet
#endif
