// Trainers: the engine does the arithmetic; here are the fields and their bookkeeping.
#include "dynet/training.h"

#include <cmath>
#include <iostream>
#include <utility>

#include "recorder.h"
#include "trainer_state.h"

namespace dynet {

static bool same(const vpps_trainer_options &a, const vpps_trainer_options &b) {
  return a.rule == b.rule && a.learning_rate == b.learning_rate && a.clipping == b.clipping &&
         a.clip_threshold == b.clip_threshold && a.sparse == b.sparse &&
         a.collection == b.collection && a.momentum == b.momentum && a.rho == b.rho &&
         a.epsilon == b.epsilon && a.beta_1 == b.beta_1 && a.beta_2 == b.beta_2;
}

Trainer::Trainer(ParameterCollection &m, real learning_rate)
    : learning_rate(learning_rate), clipping_enabled(true), clip_threshold(5), clips(0), updates(0),
      clips_since_status(0), updates_since_status(0), sparse_updates_enabled(true), model(&m),
      ema_beta(0), ma_mode(MovingAverage::None), ma_params_swapped(false), ma_params_saved(false),
      ma_update_freq(1), ma_updates(0), own_(m), engine_(engine("a Trainer is made")),
      trainer_(nullptr), parameters_(0), tables_(0), sent_() {}

// What a trainer has but for averages and the engine's part.
void Trainer::take_fields(const Trainer &o) noexcept {
  learning_rate = o.learning_rate;
  clipping_enabled = o.clipping_enabled;
  clip_threshold = o.clip_threshold;
  clips = o.clips;
  updates = o.updates;
  clips_since_status = o.clips_since_status;
  updates_since_status = o.updates_since_status;
  sparse_updates_enabled = o.sparse_updates_enabled;
  model = o.model;
  ema_beta = o.ema_beta;
  ma_mode = o.ma_mode;
  ma_params_swapped = o.ma_params_swapped;
  ma_params_saved = o.ma_params_saved;
  ma_update_freq = o.ma_update_freq;
  ma_updates = o.ma_updates;
  own_ = o.own_;
  engine_ = o.engine_;
}

// Exchanges averages and the engine's part.
void Trainer::take_rule(Trainer &o) noexcept {
  ma_p.swap(o.ma_p);
  ma_lp.swap(o.ma_lp);
  ma_saved_p.swap(o.ma_saved_p);
  ma_saved_lp.swap(o.ma_saved_lp);
  std::swap(trainer_, o.trainer_);
  std::swap(parameters_, o.parameters_);
  std::swap(tables_, o.tables_);
  std::swap(sent_, o.sent_);
  inherited_.swap(o.inherited_);
}

std::shared_ptr<const RuleState> Trainer::rule_state() const {
  if (trainer_ == nullptr)
    return inherited_;
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  describe(o);
  std::shared_ptr<RuleState> s = std::make_shared<RuleState>(own_, RuleState::vectors_of(o.rule));
  s->read(trainer_, parameters_, tables_);
  return s;
}

// What is left of a trainer that was moved from.
void Trainer::forget_updates() noexcept {
  updates = 0;
  ma_updates = 0;
  ma_params_swapped = ma_params_saved = false;
}

Trainer::Trainer(const Trainer &o)
    : ma_p(o.ma_p), ma_lp(o.ma_lp), ma_saved_p(o.ma_saved_p), ma_saved_lp(o.ma_saved_lp),
      own_(o.own_), trainer_(nullptr), parameters_(0), tables_(0), sent_(),
      inherited_(o.rule_state()) {
  take_fields(o);
}

Trainer::Trainer(Trainer &&o) noexcept
    : own_(o.own_), trainer_(nullptr), parameters_(0), tables_(0), sent_() {
  take_fields(o);
  take_rule(o);
  o.forget_updates();
}

Trainer &Trainer::operator=(const Trainer &o) {
  if (this == &o)
    return *this;
  std::shared_ptr<const RuleState> state = o.rule_state();
  ma_p = o.ma_p;
  ma_lp = o.ma_lp;
  ma_saved_p = o.ma_saved_p;
  ma_saved_lp = o.ma_saved_lp;
  vpps_trainer_destroy(trainer_);
  trainer_ = nullptr;
  parameters_ = tables_ = 0;
  inherited_ = state;
  take_fields(o);
  return *this;
}

Trainer &Trainer::operator=(Trainer &&o) noexcept {
  if (this == &o)
    return *this;
  vpps_trainer_destroy(trainer_);
  trainer_ = nullptr;
  parameters_ = tables_ = 0;
  inherited_.reset();
  for (auto *mine : {&ma_p, &ma_saved_p})
    mine->clear();
  for (auto *mine : {&ma_lp, &ma_saved_lp})
    mine->clear();
  take_fields(o);
  take_rule(o);
  o.forget_updates();
  return *this;
}

Trainer::~Trainer() { vpps_trainer_destroy(trainer_); }

vpps_trainer *Trainer::engine_trainer() {
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  describe(o);
  o.learning_rate = learning_rate;
  o.clipping = clipping_enabled;
  o.clip_threshold = clip_threshold;
  o.sparse = sparse_updates_enabled;
  o.collection = own_.get_weight_decay().collection();

  const auto &parameters = own_.unexposed_parameters();
  const auto &tables = own_.unexposed_tables();
  if (trainer_ == nullptr) {
    std::vector<uint32_t> ids = own_.engine_ids();
    check(vpps_trainer_create(engine_->raw, &o, ids.data(), ids.size(), &trainer_));
    if (inherited_)
      inherited_->write(trainer_);
    inherited_.reset();
  } else {
    if (!same(o, sent_))
      check(vpps_trainer_set(trainer_, &o));
    if (parameters.size() != parameters_ || tables.size() != tables_) {
      std::vector<uint32_t> made;
      for (size_t i = parameters_; i < parameters.size(); ++i)
        made.push_back(parameters[i]->id);
      for (size_t i = tables_; i < tables.size(); ++i)
        made.push_back(tables[i]->id);
      check(vpps_trainer_add(trainer_, made.data(), made.size()));
    }
  }
  sent_ = o;
  parameters_ = parameters.size();
  tables_ = tables.size();

  // `updated` is a plain field that programs set as they like.
  for (auto &p : parameters)
    tell_updated(*p);
  for (auto &p : tables)
    tell_updated(*p);
  return trainer_;
}

void Trainer::tell_updated(ParameterStorageBase &p) {
  if (p.updated == p.engine_updated_)
    return;
  check(vpps_parameter_set_updated(engine_->raw, p.id, p.updated));
  p.engine_updated_ = p.updated;
}

void Trainer::update() {
  engine_trainer();
  recorder.settle();
  int clipped = 0;
  check(vpps_update(trainer_, &clipped));
  if (clipped) {
    ++clips;
    ++clips_since_status;
  }
  ++engine_->updates;
  updated_by_engine();
}

void Trainer::updated_by_engine() {
  const bool averages =
      ma_mode != MovingAverage::None && static_cast<unsigned>(updates) % ma_update_freq == 0;
  ++updates;
  ++updates_since_status;
  for (auto &p : own_.unexposed_parameters())
    if (p->updated)
      p->nonzero_grad = false;
  for (auto &p : own_.unexposed_tables())
    if (p->updated)
      p->nonzero_grad = p->all_updated = false;
  after_update();
  show_rule();
  if (averages)
    average();
}

float Trainer::clip_gradients() {
  if (!clipping_enabled)
    return 1;
  const float norm = own_.gradient_l2_norm();
  if (!std::isfinite(norm))
    throw std::runtime_error("clip_gradients: the norm of the gradients is NaN or infinite");
  if (norm <= clip_threshold)
    return 1;
  ++clips;
  ++clips_since_status;
  return clip_threshold / norm;
}

void Trainer::rescale_and_reset_weight_decay() {
  L2WeightDecay &decay = own_.get_weight_decay();
  const float factor = decay.current_weight_decay();
  for (auto &p : own_.unexposed_parameters())
    if (p->updated)
      p->scale_parameters(factor);
  for (auto &p : own_.unexposed_tables())
    if (p->updated)
      p->scale_parameters(factor);
  decay.reset_weight_decay();
}

void Trainer::update_epoch(real) {
  std::cerr << "Trainer::update_epoch does nothing; change learning_rate instead.\n";
}

// The state is in the engine, from the first update on.
void Trainer::restart() {
  if (trainer_ != nullptr || inherited_)
    engine_trainer();
  if (trainer_ != nullptr)
    check(vpps_trainer_restart(trainer_));
}

void Trainer::restart(real lr) {
  learning_rate = lr;
  restart();
}

void Trainer::status() {
  std::cerr << "[lr=" << learning_rate << " clips=" << clips_since_status
            << " updates=" << updates_since_status << "] ";
  clips_since_status = updates_since_status = 0;
}

float CyclicalRate::next() {
  float cycle = std::floor(1 + float(it) / (2 * step_size));
  float x = std::abs(float(it) / step_size - 2 * cycle + 1);
  float height = 1 - x > 0 ? (max - min) * (1 - x) * std::pow(gamma, float(it)) : 0;
  it++;
  return min + height;
}

// ---- what the engine is told of each rule ---------------------------------------

void SimpleSGDTrainer::describe(vpps_trainer_options &o) const { o.rule = VPPS_RULE_SGD; }

void CyclicalSGDTrainer::describe(vpps_trainer_options &o) const { o.rule = VPPS_RULE_SGD; }

void MomentumSGDTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_MOMENTUM;
  o.momentum = momentum;
}

