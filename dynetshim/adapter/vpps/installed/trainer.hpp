// The engine's side of a DyNet trainer.
#ifndef VPPS_INSTALLED_TRAINER_HPP
#define VPPS_INSTALLED_TRAINER_HPP

#include <dynet/training.h>

#include <istream>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gradients.hpp"
#include "life.hpp"
#include "parameters.hpp"
#include "rule_state.hpp"
#include "rules.hpp"

namespace vpps {
namespace installed {

// Ends the work of the vpps::trainer that accelerate() has made for t, if there is one.
inline void hand_back(dynet::Trainer &t);

// Follows the public fields of a trainer, and its model's parameters.
class engine_trainer {
public:
  // The rule and its hyper-parameters are rule's, the other fields those of fields.
  engine_trainer(dynet::Trainer &fields, dynet::Trainer &rule)
      : fields_(fields), rule_(rule), all_(parameters::all()), model_(*fields.model) {
    hand_back(rule);
    vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
    if (!describe(rule, o))
      throw std::invalid_argument(
          std::string("libvpps has no rule for the trainer ") + typeid(rule).name() +
          ": use another, or train through vpps::accelerate and DyNet's own trainer");
  }

  // Whether the engine can do what the trainer does.
  static bool can_do(dynet::Trainer &rule) {
    vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
    return describe(rule, o) && !averages(rule, 0);
  }
  ~engine_trainer() { vpps_trainer_destroy(raw_); }

  dynet::ParameterCollection &model() { return model_.get("its trainer"); }
  bool model_is_there() const { return model_.there(); }

  // Brought up to date with fields and parameters, to train.
  vpps_trainer *current() {
    if (averages(fields_, 0) || averages(rule_, 0))
      throw std::invalid_argument("libvpps keeps no moving averages of parameters: train through "
                                  "vpps::accelerate and DyNet's own trainer");
    return synced();
  }

  // Applies the gradients that the engine has.
  void update() {
    int clipped = 0;
    vpps_trainer *const raw = current();
    check(while_waiting([&] { return vpps_update(raw, &clipped); }));
    ++all_.updates;
    count(clipped > 0);
    count_update();
  }
  void count(uint64_t clips) {
    fields_.clips += static_cast<float>(clips);
    fields_.clips_since_status += static_cast<float>(clips);
  }
  void count_update() {
    ++fields_.updates;
    ++fields_.updates_since_status;
    const dynet::real rate = rule_.learning_rate;
    if (cycles_)
      after_update(rule_);
    if (rule_.learning_rate != rate) // a cyclical one
      fields_.learning_rate = rule_.learning_rate;
  }
  void forget() { check(vpps_trainer_restart(current())); }
  // From now on somebody else moves a cyclical learning rate on.
  void leave_cycle() { cycles_ = false; }

