// Trainers: update rules over the parameters of a collection. Fields may be changed at
// any time and count from the next update on.
#ifndef DYNET_TRAINING_H
#define DYNET_TRAINING_H

#include <iosfwd>
#include <memory>
#include <vector>

#include "dynet/model.h"

namespace dynet {

class Trainer {
public:
  virtual ~Trainer();

  // Applies the gradients to the parameters that are updated, and clears those
  // gradients. A norm that is NaN or infinite: std::runtime_error, nothing changed.
  virtual void update();
  // Does nothing but warn, as in DyNet; divide learning_rate instead.
  void update_epoch(real r = 1.0);
  // Clears the rule's state; hyper-parameters and `updates` stay.
  void restart();
  void restart(real lr);
  // All of it as text, and back: the fields, hyper-parameters and what the rule remembers of each
  // parameter; the model must have as many, of the same sizes. DyNet's files are read, too, but
  // for those with moving averages. What cannot be read is a std::runtime_error, nothing changed.
  virtual void save(std::ostream &os);
  virtual void populate(std::istream &is);
  void populate(std::istream &is, real lr);
  // "[lr=... clips=... updates=...] " to std::cerr, counts since the last status().
  void status();

  real learning_rate;
  bool clipping_enabled; // scale gradients down to a global norm of clip_threshold
  real clip_threshold;
  real clips, updates;
  real clips_since_status, updates_since_status;
  bool sparse_updates_enabled; // of tables, only rows with a gradient

  ParameterCollection *model;

  // For vpps::checkpoint: what the engine does not know of, as text. read_fields reads all of it,
  // or changes nothing and returns false.
  void save_fields(std::ostream &os) const;
  bool read_fields(std::istream &is);

  // For vpps::handle: the engine's trainer, brought up to date with the fields and with
  // parameters made since, and the bookkeeping of an update done by vpps_fb.
  vpps_trainer *engine_trainer();
  void updated_by_engine();

protected:
  Trainer(ParameterCollection &m, real learning_rate);
  // The engine's rule and its hyper-parameters.
  virtual void describe(vpps_trainer_options &options) const = 0;
  // What the rule does on the host after an update.
  virtual void after_update() {}
  // The rule's name in a file, null for SGD; and its hyper-parameters there.
  virtual const char *saved_as() const { return nullptr; }
  virtual void save_rule(std::ostream &) const {}
  virtual bool read_rule(std::istream &) { return true; }

private:
  Trainer(const Trainer &);
  Trainer &operator=(const Trainer &);
  void tell_updated(ParameterStorageBase &p);

  ParameterCollection own_; // keeps the parameters alive
  std::shared_ptr<Engine> engine_;
  vpps_trainer *trainer_;
  size_t parameters_, tables_; // how many the engine's trainer knows
  vpps_trainer_options sent_;
};

// p -= learning_rate * g, g clipped.
class SimpleSGDTrainer : public Trainer {
public:
  explicit SimpleSGDTrainer(ParameterCollection &m, real learning_rate = 0.1)
      : Trainer(m, learning_rate) {}

protected:
  void describe(vpps_trainer_options &options) const override;
};

// A learning rate that goes up and down between two bounds: from min to max in step_size updates
// and back, the distance times gamma in each update.
class CyclicalRate {
public:
  CyclicalRate(float min, float max, float step_size, float gamma)
      : min(min), max(max), step_size(step_size), gamma(gamma), it(0) {}
  // The rate of the next update.
  float next();

