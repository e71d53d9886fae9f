// What an update rule remembers of each parameter.
#include "trainer_state.h"

namespace dynet {

RuleState::RuleState(const ParameterCollection &m, size_t vectors_each)
    : dense(m.unexposed_parameters().size()), vectors(vectors_each), updates(0) {
  auto add = [&](uint32_t id, size_t size) {
    ids.push_back(id);
    sizes.push_back(size);
    state.emplace_back(vectors * size);
  };
  for (const auto &p : m.unexposed_parameters())
    add(p->id, p->dim.size());
  for (const auto &p : m.unexposed_tables())
    add(p->id, p->all_dim.size());
}

size_t RuleState::vectors_of(uint32_t rule) {
  static const size_t vectors[] = {0, 1, 1, 2, 1, 2, 3, 1};
  return vectors[rule];
}

void RuleState::read(vpps_trainer *trainer, size_t parameters, size_t tables) {
  check(vpps_trainer_updates(trainer, &updates));
  for (size_t i = 0; vectors && i < ids.size(); i++)
    if (i < parameters || (i >= dense && i < dense + tables))
      check(vpps_trainer_read_state(trainer, ids[i], state[i].size(), state[i].data()));
}

void RuleState::write(vpps_trainer *trainer) const {
  for (size_t i = 0; vectors && i < ids.size(); i++)
    check(vpps_trainer_write_state(trainer, ids[i], state[i].size(), state[i].data()));
  check(vpps_trainer_set_updates(trainer, updates));
}

std::vector<float> RuleVector::read() const {
  std::vector<float> all(vectors_ * size_);
  check(vpps_trainer_read_state(trainer_, id_, all.size(), all.data()));
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(vector_ * size_);
  return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(size_));
}

// A trainer that was copied has copies of another's, which show nothing.
void Trainer::show(size_t vector, std::vector<ShadowParameters> &p,
                   std::vector<ShadowLookupParameters> &lp) const {
  if (!p.empty() && p[0].h.source == nullptr)
    p.clear();
  if (!lp.empty() && lp[0].all_h.source == nullptr)
    lp.clear();
  const size_t vectors = RuleState::vectors_of(sent_.rule);
  for (size_t i = p.size(); i < parameters_; ++i) {
    const ParameterStorage &s = *own_.unexposed_parameters()[i];
    p.emplace_back(s, std::make_shared<RuleVector>(trainer_, s.id, s.dim.size(), vector, vectors));
  }
  for (size_t i = lp.size(); i < tables_; ++i) {
    const LookupParameterStorage &s = *own_.unexposed_tables()[i];
    lp.emplace_back(
        s, std::make_shared<RuleVector>(trainer_, s.id, s.all_dim.size(), vector, vectors));
  }
}

} // namespace dynet