  // What the rule remembers, from DyNet's memory and into it.
  void push_state() {
    vpps_trainer *const raw = synced();
    copy_state(rule_, all_, to_engine(raw));
    check(vpps_trainer_set_updates(raw, count_of(rule_.updates)));
  }
  void pull_state() {
    vpps_trainer *const raw = synced();
    if (remembered_of(rule_).empty())
      return;
    uint64_t made = 0;
    check(vpps_trainer_updates(raw, &made));
    allocate_state(rule_);
    copy_state(rule_, all_, from_engine(raw));
    // Of batches that failed the rule remembers nothing, so its correction may not count them.
    rule_.updates = fields_.updates = static_cast<dynet::real>(made);
  }

private:
  vpps_trainer *synced() {
    vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
    describe(rule_, o);
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

  engine_trainer(const engine_trainer &);
  engine_trainer &operator=(const engine_trainer &);
  // DyNet counts in a float, which a program may set and a file may bring.
  static uint64_t count_of(dynet::real updates) {
    if (!(updates >= 0 && updates <= 9007199254740992.0f)) // 2^53
      throw std::invalid_argument("a trainer's `updates` is " + std::to_string(updates) +
                                  ": it must be a count from 0 to 2^53");
    return static_cast<uint64_t>(updates);
  }
  static bool same(const vpps_trainer_options &a, const vpps_trainer_options &b) {
    return a.learning_rate == b.learning_rate && a.clipping == b.clipping &&
           a.clip_threshold == b.clip_threshold && a.sparse == b.sparse &&
           a.collection == b.collection && a.momentum == b.momentum && a.rho == b.rho &&
           a.epsilon == b.epsilon && a.beta_1 == b.beta_1 && a.beta_2 == b.beta_2;
  }

  dynet::Trainer &fields_;
  dynet::Trainer &rule_;
  parameters &all_;
  kept_model model_;
  vpps_trainer *raw_ = nullptr;
  size_t dense_ = 0, tables_ = 0;
  bool cycles_ = true;
  vpps_trainer_options sent_;
};

// What destructors do, who can tell nobody of errors. A batch that failed is told of once, by
// whoever asks first: behind that its parameters are as they were before it.
template <class Do> void at_the_end(const Do &something) {
  for (int attempts = 0; attempts < 2; ++attempts)
    try {
      return something();
    } catch (...) {
    }
}

class deputies;

// A trainer whose save and populate are those of another. DyNet 2.1 has neither.
template <class Trainer, class = void> class saved_as_another : public Trainer {
protected:
  using Trainer::Trainer;
  virtual Trainer &saved() = 0;
  virtual void populated() = 0;
};
template <class Trainer>
class saved_as_another<Trainer,
                       decltype(std::declval<Trainer &>().save(std::declval<std::ostream &>()))>
    : public Trainer {
public:
  void save(std::ostream &to) override { saved().save(to); }
  void populate(std::istream &from) override {
    saved().populate(from);
    populated();
  }
  using Trainer::populate;

protected:
  using Trainer::Trainer;
  virtual Trainer &saved() = 0; // the other one, up to date
  virtual void populated() = 0; // it has been
};

} // namespace installed

// Wraps a trainer of DyNet's whose update() then runs where the parameters live:
//
//   dynet::SimpleSGDTrainer sgd(model);
//   vpps::trainer trainer(sgd);
//
// It is a dynet::Trainer; fields may be set on either. On the CPU the parameters of DyNet and their
// gradients move into the engine's memory. Elsewhere DyNet's memory has the gradients after every
// backward and the new values after every update, unless defer_copies is set: then both are NaN
// there and vpps::pull(model) has to come before saving. What a rule remembers of gradients is in
// the engine's memory: save(), populate() and restart() of this object know it, the wrapped trainer
// has it again at the end of this one. Trainers that keep moving averages or are not DyNet's go on
// working as they did, on the host. The wrapped trainer must outlive this object, the model only
// its calls.
class trainer : public installed::saved_as_another<dynet::Trainer> {
public:
  explicit trainer(dynet::Trainer &wrapped)
      : saved_as_another(*wrapped.model, wrapped.learning_rate), wrapped_(wrapped),
        all_(installed::parameters::all()), gradients_(all_), kept_(*wrapped.model) {
    const installed::turn mine;
    take();
    if (installed::engine_trainer::can_do(wrapped)) {
      engine_.reset(new installed::engine_trainer(*this, wrapped));
      engine_->push_state();
    }
    govern();
  }
  ~trainer() override {
    const installed::turn mine;
    if (engine_ && engine_->model_is_there())
      installed::at_the_end([this] { engine_->pull_state(); });
    release();
  }

  bool defer_copies = false;