  float min, max, step_size, gamma;
  unsigned it; // updates so far
};

// SGD with a cyclical learning rate. edecay counts for nothing, as in DyNet.
class CyclicalSGDTrainer : public Trainer {
public:
  explicit CyclicalSGDTrainer(ParameterCollection &m, float learning_rate_min = 0.01,
                              float learning_rate_max = 0.1, float step_size = 2000,
                              float gamma = 1.0, float edecay = 0.0)
      : Trainer(m, learning_rate_min),
        rate_(learning_rate_min, learning_rate_max, step_size, gamma) {
    (void)edecay;
  }

protected:
  void describe(vpps_trainer_options &options) const override;
  void save_rule(std::ostream &os) const override; // DyNet's files have none
  bool read_rule(std::istream &is) override;
  void after_update() override { learning_rate = rate_.next(); }

private:
  CyclicalRate rate_;
};

// v = momentum*v - learning_rate*g; p += v.
class MomentumSGDTrainer : public Trainer {
public:
  explicit MomentumSGDTrainer(ParameterCollection &m, real learning_rate = 0.01, real mom = 0.9)
      : Trainer(m, learning_rate), momentum(mom) {}
  real momentum;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "MomentumSGDTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// h += g^2; p -= learning_rate*g/sqrt(h + epsilon).
class AdagradTrainer : public Trainer {
public:
  explicit AdagradTrainer(ParameterCollection &m, real learning_rate = 0.1, real eps = 1e-20)
      : Trainer(m, learning_rate), epsilon(eps) {}
  real epsilon;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "AdagradTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// Steps are as large as the running root mean square of the steps before; there is no learning
// rate.
class AdadeltaTrainer : public Trainer {
public:
  explicit AdadeltaTrainer(ParameterCollection &m, real eps = 1e-6, real rho = 0.95)
      : Trainer(m, 1.0), epsilon(eps), rho(rho) {}
  real epsilon, rho;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "AdadeltaTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// h = rho*h + (1-rho)*g^2; p -= learning_rate*g/sqrt(h + epsilon).
class RMSPropTrainer : public Trainer {
public:
  explicit RMSPropTrainer(ParameterCollection &m, real learning_rate = 0.1, real eps = 1e-20,
                          real rho = 0.95)
      : Trainer(m, learning_rate), epsilon(eps), rho(rho) {}
  real epsilon, rho;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "RMSPropTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// Averages of gradient and square; the bias correction counts all updates of this trainer, also
// for table rows that are seldom touched.
class AdamTrainer : public Trainer {
public:
  explicit AdamTrainer(ParameterCollection &m, float learning_rate = 0.001, float beta_1 = 0.9,
                       float beta_2 = 0.999, float eps = 1e-8)
      : Trainer(m, learning_rate), beta_1(beta_1), beta_2(beta_2), epsilon(eps) {}
  float beta_1, beta_2, epsilon;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "AdamTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// Adam with the largest average square so far.
class AmsgradTrainer : public Trainer {
public:
  explicit AmsgradTrainer(ParameterCollection &m, float learning_rate = 0.001, float beta_1 = 0.9,
                          float beta_2 = 0.999, float eps = 1e-8)
      : Trainer(m, learning_rate), beta_1(beta_1), beta_2(beta_2), epsilon(eps) {}
  float beta_1, beta_2, epsilon;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "AmsgradTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

// Exponentiated gradient with momentum: positive values, each tensor (of tables, each row) scaled
// so that its first column sums to 1. ne counts for nothing, as in DyNet.
class EGTrainer : public Trainer {
public:
  explicit EGTrainer(ParameterCollection &m, real learning_rate = 0.1, real mom = 0.9,
                     real ne = 0.0)
      : Trainer(m, learning_rate), momentum(mom) {
    (void)ne;
  }
  // The learning rate goes up and down, from the second update on beginning at the lower bound.
  void enableCyclicalLR(float learning_rate_min = 0.01, float learning_rate_max = 0.1,
                        float step_size = 2000, float gamma = 0.0);
  real momentum;

protected:
  void describe(vpps_trainer_options &options) const override;
  const char *saved_as() const override { return "EGTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
  void after_update() override;

private:
  std::unique_ptr<CyclicalRate> rate_; // null: constant
};

} // namespace dynet
#endif
