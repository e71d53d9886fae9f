/// \file
/// Tensor: a shape and a pointer to host memory that somebody else owns, and the functions over it.
/// A tensor that forward() or value() returns is a copy that belongs to its graph. A function that
/// reads a tensor without memory throws std::runtime_error; access to single elements is not
/// checked.
#ifndef DYNET_TENSOR_H
#define DYNET_TENSOR_H

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dynet/devices.h"
#include "dynet/dim.h"
#include "dynet/globals.h"

/// One name that DyNet's programs use; Eigen itself is not needed.
namespace Eigen {
/// The element type of dynet::IndexTensor.
typedef std::ptrdiff_t DenseIndex;
} // namespace Eigen

namespace dynet {

/// Who has a tensor's numbers, if they are not in host memory. Not DyNet's.
struct TensorSource {
  virtual ~TensorSource() {}
  /// A copy of them, column-major with the batch slowest.
  virtual std::vector<float> read() const = 0;
};

/// A shape and its numbers, column-major with the batch slowest.
struct Tensor {
  /// A tensor without shape and memory.
  Tensor() : v(nullptr), device(nullptr), mem_pool(DeviceMempool::NONE), source(nullptr) {}
  /// A tensor over dim.size() floats at values, which stay the caller's.
  Tensor(const Dim &dim, float *values, Device *its_device, DeviceMempool pool)
      : d(dim), v(values), device(its_device), mem_pool(pool), source(nullptr) {}
  ///@{
  /// The values of batch element bid; without a batch always those of the only one.
  const float *batch_ptr(unsigned bid) const { return v + (d.bd == 1 ? 0 : bid * d.batch_size()); }
  float *batch_ptr(unsigned bid) { return v + (d.bd == 1 ? 0 : bid * d.batch_size()); }
  ///@}
  /// Whether no element is NaN or infinite.
  bool is_valid() const;
  /// A tensor over the same memory: batch element b. Out of range: std::runtime_error.
  Tensor batch_elem(unsigned b) const;
  /// All batch elements.
  std::vector<Tensor> batch_elems() const;