  void update() override {
    const installed::turn mine;
    (void)kept_.get("its trainer");
    take();
    if (installed::averages(*this, 0))
      throw std::invalid_argument("a moving average was set on a vpps::trainer: set it on the "
                                  "trainer that it wraps, which keeps it");
    if (engine_ && installed::averages(wrapped_, 0))
      work_on_the_host();
    if (!engine_) {
      wrapped_.update();
      give();
      return;
    }
    govern();
    installed::gradients &gradients = gradients_;
    all_.each(*model, [&gradients](installed::parameter_record &r) { gradients.give(r); });
    const std::vector<rows> changed = touched();
    engine_->update();
    all_.each(*model, [&gradients](installed::parameter_record &r) { gradients.applied(r); });
    give();
    copy(changed);
  }
  void restart() override {
    const installed::turn mine;
    (void)kept_.get("its trainer");
    wrapped_.restart();
    if (engine_)
      engine_->forget();
  }
  using dynet::Trainer::restart;

protected:
  // DyNet's own update would call these.
  void update_rule(dynet::real, const std::vector<dynet::Tensor *> &) override { refuse(); }
  void update_params(dynet::real, size_t) override { refuse(); }
  void update_lookup_params(dynet::real, size_t, size_t) override { refuse(); }
  void update_lookup_params(dynet::real, size_t) override { refuse(); }

  dynet::Trainer &saved() override {
    const installed::turn mine;
    take();
    if (engine_)
      engine_->pull_state();
    return wrapped_;
  }
  void populated() override {
    const installed::turn mine;
    take();
    updates = wrapped_.updates;
    if (engine_)
      engine_->push_state();
  }

private:
  friend class installed::deputies;

  struct rows {
    installed::parameter_record *table;
    std::vector<uint32_t> numbers;
    bool whole;
  };
  struct fields {
    dynet::real learning_rate, clip_threshold, clips, updates, clips_since, updates_since;
    bool clipping, sparse;
  };

  [[noreturn]] static void refuse() {
    throw std::logic_error("vpps::trainer: update() does not take this way");
  }

  // A field that was set on the wrapped trainer since counts.
  void take() {
    const fields f = of(wrapped_);
    if (!seen_ || f.learning_rate != last_.learning_rate)
      learning_rate = f.learning_rate;
    if (!seen_ || f.clip_threshold != last_.clip_threshold)
      clip_threshold = f.clip_threshold;
    if (!seen_ || f.clipping != last_.clipping)
      clipping_enabled = f.clipping;
    if (!seen_ || f.sparse != last_.sparse)
      sparse_updates_enabled = f.sparse;
    if (!seen_) {
      clips = f.clips;
      updates = f.updates;
    }
    if (f.clips_since != last_.clips_since) // status() was called there
      clips_since_status = f.clips_since;
    if (f.updates_since != last_.updates_since)
      updates_since_status = f.updates_since;
    wrapped_.learning_rate = learning_rate;
    wrapped_.clip_threshold = clip_threshold;
    wrapped_.clipping_enabled = clipping_enabled;
    wrapped_.sparse_updates_enabled = sparse_updates_enabled;
    last_ = of(wrapped_);
    seen_ = true;
  }
  // And what an update has changed is seen on both.
  void give() {
    dynet::Trainer &from = engine_ ? static_cast<dynet::Trainer &>(*this) : wrapped_;
    dynet::Trainer &to = engine_ ? wrapped_ : static_cast<dynet::Trainer &>(*this);
    to.learning_rate = from.learning_rate; // cyclical ones change it
    to.clips = from.clips;
    to.updates = from.updates;
    to.clips_since_status = from.clips_since_status;
    to.updates_since_status = from.updates_since_status;
    last_ = of(wrapped_);
  }
  static fields of(const dynet::Trainer &t) {
    const fields f = {t.learning_rate,    t.clip_threshold,        t.clips,
                      t.updates,          t.clips_since_status,    t.updates_since_status,
                      t.clipping_enabled, t.sparse_updates_enabled};
    return f;
  }

