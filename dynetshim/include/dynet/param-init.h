/// \file
/// How a new parameter gets its first values. Random values come from *rndeng: parameters in order
/// of creation, elements in memory order.
#ifndef DYNET_PARAM_INIT_H_
#define DYNET_PARAM_INIT_H_

#include <string>
#include <vector>

#include "dynet/tensor.h"

namespace dynet {

/// The base of all initialisers. A program may derive its own.
struct ParameterInit {
  ParameterInit() {}
  virtual ~ParameterInit() {}
  /// Sets all of values, host memory in the parameter's shape; of a table all rows, which are the
  /// last axis.
  virtual void initialize_params(Tensor &values) const = 0;
};

/// Normal random numbers.
struct ParameterInitNormal : ParameterInit {
  /// With mean m and variance v.
  explicit ParameterInitNormal(float m = 0.0f, float v = 1.0f) : mean(m), var(v) {}
  void initialize_params(Tensor &values) const override;

private:
  float mean, var;
};

/// Uniform random numbers.
struct ParameterInitUniform : ParameterInit {
  /// In [-scale,scale). scale not above 0: std::domain_error.
  explicit ParameterInitUniform(float scale);
  /// In [l,r). An empty interval: std::domain_error.
  ParameterInitUniform(float l, float r);
  void initialize_params(Tensor &values) const override;

private:
  float left, right;
};

/// One number in all elements.
struct ParameterInitConst : ParameterInit {
  /// The number c.
  explicit ParameterInitConst(float c) : cnst(c) {}
  void initialize_params(Tensor &values) const override;

private:
  float cnst;
};

/// The identity matrix. Not a square matrix: std::runtime_error.
struct ParameterInitIdentity : ParameterInit {
  void initialize_params(Tensor &values) const override;
};

/// Glorot's initialisation: uniform in [-s,s) with s = gain*sqrt(3k)/sqrt(sum of the k sizes). With
/// four axes s = gain*sqrt(6)/sqrt(d0*d1*(d2+d3)).
struct ParameterInitGlorot : ParameterInit {
  /// is_lookup: the last axis, which counts a table's rows, is no part of the formula. factor: the
  /// gain.
  explicit ParameterInitGlorot(bool is_lookup = false, float factor = 1.f)
      : lookup(is_lookup), gain(factor) {}
  void initialize_params(Tensor &values) const override;

private:
  bool lookup;
  float gain;
};

/// A random orthonormal matrix times gain, made by Gram-Schmidt. Not a square matrix:
/// std::runtime_error.
struct ParameterInitSaxe : ParameterInit {
  /// factor: the gain.
  explicit ParameterInitSaxe(float factor = 1.0f) : gain(factor) {}
  void initialize_params(Tensor &values) const override;

private:
  float gain;
};

/// Numbers from a text file, separated by white space. An unreadable file, or another count of
/// numbers than the parameter's elements: std::runtime_error.
struct ParameterInitFromFile : ParameterInit {
  /// The file f, read when a parameter is made.
  explicit ParameterInitFromFile(const std::string &f) : filename(f) {}
  void initialize_params(Tensor &values) const override;

private:
  std::string filename;
};

/// Numbers from a vector. Another count than the parameter's elements: std::invalid_argument.
struct ParameterInitFromVector : ParameterInit {
  /// Copies v, column-major.
  explicit ParameterInitFromVector(const std::vector<float> &v) : vec(v) {}
  void initialize_params(Tensor &values) const override;

private:
  std::vector<float> vec;
};

} // namespace dynet
#endif