void MomentumSGDTrainer::show_rule() { show(0, vp, vlp); }

void AdagradTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_ADAGRAD;
  o.epsilon = epsilon;
}

void AdagradTrainer::show_rule() { show(0, vp, vlp); }

void AdadeltaTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_ADADELTA;
  o.epsilon = epsilon;
  o.rho = rho;
}

void AdadeltaTrainer::show_rule() {
  show(0, hg, hlg);
  show(1, hd, hld);
}

void RMSPropTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_RMSPROP;
  o.epsilon = epsilon;
  o.rho = rho;
}

void RMSPropTrainer::show_rule() { show(0, hmsg, hlmsg); }

void AdamTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_ADAM;
  o.beta_1 = beta_1;
  o.beta_2 = beta_2;
  o.epsilon = epsilon;
}

void AdamTrainer::show_rule() {
  show(0, m, lm);
  show(1, v, lv);
}

void AmsgradTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_AMSGRAD;
  o.beta_1 = beta_1;
  o.beta_2 = beta_2;
  o.epsilon = epsilon;
}

void AmsgradTrainer::show_rule() {
  show(0, m, lm);
  show(1, v, lv);
  show(2, vhat, lvhat);
}

void EGTrainer::describe(vpps_trainer_options &o) const {
  o.rule = VPPS_RULE_EG;
  o.momentum = momentum;
}

namespace {
struct Zero : TensorSource {
  std::vector<float> read() const override { return std::vector<float>(1); }
} zero;
} // namespace

void EGTrainer::show_rule() {
  show(0, hp, hlp);
  zeg = meg = Tensor(Dim({1}), nullptr, default_device, DeviceMempool::PS);
  zeg.source = meg.source = &zero;
}

void EGTrainer::enableCyclicalLR(float learning_rate_min, float learning_rate_max, float step_size,
                                 float gamma) {
  rate_ = CyclicalRate(learning_rate_min, learning_rate_max, step_size, gamma);
  cyclical_ = true;
}

void EGTrainer::after_update() {
  if (cyclical_)
    learning_rate = rate_.next();
}

} // namespace dynet
