// Tensor: a shape and a pointer to host memory that somebody else owns, and the
// functions over it. A tensor returned by forward() or value() is a copy that
// belongs to its graph.
#ifndef DYNET_TENSOR_H
#define DYNET_TENSOR_H

#include <cstddef>
#include <iosfwd>
#include <utility>
#include <vector>

#include "dynet/devices.h"
#include "dynet/dim.h"
#include "dynet/globals.h"

namespace Eigen {
typedef std::ptrdiff_t DenseIndex; // the element type of IndexTensor, as programs name it
}

namespace dynet {

struct Tensor {
  Tensor() : v(nullptr), device(nullptr), mem_pool(DeviceMempool::NONE) {}
  Tensor(const Dim &d, float *v, Device *device, DeviceMempool pool)
      : d(d), v(v), device(device), mem_pool(pool) {}
  // The values of batch element bid (of the only one when there is no batch).
  const float *batch_ptr(unsigned bid) const { return v + (d.bd == 1 ? 0 : bid * d.batch_size()); }
  float *batch_ptr(unsigned bid) { return v + (d.bd == 1 ? 0 : bid * d.batch_size()); }
  bool is_valid() const; // neither NaN nor infinite
  Tensor batch_elem(unsigned b) const;
  std::vector<Tensor> batch_elems() const;

  Dim d;
  float *v;
  Device *device;
  DeviceMempool mem_pool;
};

struct IndexTensor {
  IndexTensor() {}
  IndexTensor(const Dim &d, std::vector<Eigen::DenseIndex> values)
      : d(d), values(std::move(values)) {}
  Dim d;
  std::vector<Eigen::DenseIndex> values;
};

// A matrix by rows; a vector, one element per line. A batch or more than two axes:
// std::runtime_error.
std::ostream &operator<<(std::ostream &os, const Tensor &t);
// The only element; more than one: std::runtime_error.
real as_scalar(const Tensor &t);
std::vector<real> as_vector(const Tensor &t);
std::vector<real> as_scale_vector(const Tensor &t, float a);
std::vector<Eigen::DenseIndex> as_vector(const IndexTensor &t);

struct TensorTools {
  static void clip(Tensor &d, float left, float right);
  static void scale(Tensor &x, float a, float b); // a*x+b
  static void uniform_to_bernoulli(Tensor &x, float p);
  static void constant(Tensor &d, float c);
  static void zero(Tensor &d) { constant(d, 0); }
  static void identity(Tensor &val); // square matrices: std::runtime_error otherwise
  // Drawn from *rndeng, elements in memory order.
  static void randomize_bernoulli(Tensor &val, real p, real scale = 1.0f);
  static void randomize_normal(Tensor &val, real mean = 0.0f, real stddev = 1.0f);
  static void randomize_uniform(Tensor &val, real left = 0.0f, real right = 0.0f);
  static void randomize_orthonormal(Tensor &val, real scale = 1.0f);
  static real access_element(const Tensor &v, int index) { return v.v[index]; }
  static real access_element(const Tensor &v, const Dim &index);
  static void set_element(const Tensor &v, int index, float value) { v.v[index] = value; }
  static void copy_element(const Tensor &l, int lindex, Tensor &r, int rindex) {
    r.v[rindex] = l.v[lindex];
  }
  // vec must have at most as many elements as v: std::invalid_argument otherwise.
  static void set_elements(const Tensor &v, const std::vector<float> &vec);
  static void copy_elements(Tensor &v, const Tensor &v_src);
  static void accumulate(Tensor &v, const Tensor &v_src);
  // Along axis dim: the num largest, the largest first.
  static IndexTensor argmax(const Tensor &v, unsigned dim = 0, unsigned num = 1);
  static std::pair<Tensor, IndexTensor> topk(const Tensor &v, unsigned dim = 0, unsigned num = 1);
  static IndexTensor categorical_sample_log_prob(const Tensor &v, unsigned dim = 0,
                                                 unsigned num = 1);
};

real rand01();     // uniform in [0,1)
int rand0n(int n); // uniform in 0..n-1
real rand_normal();

} // namespace dynet
#endif
