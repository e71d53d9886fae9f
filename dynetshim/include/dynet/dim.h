/// \file
/// Dim: the shape of a tensor, up to seven axes and a batch size. A vector has one axis. Storage is
/// column-major with the batch slowest.
#ifndef DYNET_DIM_H
#define DYNET_DIM_H

#include <initializer_list>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// The most axes that a Dim can have.
#define DYNET_MAX_TENSOR_DIM 7

/// DyNet's names. Each stands for what it stands for in DyNet; a text says where something differs.
namespace dynet {

/// A shape: {3,4} is a matrix of 3 rows and 4 columns, Dim({3,4}, 2) a batch of two of them.
struct Dim {
  unsigned d[DYNET_MAX_TENSOR_DIM]; ///< sizes of the axes; the first nd count
  unsigned nd;                      ///< the number of axes
  unsigned bd;                      ///< the batch size

  /// No axes, one batch element: the shape of a scalar. Its size is 1.
  Dim() : d(), nd(0), bd(1) {}
  ///@{
  /// The sizes of the axes, and a batch size b, else 1. More than seven axes:
  /// std::invalid_argument.
  Dim(std::initializer_list<unsigned> x);
  Dim(std::initializer_list<unsigned> x, unsigned b);
  Dim(const std::vector<long> &x);
  Dim(const std::vector<long> &x, unsigned b);
  ///@}

  /// The number of elements, batch included.
  unsigned size() const { return batch_size() * bd; }
  /// The number of elements of one batch element.
  unsigned batch_size() const {
    unsigned n = 1;
    for (unsigned i = 0; i < nd; ++i)
      n *= d[i];
    return n;
  }
  /// The sum of the axes' sizes.
  unsigned sum_dims() const;
  /// The same without trailing axes of size 1; the first axis stays.
  Dim truncate() const;
  /// The same with a batch size of 1.
  Dim single_batch() const;
  /// Changes the number of axes to i. New axes have size 1. More than seven: std::invalid_argument.
  void resize(unsigned i);
  /// The number of axes.
  unsigned ndims() const { return nd; }
  /// The size of the first axis, 1 if there is none.
  unsigned rows() const { return nd > 0 ? d[0] : 1; }
  /// The size of the second axis, 1 if there is none.
  unsigned cols() const { return nd > 1 ? d[1] : 1; }
  /// The batch size.
  unsigned batch_elems() const { return bd; }
  /// The number of axes whose size is not 1.
  unsigned num_nonone_dims() const;
  /// Sets the size of axis i to s. Needs s > 0, and i < nd or s == 1: else std::invalid_argument.
  void set(unsigned i, unsigned s);
  /// The size of axis i, 1 if there is no such axis.
  unsigned operator[](unsigned i) const { return i < nd ? d[i] : 1; }
  /// The size of axis i, 1 if there is no such axis.
  unsigned size(unsigned i) const { return (*this)[i]; }
  /// Takes axis i away; the last axis leaves {1}. No such axis: std::invalid_argument.
  void delete_dim(unsigned i);
  /// Takes several axes away and, if reduce_batch, makes the batch size 1.
  void delete_dims(std::vector<unsigned> dims, bool reduce_batch);
  /// Adds an axis of size n at the end. More than seven: std::invalid_argument.
  void add_dim(unsigned n);
  /// Inserts an axis of size n before axis i. More than seven, or i > nd: std::invalid_argument.
  void insert_dim(unsigned i, unsigned n);
  /// The shape of the transpose. Neither vector nor matrix: std::invalid_argument.
  Dim transpose() const;
  /// Prints the axes without the batch: {3,4}.
  void print_profile(std::ostream &out) const;
};

/// Whether batch size, number of axes and their sizes are equal: {3} is not {3,1}.
bool operator==(const Dim &a, const Dim &b);
/// Whether a == b is false.
inline bool operator!=(const Dim &a, const Dim &b) { return !(a == b); }

/// Prints {3,4}, or {3,4X2} with a batch of 2.
std::ostream &operator<<(std::ostream &os, const Dim &d);
/// Prints [{3} {3,4}].
std::ostream &operator<<(std::ostream &os, const std::vector<Dim> &ds);
/// Reads what operator<< prints. Other text sets the stream's failbit.
std::istream &operator>>(std::istream &is, Dim &d);

} // namespace dynet
#endif
