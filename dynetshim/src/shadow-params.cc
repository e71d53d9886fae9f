// Shadows of parameters in host memory.
#include "dynet/shadow-params.h"

#include <utility>

#include "dynet/model.h"

namespace dynet {

ShadowParameters::ShadowParameters(const ParameterStorage &p) : memory_(p.dim.size()) {
  h = Tensor(p.dim, memory_.data(), p.device, DeviceMempool::PS);
}

ShadowParameters::ShadowParameters(const ParameterStorage &p,
                                   std::shared_ptr<const TensorSource> source)
    : h(p.dim, nullptr, p.device, DeviceMempool::PS), source_(std::move(source)) {
  h.source = source_.get();
}

ShadowParameters::ShadowParameters(const ShadowParameters &o) : h(o.h), memory_(o.memory_) {
  h.v = memory_.empty() ? nullptr : memory_.data();
  h.source = nullptr;
}

ShadowParameters &ShadowParameters::operator=(const ShadowParameters &o) {
  return *this = ShadowParameters(o);
}

ShadowLookupParameters::ShadowLookupParameters(const LookupParameterStorage &lp)
    : memory_(lp.all_dim.size()) {
  all_h.d = lp.all_dim;
  h.resize(lp.all_dim[lp.all_dim.nd - 1]);
  point(lp.dim, lp.device);
}

ShadowLookupParameters::ShadowLookupParameters(const LookupParameterStorage &lp,
                                               std::shared_ptr<const TensorSource> source)
    : all_h(lp.all_dim, nullptr, lp.device, DeviceMempool::PS), source_(std::move(source)) {
  all_h.source = source_.get();
}

ShadowLookupParameters::ShadowLookupParameters(const ShadowLookupParameters &o)
    : all_h(o.all_h), h(o.h), memory_(o.memory_) {
  all_h.source = nullptr;
  if (!h.empty())
    point(h[0].d, all_h.device);
}

ShadowLookupParameters &ShadowLookupParameters::operator=(const ShadowLookupParameters &o) {
  return *this = ShadowLookupParameters(o);
}

void ShadowLookupParameters::point(const Dim &row, Device *device) {
  const Dim shape = row; // may be of h
  all_h = Tensor(all_h.d, memory_.data(), device, DeviceMempool::PS);
  for (size_t i = 0; i < h.size(); ++i)
    h[i] = Tensor(shape, memory_.data() + i * shape.size(), device, DeviceMempool::PS);
}

void allocate_shadow_parameters(const ParameterCollection &model, unsigned allocated,
                                std::vector<ShadowParameters> &target) {
  const auto &all = model.unexposed_parameters();
  for (size_t i = allocated; i < all.size(); ++i)
    target.push_back(ShadowParameters(*all[i]));
}

void allocate_shadow_lookup_parameters(const ParameterCollection &model, unsigned allocated,
                                       std::vector<ShadowLookupParameters> &target) {
  const auto &all = model.unexposed_tables();
  for (size_t i = allocated; i < all.size(); ++i)
    target.push_back(ShadowLookupParameters(*all[i]));
}

} // namespace dynet
