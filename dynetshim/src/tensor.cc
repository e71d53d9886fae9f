// Functions over host tensors.
#include "dynet/tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "print.h"

namespace dynet {

namespace {

const float *checked(const Tensor &t) {
  if (t.v == nullptr)
    throw std::runtime_error("the tensor has no values: ask for a parameter's through "
                             "values(), gradients() or get_storage()");
  return t.v;
}

std::mt19937 &generator() {
  if (rndeng == nullptr)
    throw std::invalid_argument("random numbers before dynet::initialize");
  return *rndeng;
}

// Calls f(base, stride, length, column) for every line of elements along an axis.
template <class F> void along(const Dim &d, unsigned axis, F f) {
  if (axis >= d.nd)
    throw std::invalid_argument("axis " + std::to_string(axis) + " of a tensor of " +
                                std::to_string(d.nd) + " axes");
  size_t stride = 1, outer = d.bd;
  for (unsigned i = 0; i < axis; ++i)
    stride *= d.d[i];
  for (unsigned i = axis + 1; i < d.nd; ++i)
    outer *= d.d[i];
  for (size_t o = 0; o < outer; ++o)
    for (size_t s = 0; s < stride; ++s)
      f(o * stride * d.d[axis] + s, stride, static_cast<size_t>(d.d[axis]), o, s);
}

} // namespace

void print_matrix(std::ostream &os, const float *values, unsigned rows, unsigned columns) {
  std::streamsize width = 0;
  for (size_t i = 0; i < static_cast<size_t>(rows) * columns; ++i) {
    std::ostringstream one;
    one.copyfmt(os);
    one.width(0);
    one << values[i];
    width = std::max(width, static_cast<std::streamsize>(one.str().size()));
  }
  const std::streamsize old_width = os.width(0);
  const char old_fill = os.fill(' ');
  for (unsigned i = 0; i < rows; ++i) {
    if (i > 0)
      os << '\n';
    for (unsigned j = 0; j < columns; ++j)
      os << (j > 0 ? " " : "") << std::setw(static_cast<int>(width)) << values[i + j * rows];
  }
  os.fill(old_fill);
  os.width(old_width);
}

bool Tensor::is_valid() const {
  checked(*this);
  for (size_t i = 0; i < d.size(); ++i)
    if (!std::isfinite(v[i]))
      return false;
  return true;
}

Tensor Tensor::batch_elem(unsigned b) const {
  if (d.bd == 1)
    return *this;
  if (b >= d.bd)
    throw std::runtime_error("batch element " + std::to_string(b) + " of " + std::to_string(d.bd));
  return Tensor(d.single_batch(), v + static_cast<size_t>(b) * d.batch_size(), device, mem_pool);
}

std::vector<Tensor> Tensor::batch_elems() const {
  std::vector<Tensor> all;
  for (unsigned b = 0; b < d.bd; ++b)
    all.push_back(batch_elem(b));
  return all;
}

std::ostream &operator<<(std::ostream &os, const Tensor &t) {
  if (t.d.bd != 1 || t.d.nd > 2)
    throw std::runtime_error("cannot print a tensor with a batch or more than two axes");
  print_matrix(os, as_vector(t).data(), t.d.rows(), t.d.cols());
  return os;
}

real as_scalar(const Tensor &t) {
  if (t.d.size() != 1)
    throw std::runtime_error("as_scalar: the tensor has " + std::to_string(t.d.size()) +
                             " elements");
  return t.v != nullptr ? t.v[0] : as_vector(t)[0];
}

std::vector<real> as_vector(const Tensor &t) {
  if (t.v == nullptr && t.source != nullptr)
    return t.source->read();
  const float *v = checked(t);
  return std::vector<real>(v, v + t.d.size());
}

std::vector<real> as_scale_vector(const Tensor &t, float a) {
  std::vector<real> v = as_vector(t);
  for (real &x : v)
    x *= a;
  return v;
}

std::vector<Eigen::DenseIndex> as_vector(const IndexTensor &t) { return t.values; }

void TensorTools::clip(Tensor &d, float left, float right) {
  checked(d);
  for (size_t i = 0; i < d.d.size(); ++i)
    d.v[i] = std::min(std::max(d.v[i], left), right);
}

void TensorTools::scale(Tensor &x, float a, float b) {
  checked(x);
  for (size_t i = 0; i < x.d.size(); ++i)
    x.v[i] = a * x.v[i] + b;
}

void TensorTools::uniform_to_bernoulli(Tensor &x, float p) {
  checked(x);
  for (size_t i = 0; i < x.d.size(); ++i)
    x.v[i] = x.v[i] < p ? 1.f : 0.f;
}

void TensorTools::constant(Tensor &d, float c) {
  checked(d);
  std::fill(d.v, d.v + d.d.size(), c);
}

void TensorTools::identity(Tensor &val) {
  if (val.d.nd != 2 || val.d[0] != val.d[1])
    throw std::runtime_error("identity: needs a square matrix");
  constant(val, 0);
  for (unsigned i = 0; i < val.d[0]; ++i)
    val.v[i * (val.d[0] + 1)] = 1;
}

void TensorTools::randomize_bernoulli(Tensor &val, real p, real scale) {
  checked(val);
  std::bernoulli_distribution distribution(p);
  for (size_t i = 0; i < val.d.size(); ++i)
    val.v[i] = distribution(generator()) ? scale : 0.f;
}

void TensorTools::randomize_normal(Tensor &val, real mean, real stddev) {
  checked(val);
  std::normal_distribution<real> distribution(mean, stddev);
  for (size_t i = 0; i < val.d.size(); ++i)
    val.v[i] = distribution(generator());
}

void TensorTools::randomize_uniform(Tensor &val, real left, real right) {
  checked(val);
  std::uniform_real_distribution<real> distribution(left, right);
  for (size_t i = 0; i < val.d.size(); ++i)
    val.v[i] = distribution(generator());
}

// Gram-Schmidt, twice for accuracy, over a random square matrix.
void TensorTools::randomize_orthonormal(Tensor &val, real scale) {
  if (val.d.nd != 2 || val.d[0] != val.d[1])
    throw std::runtime_error("randomize_orthonormal: needs a square matrix");
  size_t n = val.d[0];
  randomize_uniform(val, -1.0f, 1.0f);
  std::vector<double> q(val.v, val.v + n * n);
  for (size_t j = 0; j < n; ++j) {
    double *column = &q[j * n];
    for (int pass = 0; pass < 2; ++pass)
      for (size_t k = 0; k < j; ++k) {
        const double *other = &q[k * n];
        double dot = 0;
        for (size_t i = 0; i < n; ++i)
          dot += column[i] * other[i];
        for (size_t i = 0; i < n; ++i)
          column[i] -= dot * other[i];
      }
    double norm = 0;
    for (size_t i = 0; i < n; ++i)
      norm += column[i] * column[i];
    norm = std::sqrt(norm);
    if (norm < 1e-12)
      throw std::runtime_error("randomize_orthonormal: the random matrix is singular; call again");
    for (size_t i = 0; i < n; ++i)
      column[i] /= norm;
  }
  for (size_t i = 0; i < n * n; ++i)
    val.v[i] = static_cast<float>(q[i] * scale);
}

real TensorTools::access_element(const Tensor &v, const Dim &index) {
  size_t at = 0, stride = 1;
  for (unsigned i = 0; i < v.d.nd; ++i) {
    at += index.d[i] * stride;
    stride *= v.d.d[i];
  }
  return checked(v)[at];
}

void TensorTools::set_elements(const Tensor &v, const std::vector<float> &vec) {
  static std::atomic<bool> warned(false);
  const size_t n = std::min<size_t>(vec.size(), v.d.size());
  if (n < vec.size() && !warned.exchange(true))
    std::cerr << "WARNING: set_elements: " << vec.size() << " values for a tensor of " << n
              << ": the last ones are left out. This is said once.\n";
  checked(v);
  std::copy_n(vec.begin(), n, v.v);
}

void TensorTools::copy_elements(Tensor &v, const Tensor &v_src) {
  if (v.d.size() != v_src.d.size())
    throw std::invalid_argument("copy_elements: sizes differ");
  checked(v);
  std::memcpy(v.v, checked(v_src), v.d.size() * sizeof(float));
}

void TensorTools::accumulate(Tensor &v, const Tensor &v_src) {
  if (v.d.size() != v_src.d.size())
    throw std::invalid_argument("accumulate: sizes differ");
  checked(v);
  for (size_t i = 0; i < v.d.size(); ++i)
    v.v[i] += checked(v_src)[i];
}

void TensorTools::logsumexp(const Tensor &x, Tensor &m, Tensor &z, unsigned d) {
  checked(x);
  const size_t left = d < x.d.nd ? x.d.size() / x.d.d[d] : 0;
  if (x.d.bd != 1 || x.d.nd > 2 || left == 0 || m.d.size() != left || z.d.size() != left)
    throw std::invalid_argument("logsumexp: needs a vector or matrix without a batch, one of its "
                                "axes, and results of the size that is left");
  checked(m);
  checked(z);
  along(x.d, d, [&](size_t base, size_t stride, size_t length, size_t outer, size_t inner) {
    const float *line = x.v + base;
    float most = line[0];
    for (size_t i = 1; i < length; ++i)
      most = std::max(most, line[i * stride]);
    double sum = 0;
    for (size_t i = 0; i < length; ++i)
      sum += std::exp(static_cast<double>(line[i * stride] - most));
    const size_t to = outer * stride + inner;
    m.v[to] = most;
    z.v[to] = most + static_cast<float>(std::log(sum));
  });
}

std::pair<Tensor, IndexTensor> TensorTools::topk(const Tensor &v, unsigned dim, unsigned num) {
  IndexTensor indices = argmax(v, dim, num);
  // The values live as long as the process: Tensor owns nothing. As in DyNet, whose
  // scratch memory is as careless, topk is for occasional use.
  float *values = new float[indices.d.size()];
  Tensor top(indices.d, values, v.device, DeviceMempool::NONE);
  along(v.d, dim, [&](size_t base, size_t stride, size_t, size_t outer, size_t inner) {
    for (unsigned k = 0; k < num; ++k) {
      size_t to = outer * stride * num + k * stride + inner;
      values[to] = v.v[base + static_cast<size_t>(indices.values[to]) * stride];
    }
  });
  return std::make_pair(top, indices);
}

IndexTensor TensorTools::argmax(const Tensor &v, unsigned dim, unsigned num) {
  checked(v);
  if (dim >= v.d.nd || num == 0 || num > v.d.d[dim])
    throw std::invalid_argument("argmax: axis or number out of range");
  Dim d = v.d;
  d.d[dim] = num;
  std::vector<Eigen::DenseIndex> found(d.size());
  std::vector<size_t> order;
  along(v.d, dim, [&](size_t base, size_t stride, size_t length, size_t outer, size_t inner) {
    order.resize(length);
    for (size_t i = 0; i < length; ++i)
      order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return v.v[base + a * stride] > v.v[base + b * stride];
    });
    for (unsigned k = 0; k < num; ++k)
      found[outer * stride * num + k * stride + inner] = static_cast<Eigen::DenseIndex>(order[k]);
  });
  return IndexTensor(d, found);
}

