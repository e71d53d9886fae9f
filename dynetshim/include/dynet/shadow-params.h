/// \file
/// Shadows: tensors in the shapes of a model's parameters, for averages and the like. They are in
/// host memory, zero at first, or somebody else has the numbers. Copies have memory of their own.
#ifndef DYNET_SHADOW_PARAMS_H
#define DYNET_SHADOW_PARAMS_H

#include <memory>
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
  /// What source has, in the shape of p. Not DyNet's.
  ShadowParameters(const ParameterStorage &p, std::shared_ptr<const TensorSource> source);
  ///@{
  /// The same numbers in memory of its own; none, if a source has them.
  ShadowParameters(const ShadowParameters &o);
  ShadowParameters &operator=(const ShadowParameters &o);
  ///@}
  ///@{
  /// Takes memory and source over.
  ShadowParameters(ShadowParameters &&) noexcept = default;
  ShadowParameters &operator=(ShadowParameters &&) noexcept = default;
  ///@}
  Tensor h; ///< the numbers, owned by this object

private:
  std::vector<float> memory_;
  std::shared_ptr<const TensorSource> source_;
};

/// A tensor in the shape of a table.
struct ShadowLookupParameters {
  /// A tensor without shape.
  ShadowLookupParameters() {}
  /// Zeros in the shape of lp.
  explicit ShadowLookupParameters(const LookupParameterStorage &lp);
  /// What source has, in the shape of lp, as a whole: h is empty. Not DyNet's.
  ShadowLookupParameters(const LookupParameterStorage &lp,
                         std::shared_ptr<const TensorSource> source);
  ///@{
  /// The same numbers in memory of its own; none, if a source has them.
  ShadowLookupParameters(const ShadowLookupParameters &o);
  ShadowLookupParameters &operator=(const ShadowLookupParameters &o);
  ///@}
  ///@{
  /// Takes memory and source over.
  ShadowLookupParameters(ShadowLookupParameters &&) noexcept = default;
  ShadowLookupParameters &operator=(ShadowLookupParameters &&) noexcept = default;
  ///@}
  Tensor all_h;          ///< all numbers, owned by this object
  std::vector<Tensor> h; ///< by row: the same numbers

private:
  void point(const Dim &row, Device *device);
  std::vector<float> memory_;
  std::shared_ptr<const TensorSource> source_;
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
