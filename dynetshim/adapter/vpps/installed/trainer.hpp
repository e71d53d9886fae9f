// The engine's side of a DyNet trainer.
#ifndef VPPS_INSTALLED_TRAINER_HPP
#define VPPS_INSTALLED_TRAINER_HPP

#include <dynet/training.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "parameters.hpp"

namespace vpps {
namespace installed {

// Follows the public fields of a trainer, and its model's parameters.
class engine_trainer {
public:
  engine_trainer(dynet::Trainer &fields, const std::type_info &rule)
      : fields_(fields), all_(parameters::all()) {
    if (rule != typeid(dynet::SimpleSGDTrainer))
      throw std::invalid_argument(
          std::string("libvpps has no rule for the trainer ") + rule.name() +
          ": use SimpleSGDTrainer, or train through vpps::accelerate and DyNet's own trainer");
  }
  ~engine_trainer() { vpps_trainer_destroy(raw_); }

  dynet::ParameterCollection &model() const { return *fields_.model; }

  // Brought up to date with fields and parameters.
  vpps_trainer *current() {
    vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
    o.learning_rate = fields_.learning_rate;
    o.clipping = fields_.clipping_enabled;
    o.clip_threshold = fields_.clip_threshold;
    o.sparse = fields_.sparse_updates_enabled;
    const auto &dense = model().parameters_list();
    const auto &tables = model().lookup_parameters_list();
    if (raw_ == nullptr) {
      const std::vector<uint32_t> ids = all_.ids(model());
      o.collection = all_.collection(model());
      check(vpps_trainer_create(all_.engine(), &o, ids.data(), ids.size(), &raw_));
    } else {
      o.collection = all_.collection(model());
      if (!same(o, sent_))
        check(vpps_trainer_set(raw_, &o));
      if (dense.size() != dense_ || tables.size() != tables_) {
        std::vector<uint32_t> made;
        for (size_t i = dense_; i < dense.size(); ++i)
          made.push_back(all_.of(dense[i]).id);
        for (size_t i = tables_; i < tables.size(); ++i)
          made.push_back(all_.of(tables[i]).id);
        check(vpps_trainer_add(raw_, made.data(), made.size()));
      }
    }
    sent_ = o;
    dense_ = dense.size();
    tables_ = tables.size();
    all_.tell_updated(model());
    return raw_;
  }

  // Applies the gradients that the engine has.
  void update() {
    int clipped = 0;
    check(vpps_update(current(), &clipped));
    ++all_.updates;
    count(clipped);
  }
  void count(uint64_t clips) {
    fields_.clips += static_cast<float>(clips);
    fields_.clips_since_status += static_cast<float>(clips);
  }
  void count_update() {
    ++fields_.updates;
    ++fields_.updates_since_status;
  }

private:
  engine_trainer(const engine_trainer &);
  engine_trainer &operator=(const engine_trainer &);
  static bool same(const vpps_trainer_options &a, const vpps_trainer_options &b) {
    return a.learning_rate == b.learning_rate && a.clipping == b.clipping &&
           a.clip_threshold == b.clip_threshold && a.sparse == b.sparse &&
           a.collection == b.collection;
  }

  dynet::Trainer &fields_;
  parameters &all_;
  vpps_trainer *raw_ = nullptr;
  size_t dense_ = 0, tables_ = 0;
  vpps_trainer_options sent_;
};

} // namespace installed
} // namespace vpps
#endif