// The Gumbel trick: log p plus Gumbel noise, and its maximum.
IndexTensor TensorTools::categorical_sample_log_prob(const Tensor &v, unsigned dim, unsigned num) {
  checked(v);
  if (dim >= v.d.nd || num == 0)
    throw std::invalid_argument("categorical_sample_log_prob: axis or number out of range");
  Dim d = v.d;
  d.d[dim] = num;
  std::vector<Eigen::DenseIndex> found(d.size());
  std::uniform_real_distribution<real> uniform(0, 1);
  along(v.d, dim, [&](size_t base, size_t stride, size_t length, size_t outer, size_t inner) {
    for (unsigned k = 0; k < num; ++k) {
      size_t best = 0;
      float most = -std::numeric_limits<float>::infinity();
      for (size_t i = 0; i < length; ++i) {
        float u = std::max(uniform(generator()), 1e-20f);
        float x = v.v[base + i * stride] - std::log(std::max(-std::log(u), 1e-20f));
        if (x > most) {
          most = x;
          best = i;
        }
      }
      found[outer * stride * num + k * stride + inner] = static_cast<Eigen::DenseIndex>(best);
    }
  });
  return IndexTensor(d, found);
}

real rand01() { return std::uniform_real_distribution<real>(0, 1)(generator()); }

int rand0n(int n) {
  if (n <= 0)
    throw std::invalid_argument("rand0n: n must be positive");
  int x = static_cast<int>(rand01() * static_cast<real>(n));
  return x < n ? x : n - 1;
}

real rand_normal() { return std::normal_distribution<real>(0, 1)(generator()); }

} // namespace dynet
