/// \file
/// Eigen's view of tensors, for programs that have Eigen (a compiler's option -I names its folder,
/// or it is in eigen3 of the system's headers). Without Eigen the functions cannot be called. All
/// maps are over the tensor's memory, which stays its owner's.
#ifndef DYNET_TENSOR_EIGEN_H
#define DYNET_TENSOR_EIGEN_H

#include <array>
#include <stdexcept>
#include <string>

#include "dynet/tensor.h"

/// \cond
#if defined(__has_include)
#if __has_include(<unsupported/Eigen/CXX11/Tensor>)
#define DYNET_HAS_EIGEN 1
#include <Eigen/Eigen>
#include <unsupported/Eigen/CXX11/Tensor>
#elif __has_include(<eigen3/unsupported/Eigen/CXX11/Tensor>)
#define DYNET_HAS_EIGEN 1
#include <eigen3/Eigen/Eigen>
#include <eigen3/unsupported/Eigen/CXX11/Tensor>
#endif
#endif
/// \endcond

#ifdef DYNET_HAS_EIGEN
namespace dynet {

/// A map over floats with Order axes.
template <int Order> using EigenTensor = Eigen::TensorMap<Eigen::Tensor<float, Order>>;

/// \cond
namespace detail {
// The sizes of the first Order axes. Elements on further ones: std::invalid_argument.
template <int Order> std::array<Eigen::DenseIndex, Order> eigen_sizes(const Tensor &x, int axes) {
  std::array<Eigen::DenseIndex, Order> sizes;
  sizes.fill(1);
  Eigen::DenseIndex elements = 1;
  for (int i = 0; i < axes; ++i)
    elements *= sizes[static_cast<size_t>(i)] = x.d[static_cast<unsigned>(i)];
  if (elements != static_cast<Eigen::DenseIndex>(x.d.batch_size()))
    throw std::invalid_argument("a tensor of " + std::to_string(x.d.nd) + " axes seen as one of " +
                                std::to_string(axes));
  return sizes;
}
} // namespace detail
/// \endcond

///@{
/// A vector or matrix without a batch, as a matrix. Another shape: std::invalid_argument.
inline Eigen::Map<Eigen::MatrixXf> mat(Tensor &x) {
  if (x.d.bd != 1 || x.d.nd > 2)
    throw std::invalid_argument("mat: the tensor has a batch or more than two axes");
  return Eigen::Map<Eigen::MatrixXf>(x.v, x.d.rows(), x.d.cols());
}
inline const Eigen::Map<Eigen::MatrixXf> mat(const Tensor &x) {
  Tensor same(x);
  return mat(same);
}
///@}
///@{
/// All elements, as a vector.
inline Eigen::Map<Eigen::VectorXf> vec(Tensor &x) {
  return Eigen::Map<Eigen::VectorXf>(x.v, x.d.size());
}
inline const Eigen::Map<Eigen::VectorXf> vec(const Tensor &x) {
  return Eigen::Map<Eigen::VectorXf>(x.v, x.d.size());
}
///@}
///@{
/// All elements, as a tensor of one axis.
inline EigenTensor<1> tvec(Tensor &x) { return EigenTensor<1>(x.v, x.d.size()); }
inline const EigenTensor<1> tvec(const Tensor &x) { return EigenTensor<1>(x.v, x.d.size()); }
///@}
///@{
/// A tensor of two axes: the elements of a batch element, and the batch.
inline EigenTensor<2> tbvec(Tensor &x) { return EigenTensor<2>(x.v, x.d.batch_size(), x.d.bd); }
inline const EigenTensor<2> tbvec(const Tensor &x) {
  return EigenTensor<2>(x.v, x.d.batch_size(), x.d.bd);
}
///@}
///@{
/// A tensor of Order axes, without a batch. More axes than Order, or a batch:
/// std::invalid_argument.
template <int Order> EigenTensor<Order> t(Tensor &x) {
  if (x.d.bd != 1)
    throw std::invalid_argument("t: the tensor has a batch; use tb");
  return EigenTensor<Order>(x.v, detail::eigen_sizes<Order>(x, Order));
}
template <int Order> const EigenTensor<Order> t(const Tensor &x) {
  Tensor same(x);
  return t<Order>(same);
}
///@}
///@{
/// A tensor of Order axes, and the batch. More axes than Order: std::invalid_argument.
template <int Order> EigenTensor<Order + 1> tb(Tensor &x) {
  std::array<Eigen::DenseIndex, Order + 1> sizes = detail::eigen_sizes<Order + 1>(x, Order);
  sizes[Order] = x.d.bd;
  return EigenTensor<Order + 1>(x.v, sizes);
}
template <int Order> const EigenTensor<Order + 1> tb(const Tensor &x) {
  Tensor same(x);
  return tb<Order>(same);
}
///@}
///@{
/// A batch element as a matrix; without a batch always the only one.
inline Eigen::Map<Eigen::MatrixXf> batch_matrix(Tensor &x, unsigned b) {
  return Eigen::Map<Eigen::MatrixXf>(x.batch_ptr(b % x.d.bd), x.d.rows(), x.d.cols());
}
inline const Eigen::Map<Eigen::MatrixXf> batch_matrix(const Tensor &x, unsigned b) {
  Tensor same(x);
  return batch_matrix(same, b);
}
///@}
///@{
/// A matrix with a column for each batch element.
inline Eigen::Map<Eigen::MatrixXf> rowcol_matrix(Tensor &x) {
  return Eigen::Map<Eigen::MatrixXf>(x.v, x.d.rows() * x.d.cols(), x.d.bd);
}
inline const Eigen::Map<Eigen::MatrixXf> rowcol_matrix(const Tensor &x) {
  return Eigen::Map<Eigen::MatrixXf>(x.v, x.d.rows() * x.d.cols(), x.d.bd);
}
///@}
///@{
/// A matrix with the columns of all batch elements.
inline Eigen::Map<Eigen::MatrixXf> colbatch_matrix(Tensor &x) {
  return Eigen::Map<Eigen::MatrixXf>(x.v, x.d.rows(), x.d.cols() * x.d.bd);
}
inline const Eigen::Map<Eigen::MatrixXf> colbatch_matrix(const Tensor &x) {
  return Eigen::Map<Eigen::MatrixXf>(x.v, x.d.rows(), x.d.cols() * x.d.bd);
}
///@}

} // namespace dynet
#else
namespace dynet {

///@{
/// Without Eigen these cannot be called.
template <int Order> void t(const Tensor &) = delete;
template <int Order> void tb(const Tensor &) = delete;
void mat(const Tensor &) = delete;
void vec(const Tensor &) = delete;
void tvec(const Tensor &) = delete;
void tbvec(const Tensor &) = delete;
void batch_matrix(const Tensor &, unsigned) = delete;
void rowcol_matrix(const Tensor &) = delete;
void colbatch_matrix(const Tensor &) = delete;
///@}

} // namespace dynet
#endif
#endif
