// The expression functions of losses and softmaxes.
#include "dynet/expr.h"

#include "recording.h"

namespace dynet {

Expression softmax(const Expression &x, unsigned d) {
  return recorder.node(VPPS_OP_SOFTMAX, &x, 1, &d, 1);
}
Expression log_softmax(const Expression &x) { return checked(VPPS_OP_LOG_SOFTMAX, x); }
Expression log_softmax(const Expression &x, const std::vector<unsigned> &restriction) {
  Indices rows(restriction);
  uint32_t attrs[2] = {rows.at(), static_cast<uint32_t>(rows.n)};
  return rows.add(recorder.node(VPPS_OP_RESTRICTED_LOG_SOFTMAX, &x, 1, attrs, 2));
}

namespace {
Expression nll(const Expression &x, const Indices &v) {
  v.match("pickneglogsoftmax", x);
  uint32_t at = v.at();
  return v.add(recorder.node(VPPS_OP_PICK_NEG_LOG_SOFTMAX, &x, 1, &at, 1));
}
Expression hinge_loss(const Expression &x, const Indices &v, float m) {
  v.match("hinge", x);
  uint32_t attrs[2] = {float_bits(m), v.at()};
  return v.add(recorder.node(VPPS_OP_HINGE, &x, 1, attrs, 2));
}
} // namespace

Expression pickneglogsoftmax(const Expression &x, unsigned v) { return nll(x, v); }
Expression pickneglogsoftmax(const Expression &x, const unsigned *pv) { return nll(x, pv); }
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> &v) {
  return nll(x, v);
}
Expression pickneglogsoftmax(const Expression &x, const std::vector<unsigned> *pv) {
  return nll(x, pv);
}
Expression hinge(const Expression &x, unsigned index, float m) { return hinge_loss(x, index, m); }
Expression hinge(const Expression &x, const unsigned *pindex, float m) {
  return hinge_loss(x, pindex, m);
}
Expression hinge(const Expression &x, const std::vector<unsigned> &indices, float m) {
  return hinge_loss(x, indices, m);
}
Expression hinge(const Expression &x, const std::vector<unsigned> *pindices, float m) {
  return hinge_loss(x, pindices, m);
}

namespace {
Expression hinges(const Expression &x, const Indices &v, unsigned d, float m) {
  uint32_t attrs[4] = {float_bits(m), d, v.at(), static_cast<uint32_t>(v.n)};
  return v.add(recorder.node(VPPS_OP_HINGE_DIM, &x, 1, attrs, 4));
}
uint32_t total(const std::vector<std::vector<unsigned>> &lists) {
  size_t n = 0;
  for (const std::vector<unsigned> &v : lists)
    n += v.size();
  return static_cast<uint32_t>(n);
}
} // namespace

Expression hinge_dim(const Expression &x, const std::vector<unsigned> &indices, unsigned d,
                     float m) {
  return hinges(x, indices, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<unsigned> *pindex, unsigned d,
                     float m) {
  return hinges(x, pindex, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> &indices,
                     unsigned d, float m) {
  std::vector<unsigned> all;
  for (const std::vector<unsigned> &v : indices)
    all.insert(all.end(), v.begin(), v.end());
  return hinges(x, all, d, m);
}
Expression hinge_dim(const Expression &x, const std::vector<std::vector<unsigned>> *pindices,
                     unsigned d, float m) {
  uint32_t n = total(*given(pindices, "hinge_dim"));
  uint32_t attrs[4] = {float_bits(m), d, inputs_at(n), n};
  recorder.patches.room(pindices->size());
  Expression e = recorder.node(VPPS_OP_HINGE_DIM, &x, 1, attrs, 4);
  return append_lists_later(e, *pindices);
}
Expression sparsemax(const Expression &x) { return checked(VPPS_OP_SPARSEMAX, x); }

namespace {
Expression poisson(const Expression &x, const Indices &y) {
  uint32_t at = y.at();
  return y.add(recorder.node(VPPS_OP_POISSON_REGRESSION_LOSS, &x, 1, &at, 1));
}
} // namespace

Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> &target_support) {
  return listed(VPPS_OP_SPARSEMAX_LOSS, x, target_support);
}
Expression sparsemax_loss(const Expression &x, const std::vector<unsigned> *ptarget_support) {
  return listed(VPPS_OP_SPARSEMAX_LOSS, x, ptarget_support);
}
Expression constrained_softmax(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_CONSTRAINED_SOFTMAX, x, y);
}
Expression pairwise_rank_loss(const Expression &x, const Expression &y, real m) {
  Expression xy[2] = {x, y};
  uint32_t attr = float_bits(m);
  return recorder.node(VPPS_OP_PAIRWISE_RANK_LOSS, xy, 2, &attr, 1);
}
Expression poisson_loss(const Expression &x, unsigned y) { return poisson(x, y); }
Expression poisson_loss(const Expression &x, const unsigned *py) { return poisson(x, py); }
Expression binary_log_loss(const Expression &x, const Expression &y) {
  return binary(VPPS_OP_BINARY_LOG_LOSS, x, y);
}

} // namespace dynet
