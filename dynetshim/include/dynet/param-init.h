// How a new parameter gets its first values. Random ones come from *rndeng, parameters
// in order of creation, elements in memory order.
#ifndef DYNET_PARAM_INIT_H
#define DYNET_PARAM_INIT_H

#include <string>
#include <vector>

#include "dynet/tensor.h"

namespace dynet {

struct ParameterInit {
  ParameterInit() {}
  virtual ~ParameterInit() {}
  virtual void initialize_params(Tensor &values) const = 0;
};

// Normal with mean m and variance v.
struct ParameterInitNormal : ParameterInit {
  explicit ParameterInitNormal(float m = 0.0f, float v = 1.0f) : mean(m), var(v) {}
  void initialize_params(Tensor &values) const override;

private:
  float mean, var;
};

// Uniform in [l,r), or [-scale,scale). An empty interval: std::domain_error.
struct ParameterInitUniform : ParameterInit {
  explicit ParameterInitUniform(float scale);
  ParameterInitUniform(float l, float r);
  void initialize_params(Tensor &values) const override;

private:
  float left, right;
};

struct ParameterInitConst : ParameterInit {
  explicit ParameterInitConst(float c) : cnst(c) {}
  void initialize_params(Tensor &values) const override;

private:
  float cnst;
};

// Square matrices only: std::runtime_error otherwise.
struct ParameterInitIdentity : ParameterInit {
  void initialize_params(Tensor &values) const override;
};

// Uniform in [-s,s) with s = gain*sqrt(3k)/sqrt(sum of the k sizes); for four axes
// s = gain*sqrt(6)/sqrt(d0*d1*(d2+d3)). A lookup table's last axis does not count.
struct ParameterInitGlorot : ParameterInit {
  explicit ParameterInitGlorot(bool is_lookup = false, float gain = 1.f)
      : lookup(is_lookup), gain(gain) {}
  void initialize_params(Tensor &values) const override;

private:
  bool lookup;
  float gain;
};

// A random orthonormal matrix times gain. Square matrices only: std::runtime_error.
struct ParameterInitSaxe : ParameterInit {
  explicit ParameterInitSaxe(float gain = 1.0f) : gain(gain) {}
  void initialize_params(Tensor &values) const override;

private:
  float gain;
};

// Numbers separated by white space. An unreadable file or a wrong count:
// std::runtime_error.
struct ParameterInitFromFile : ParameterInit {
  explicit ParameterInitFromFile(const std::string &f) : filename(f) {}
  void initialize_params(Tensor &values) const override;

private:
  std::string filename;
};

// As many values as the parameter has: std::invalid_argument otherwise.
struct ParameterInitFromVector : ParameterInit {
  explicit ParameterInitFromVector(const std::vector<float> &v) : vec(v) {}
  void initialize_params(Tensor &values) const override;

private:
  std::vector<float> vec;
};

} // namespace dynet
#endif