  Dim d;                  ///< the shape
  float *v;               ///< d.size() numbers, owned by somebody else
  Device *device;         ///< the only device
  DeviceMempool mem_pool; ///< what DyNet calls the kind of memory
  /// Who has the numbers if v is null, owned by somebody else: as_vector() and printing ask it.
  /// Not DyNet's
  const TensorSource *source;
};

/// A tensor of index numbers, which it owns.
struct IndexTensor {
  /// No indices.
  IndexTensor() : v(nullptr), device(nullptr), mem_pool(DeviceMempool::NONE) {}
  /// dim.size() indices, column-major with the batch slowest.
  IndexTensor(const Dim &dim, std::vector<Eigen::DenseIndex> indices)
      : d(dim), values(std::move(indices)), v(values.data()), device(default_device),
        mem_pool(DeviceMempool::NONE) {}
  /// A copy of dim.size() indices at memory.
  IndexTensor(const Dim &dim, const Eigen::DenseIndex *memory, Device *its_device,
              DeviceMempool pool)
      : d(dim), values(memory, memory + dim.size()), v(values.data()), device(its_device),
        mem_pool(pool) {}
  ///@{
  /// The same indices in memory of its own.
  IndexTensor(const IndexTensor &o)
      : d(o.d), values(o.values), v(values.data()), device(o.device), mem_pool(o.mem_pool) {}
  IndexTensor &operator=(const IndexTensor &o) {
    if (this == &o)
      return *this;
    d = o.d;
    values = o.values;
    v = values.data();
    device = o.device;
    mem_pool = o.mem_pool;
    return *this;
  }
  ///@}
  Dim d;                                 ///< the shape
  std::vector<Eigen::DenseIndex> values; ///< the indices. Not DyNet's
  Eigen::DenseIndex *v;                  ///< where they are
  Device *device;                        ///< the only device
  DeviceMempool mem_pool;                ///< none
};

/// Prints a matrix by rows, a vector with one element in a line, all elements as wide as the
/// widest: as Eigen does. A batch or more than two axes: std::runtime_error.
std::ostream &operator<<(std::ostream &os, const Tensor &t);
/// The only element. Another number of elements: std::runtime_error.
real as_scalar(const Tensor &t);
/// A copy of all elements.
std::vector<real> as_vector(const Tensor &t);
/// A copy of all elements, each times a.
std::vector<real> as_scale_vector(const Tensor &t, float a);
/// A copy of all indices.
std::vector<Eigen::DenseIndex> as_vector(const IndexTensor &t);

/// Functions over host tensors. They change memory in place.
struct TensorTools {
  /// Brings every element into [left,right].
  static void clip(Tensor &d, float left, float right);
  /// Sets every element x to a*x+b.
  static void scale(Tensor &x, float a, float b);
  /// Sets every element to 1 if it is below p, else to 0.
  static void uniform_to_bernoulli(Tensor &x, float p);
  /// Sets every element to c.
  static void constant(Tensor &d, float c);
  /// Sets every element to 0.
  static void zero(Tensor &d) { constant(d, 0); }
  /// Makes the identity matrix. Not square: std::runtime_error.
  static void identity(Tensor &val);
  /// Draws from *rndeng in memory order: scale with probability p, else 0.
  static void randomize_bernoulli(Tensor &val, real p, real scale = 1.0f);
  /// Draws from *rndeng in memory order: normal.
  static void randomize_normal(Tensor &val, real mean = 0.0f, real stddev = 1.0f);
  /// Draws from *rndeng in memory order: uniform in [left,right).
  static void randomize_uniform(Tensor &val, real left = 0.0f, real right = 1.0f);
  /// Draws from *rndeng a matrix with orthonormal columns, times scale. Not square:
  /// std::runtime_error.
  static void randomize_orthonormal(Tensor &val, real scale = 1.0f);
  /// The element at a flat index, which is not checked.
  static real access_element(const Tensor &v, int index) { return v.v[index]; }
  /// The element of the first batch element at index.d[i] on each axis i, which is not checked.
  static real access_element(const Tensor &v, const Dim &index);
  /// Sets the element at a flat index, which is not checked.
  static void set_element(const Tensor &v, int index, float value) { v.v[index] = value; }
  /// Copies one element to another tensor; the flat indices are not checked.
  static void copy_element(const Tensor &l, int lindex, Tensor &r, int rindex) {
    r.v[rindex] = l.v[lindex];
  }
  /// Copies vec to the first elements. What v has no room for is left out, with one warning.
  static void set_elements(const Tensor &v, const std::vector<float> &vec);
  /// Copies all elements of v_src to v. Sizes differ: std::invalid_argument.
  static void copy_elements(Tensor &v, const Tensor &v_src);
  /// Adds all elements of v_src to those of v. Sizes differ: std::invalid_argument.
  static void accumulate(Tensor &v, const Tensor &v_src);
  /// Sets m to the largest element along axis d of a vector or matrix without a batch, and z to
  /// log(sum(exp(x))) along that axis. m and z have the size that is left; else, or without such an
  /// axis: std::invalid_argument.
  static void logsumexp(const Tensor &x, Tensor &m, Tensor &z, unsigned d = 0);
  /// The positions on axis dim of the num largest elements, the largest first: the shape of v, with
  /// num on that axis. No such axis, or fewer elements: std::invalid_argument.
  static IndexTensor argmax(const Tensor &v, unsigned dim = 0, unsigned num = 1);
  /// The num largest elements along axis dim, and argmax(). The elements' memory is never freed.
  static std::pair<Tensor, IndexTensor> topk(const Tensor &v, unsigned dim = 0, unsigned num = 1);
  /// Draws num positions on axis dim, whose elements are log probabilities: the shape of v, with
  /// num on that axis. No such axis: std::invalid_argument.
  static IndexTensor categorical_sample_log_prob(const Tensor &v, unsigned dim = 0,
                                                 unsigned num = 1);

  ///@{
  /// The same as without "_dev". The device counts for nothing: tensors are in host memory.
  template <class D> static void clip_dev(const D &, Tensor &d, float left, float right) {
    clip(d, left, right);
  }
  template <class D> static void constant_dev(const D &, Tensor &d, float c) { constant(d, c); }
  template <class D> static void accumulate_dev(const D &, Tensor &v, const Tensor &v_src) {
    accumulate(v, v_src);
  }
  template <class D> static void scale_dev(const D &, Tensor &x, float a, float b) {
    scale(x, a, b);
  }
  template <class D> static void uniform_to_bernoulli_dev(const D &, Tensor &x, float p) {
    uniform_to_bernoulli(x, p);
  }
  template <class D>
  static IndexTensor argmax_dev(const D &, const Tensor &v, unsigned dim = 0, unsigned num = 1) {
    return argmax(v, dim, num);
  }
  template <class D>
  static IndexTensor categorical_sample_log_prob_dev(const D &, const Tensor &v, unsigned dim = 0,
                                                     unsigned num = 1) {
    return categorical_sample_log_prob(v, dim, num);
  }
  template <class D>
  static void logsumexp_dev(const D &, const Tensor &x, Tensor &m, Tensor &z, unsigned d = 0) {
    logsumexp(x, m, z, d);
  }
  template <class D>
  static std::pair<Tensor, IndexTensor> topk_dev(const D &, const Tensor &v, unsigned dim = 0,
                                                 unsigned num = 1) {
    return topk(v, dim, num);
  }
  ///@}
};

/// A number from *rndeng, uniform in [0,1). Before initialize(): std::invalid_argument.
real rand01();
/// A number from *rndeng, uniform in 0..n-1. n <= 0, or before initialize(): std::invalid_argument.
int rand0n(int n);
/// A number from *rndeng, normal with mean 0 and variance 1. Before initialize():
/// std::invalid_argument.
real rand_normal();

} // namespace dynet
#endif
