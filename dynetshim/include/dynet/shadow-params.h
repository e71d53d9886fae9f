/// \file
/// Shadows: tensors in the shapes of a model's parameters, for averages and the like. They are in
/// host memory, zero at first. Copies have memory of their own.
#ifndef DYNET_SHADOW_PARAMS_H
#define DYNET_SHADOW_PARAMS_H

#include <vector>

#include "dynet/tensor.h"

namespace dynet {

class ParameterCollection;
struct ParameterStorage;
struct LookupParameterStorage;

/// A tensor in the shape of a parameter.
struct ShadowParameters {
  /// A tensor without shape.
  ShadowParameters() {}
  /// Zeros in the shape of p.
  explicit ShadowParameters(const ParameterStorage &p);
  ///@{
  /// The same numbers in memory of its own.
  ShadowParameters(const ShadowParameters &o);
  ShadowParameters &operator=(const ShadowParameters &o);
  ///@}
  Tensor h; ///< the numbers, owned by this object

private:
  std::vector<float> memory_;
};

/// A tensor in the shape of a table.
struct ShadowLookupParameters {
  /// A tensor without shape.
  ShadowLookupParameters() {}
  /// Zeros in the shape of lp.
  explicit ShadowLookupParameters(const LookupParameterStorage &lp);
  ///@{
  /// The same numbers in memory of its own.
  ShadowLookupParameters(const ShadowLookupParameters &o);
  ShadowLookupParameters &operator=(const ShadowLookupParameters &o);
  ///@}
  Tensor all_h;          ///< all numbers, owned by this object
  std::vector<Tensor> h; ///< by row: the same numbers

private:
  void point(const Dim &row, Device *device);
  std::vector<float> memory_;
};

/// Appends shadows of the parameters of model from number allocated on, in the order of
/// parameters_list().
void allocate_shadow_parameters(const ParameterCollection &model, unsigned allocated,
                                std::vector<ShadowParameters> &target);
/// Appends shadows of the tables of model from number allocated on, in the order of
/// lookup_parameters_list().
void allocate_shadow_lookup_parameters(const ParameterCollection &model, unsigned allocated,
                                       std::vector<ShadowLookupParameters> &target);

} // namespace dynet
#endif
