// The initialisers.
#include "dynet/param-init.h"

#include <cmath>
#include <stdexcept>

#include "text_file.h"
#include "vpps/c_numbers.hpp"

namespace dynet {

void ParameterInitNormal::initialize_params(Tensor &values) const {
  TensorTools::randomize_normal(values, mean, std::sqrt(var));
}

ParameterInitUniform::ParameterInitUniform(float scale) : left(-scale), right(scale) {
  if (!(scale > 0))
    throw std::domain_error("ParameterInitUniform: the scale must be positive");
}

ParameterInitUniform::ParameterInitUniform(float l, float r) : left(l), right(r) {
  if (!(l < r))
    throw std::domain_error("ParameterInitUniform: the interval is empty");
}

void ParameterInitUniform::initialize_params(Tensor &values) const {
  TensorTools::randomize_uniform(values, left, right);
}

void ParameterInitConst::initialize_params(Tensor &values) const {
  TensorTools::constant(values, cnst);
}

void ParameterInitIdentity::initialize_params(Tensor &values) const {
  TensorTools::identity(values);
}

void ParameterInitGlorot::initialize_params(Tensor &values) const {
  const Dim &d = values.d;
  unsigned nd = d.nd - (lookup && d.nd > 0 ? 1 : 0);
  float s;
  if (nd == 4) {
    float receptive = static_cast<float>(d[0]) * static_cast<float>(d[1]);
    s = gain * std::sqrt(6.f) /
        std::sqrt(static_cast<float>(d[2]) * receptive + static_cast<float>(d[3]) * receptive);
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < nd; ++i)
      sum += d[i];
    s = gain * std::sqrt(3.f * static_cast<float>(nd)) / std::sqrt(static_cast<float>(sum));
  }
  TensorTools::randomize_uniform(values, -s, s);
}

void ParameterInitSaxe::initialize_params(Tensor &values) const {
  TensorTools::randomize_orthonormal(values, gain);
}

void ParameterInitFromFile::initialize_params(Tensor &values) const {
  const vpps::c_numbers in_c;
  text_file in(filename);
  std::vector<float> v;
  for (; in.peek() != text_file::end && v.size() <= values.d.size(); in.get())
    while (in.more() && v.size() <= values.d.size())
      v.push_back(in.number());
  if (v.size() != values.d.size())
    throw std::runtime_error("ParameterInitFromFile: " + filename + " has " +
                             std::to_string(v.size()) + " numbers, the parameter " +
                             std::to_string(values.d.size()));
  TensorTools::set_elements(values, v);
}

void ParameterInitFromVector::initialize_params(Tensor &values) const {
  if (vec.size() != values.d.size())
    throw std::invalid_argument("ParameterInitFromVector: " + std::to_string(vec.size()) +
                                " values for a parameter of " + std::to_string(values.d.size()));
  TensorTools::set_elements(values, vec);
}

} // namespace dynet