  // The engine updates the model's parameters, new ones too.
  void govern() {
    if (!engine_)
      return;
    const auto all = model->get_parameter_storages_base();
    for (size_t k = governed_.size(); k < all.size(); ++k) {
      auto dense = std::dynamic_pointer_cast<dynet::ParameterStorage>(all[k]);
      auto table = std::dynamic_pointer_cast<dynet::LookupParameterStorage>(all[k]);
      installed::parameter_record &r = all_.changeable(dense ? all_.of(dense) : all_.of(table));
      all_.share(r);
      gradients_.govern(r);
      r.defer = &defer_copies;
      governed_.push_back(all[k]);
    }
  }
  void release() {
    for (const std::shared_ptr<dynet::ParameterStorageBase> &p : governed_) {
      installed::parameter_record *r = all_.known(p);
      if (r == nullptr)
        continue;
      installed::at_the_end([this, r] { gradients_.release(*r); });
      if (r->defer == &defer_copies)
        r->defer = nullptr;
    }
    governed_.clear();
  }
  void work_on_the_host() {
    engine_->pull_state();
    all_.refresh();
    release();
    engine_.reset();
  }

  std::vector<rows> touched() {
    std::vector<rows> changed;
    if (defer_copies)
      return changed;
    all_.each(*model, [this, &changed](installed::parameter_record &r) {
      if (!r.table || r.own || !r.wanted_updated())
        return;
      rows t = {&r, {}, false};
      t.numbers = all_.touched(r, t.whole);
      changed.push_back(t);
    });
    return changed;
  }

  void copy(const std::vector<rows> &changed) {
    if (defer_copies) {
      all_.each(*model, [this](installed::parameter_record &r) { all_.leave_behind(r); });
      return;
    }
    if (all_.pull_decay(*model)) { // a rescaling changes everything
      all_.pull(*model);
      return;
    }
    all_.each(*model, [this](installed::parameter_record &r) {
      if (r.dense && !r.own && r.wanted_updated())
        all_.pull(r);
    });
    for (const rows &t : changed) {
      if (t.whole || !sparse_updates_enabled)
        all_.pull(*t.table);
      else
        for (uint32_t n : t.numbers)
          all_.pull(*t.table, n * t.table->row(), t.table->row());
    }
  }

  dynet::Trainer &wrapped_;
  installed::parameters &all_;
  installed::gradients gradients_;
  installed::kept_model kept_;
  std::unique_ptr<installed::engine_trainer> engine_; // none: the wrapped trainer's own rule
  std::vector<std::shared_ptr<dynet::ParameterStorageBase>> governed_;
  fields last_ = {};
  bool seen_ = false;
};

namespace installed {

// The vpps::trainer of each of DyNet's trainers that accelerate() has taken over.
class deputies {
public:
  static deputies &all() {
    static deputies *d = new deputies; // lives on: static trainers outlive other statics
    return *d;
  }

  // Null: DyNet works for itself.
  trainer *of(dynet::Trainer &t) const {
    const auto at = made_.find(&t);
    return at == made_.end() ? nullptr : at->second.get();
  }
  // The same, made now if the engine can do what the trainer does.
  trainer *made_for(dynet::Trainer &t) {
    trainer *d = of(t);
    if (d != nullptr || !engine_trainer::can_do(t))
      return d;
    d = new trainer(t);
    made_[&t].reset(d);
    d->engine_->leave_cycle(); // DyNet's own update() does that after the call that came here
    return d;
  }
  // Brings what the rule remembers into DyNet's memory.
  void end(dynet::Trainer &t) {
    const auto at = made_.find(&t);
    if (at == made_.end())
      return;
    const std::unique_ptr<trainer> last(std::move(at->second)); // its end asks for it again
    made_.erase(at);
  }
  // The trainer is being destroyed, and with it what it remembers.
  void forget(dynet::Trainer &t) {
    if (trainer *d = of(t))
      d->engine_.reset();
    end(t);
  }

private:
  std::unordered_map<dynet::Trainer *, std::unique_ptr<trainer>> made_;
};

inline void hand_back(dynet::Trainer &t) { deputies::all().end(t); }

} // namespace installed

// The engine's parameters into DyNet's own memory, and the other way round: after the program
// has written rows of tables, or single values.
inline void pull(dynet::ParameterCollection &model) {
  const installed::turn mine;
  installed::parameters::all().pull(model);
}
inline void push(dynet::ParameterCollection &model) {
  const installed::turn mine;
  installed::parameters::all().push(model);
}

} // namespace vpps
#endif
