// What a DyNet trainer's rule remembers of gradients, to and from the engine.
#ifndef VPPS_INSTALLED_RULE_STATE_HPP
#define VPPS_INSTALLED_RULE_STATE_HPP

#include <dynet/shadow-params.h>
#include <dynet/training.h>

#include <algorithm>
#include <cstdint>
#include <typeinfo>
#include <vector>

#include "parameters.hpp"
#include "reveal.hpp"

namespace vpps {
namespace installed {

typedef std::vector<dynet::ShadowParameters> shadows;
typedef std::vector<dynet::ShadowLookupParameters> table_shadows;
typedef unsigned allocation();

VPPS_REVEAL(Trainer, allocation, alloc_impl)
VPPS_REVEAL(Trainer, allocation, alloc_lookup_impl)
VPPS_REVEAL(MomentumSGDTrainer, shadows, vp)
VPPS_REVEAL(MomentumSGDTrainer, table_shadows, vlp)
VPPS_REVEAL(AdagradTrainer, shadows, vp)
VPPS_REVEAL(AdagradTrainer, table_shadows, vlp)
VPPS_REVEAL(AdadeltaTrainer, shadows, hg)
VPPS_REVEAL(AdadeltaTrainer, table_shadows, hlg)
VPPS_REVEAL(AdadeltaTrainer, shadows, hd)
VPPS_REVEAL(AdadeltaTrainer, table_shadows, hld)
VPPS_REVEAL(RMSPropTrainer, shadows, hmsg)
VPPS_REVEAL(RMSPropTrainer, table_shadows, hlmsg)
VPPS_REVEAL(AdamTrainer, shadows, m)
VPPS_REVEAL(AdamTrainer, table_shadows, lm)
VPPS_REVEAL(AdamTrainer, shadows, v)
VPPS_REVEAL(AdamTrainer, table_shadows, lv)
VPPS_REVEAL(AmsgradTrainer, shadows, m)
VPPS_REVEAL(AmsgradTrainer, table_shadows, lm)
VPPS_REVEAL(AmsgradTrainer, shadows, v)
VPPS_REVEAL(AmsgradTrainer, table_shadows, lv)
VPPS_REVEAL(AmsgradTrainer, shadows, vhat)
VPPS_REVEAL(AmsgradTrainer, table_shadows, lvhat)
VPPS_REVEAL(EGTrainer, shadows, hp)
VPPS_REVEAL(EGTrainer, table_shadows, hlp)

// A trainer's vectors of one kind, of all parameters and of all tables.
struct remembered {
  shadows *dense;
  table_shadows *tables;
};

// All of them, in the engine's order (vpps_trainer_read_state).
inline std::vector<remembered> remembered_of(dynet::Trainer &t) {
#define VPPS_KIND(Class, dense, tables)                                                            \
  {                                                                                                \
    &VPPS_HIDDEN(static_cast<dynet::Class &>(t), Class, dense),                                    \
        &VPPS_HIDDEN(static_cast<dynet::Class &>(t), Class, tables)                                \
  }
  const std::type_info &type = typeid(t);
  if (type == typeid(dynet::MomentumSGDTrainer))
    return {VPPS_KIND(MomentumSGDTrainer, vp, vlp)};
  if (type == typeid(dynet::AdagradTrainer))
    return {VPPS_KIND(AdagradTrainer, vp, vlp)};
  if (type == typeid(dynet::AdadeltaTrainer))
    return {VPPS_KIND(AdadeltaTrainer, hg, hlg), VPPS_KIND(AdadeltaTrainer, hd, hld)};
  if (type == typeid(dynet::RMSPropTrainer))
    return {VPPS_KIND(RMSPropTrainer, hmsg, hlmsg)};
  if (type == typeid(dynet::AdamTrainer))
    return {VPPS_KIND(AdamTrainer, m, lm), VPPS_KIND(AdamTrainer, v, lv)};
  if (type == typeid(dynet::AmsgradTrainer))
    return {VPPS_KIND(AmsgradTrainer, m, lm), VPPS_KIND(AmsgradTrainer, v, lv),
            VPPS_KIND(AmsgradTrainer, vhat, lvhat)};
  if (type == typeid(dynet::EGTrainer))
    return {VPPS_KIND(EGTrainer, hp, hlp)};
#undef VPPS_KIND
  return {}; // SGD
}

// The engine's rule goes on where DyNet's is.
class to_engine {
public:
  explicit to_engine(vpps_trainer *raw) : raw_(raw) {}
  void operator()(uint32_t id, const std::vector<dynet::Tensor *> &vectors) const {
    std::vector<float> all;
    for (const dynet::Tensor *v : vectors)
      all.insert(all.end(), v->v, v->v + v->d.size());
    check(vpps_trainer_write_state(raw_, id, all.size(), all.data()));
  }

private:
  vpps_trainer *raw_;
};

// And the other way round.
class from_engine {
public:
  explicit from_engine(vpps_trainer *raw) : raw_(raw) {}
  void operator()(uint32_t id, const std::vector<dynet::Tensor *> &vectors) const {
    std::vector<float> all(vectors.size() * vectors[0]->d.size());
    check(vpps_trainer_read_state(raw_, id, all.size(), all.data()));
    const float *from = all.data();
    for (dynet::Tensor *v : vectors) {
      std::copy_n(from, v->d.size(), v->v);
      from += v->d.size();
    }
  }

private:
  vpps_trainer *raw_;
};

// Does so for each parameter and table of which DyNet's trainer has vectors.
template <class Copy> void copy_state(dynet::Trainer &t, parameters &all, const Copy &copy) {
  const std::vector<remembered> kinds = remembered_of(t);
  if (kinds.empty())
    return;
  std::vector<dynet::Tensor *> vectors(kinds.size());
  const auto &dense = t.model->parameters_list();
  for (size_t i = 0; i < std::min<size_t>(dense.size(), t.aux_allocated); ++i) {
    for (size_t k = 0; k < kinds.size(); ++k)
      vectors[k] = &(*kinds[k].dense)[i].h;
    copy(all.of(dense[i]).id, vectors);
  }
  const auto &tables = t.model->lookup_parameters_list();
  for (size_t i = 0; i < std::min<size_t>(tables.size(), t.aux_allocated_lookup); ++i) {
    for (size_t k = 0; k < kinds.size(); ++k)
      vectors[k] = &(*kinds[k].tables)[i].all_h;
    copy(all.of(tables[i]).id, vectors);
  }
}

// Vectors for all parameters, those of new ones too, as DyNet's update makes them.
inline void allocate_state(dynet::Trainer &t) {
  if (t.aux_allocated < t.model->parameters_list().size())
    t.aux_allocated = VPPS_HIDDEN(t, Trainer, alloc_impl)();
  if (t.aux_allocated_lookup < t.model->lookup_parameters_list().size())
    t.aux_allocated_lookup = VPPS_HIDDEN(t, Trainer, alloc_lookup_impl)();
}

} // namespace installed
} // namespace vpps
#endif
