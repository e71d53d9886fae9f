/// \file
/// Trainers: update rules over the parameters of a collection. Fields may be changed at any time
/// and count from the next update on. A rate or hyper-parameter that makes no sense is
/// std::invalid_argument from the first update() or fb() that would use it.
///
/// In the formulas p is a parameter, g its gradient after clipping, squares and roots are element
/// by element. What a rule remembers of each parameter, h, k or v, is in members with DyNet's
/// names. They are empty until the first update, are for reading, and their numbers are the
/// engine's: ask for them by as_vector(). Those of a copy are empty until its own first update.
#ifndef DYNET_TRAINING_H_
#define DYNET_TRAINING_H_

#include <iostream>
#include <memory>
#include <vector>

#include "dynet/model.h"
#include "dynet/shadow-params.h"

namespace dynet {

/// Which average of the parameters a trainer keeps.
enum class MovingAverage {
  None,       ///< none
  Cumulative, ///< the mean of all values so far
  Exponential ///< a = beta*a + (1-beta)*p, from 0 on
};
/// Prints None, Cumulative or Exponential.
std::ostream &operator<<(std::ostream &os, const MovingAverage &average);
/// Reads what operator<< prints. Another word: std::runtime_error.
std::istream &operator>>(std::istream &is, MovingAverage &average);

struct RuleState;

/// What all trainers have in common. A copy goes on from what the rule remembers, and remembers for
/// itself from then on; both have the same parameters.
class Trainer {
public:
  ///@{
  /// Copies all of it. A copy of what the rule remembers waits for the batches in flight.
  Trainer(const Trainer &o);
  Trainer &operator=(const Trainer &o);
  ///@}
  ///@{
  /// Takes over what the rule remembers. The other one is then as if it had made no update.
  Trainer(Trainer &&o) noexcept;
  Trainer &operator=(Trainer &&o) noexcept;
  ///@}
  virtual ~Trainer();

  /// Applies the gradients to the parameters that are updated, and clears those gradients. A norm
  /// that is NaN or infinite: std::runtime_error, and nothing has changed. Right after fb(), which
  /// has applied the gradients: std::runtime_error.
  virtual void update();
  /// The factor by which the next update() scales the gradients, as their norm is now; counts a
  /// clip if it is below 1. Gradients stay: update() clips by itself. A norm that is NaN or
  /// infinite: std::runtime_error.
  float clip_gradients();
  /// Multiplies the factor of the collection's weight decay into the stored values of all its
  /// parameters that are updated, and makes it 1. What graphs read stays. update() does so by
  /// itself, once the factor is below 0.25. Waits for the batches in flight.
  void rescale_and_reset_weight_decay();
  /// Only warns, as in DyNet; divide learning_rate instead.
  void update_epoch(real r = 1.0);
  ///@{
  /// Makes the rule forget its averages, and sets the learning rate to lr. Hyper-parameters and
  /// `updates` stay.
  void restart();
  void restart(real lr);
  ///@}
  /// Writes all of it as text: the fields, hyper-parameters and what the rule remembers of each
  /// parameter.
  virtual void save(std::ostream &os);
  ///@{
  /// Reads what save() has written, and DyNet's files. The model must have as many parameters, of
  /// the same sizes. lr: the learning rate from now on. Text that cannot be read:
  /// std::runtime_error, and nothing has changed.
  virtual void populate(std::istream &is);
  void populate(std::istream &is, real lr);
  ///@}
  /// Prints "[lr=... clips=... updates=...] " to std::cerr: counts since the last status().
  void status();

  /// Which average of the parameters is kept.
  MovingAverage moving_average() { return ma_mode; }
  ///@{
  /// Keeps an average of the stored values, brought up to date at the first update and after each
  /// update_freq further ones, in host memory: such an update waits and reads all parameters. After
  /// the first update, or with a frequency of 0: std::runtime_error.
  void exponential_moving_average(float beta, unsigned update_freq = 1u);
  void cumulative_moving_average(unsigned update_freq = 1u);
  ///@}
  /// Sets the parameters to their averages, unless they are. save_weights: their values come back
  /// by swap_params_to_weights(), or at the next update of the average. bias_correction: divides an
  /// exponential average by 1 - beta^(updates of the average). No average, or none yet:
  /// std::runtime_error.
  void swap_params_to_moving_average(bool save_weights = true, bool bias_correction = false);
  /// Sets the parameters to the values from before the swap, if there was one. They were not saved:
  /// std::runtime_error.
  void swap_params_to_weights();

  real learning_rate;      ///< the rate of the next update
  bool clipping_enabled;   ///< whether gradients are scaled down to a global norm of clip_threshold
  real clip_threshold;     ///< above 0
  real clips;              ///< how many updates were clipped
  real updates;            ///< how many updates there were; for the program to read
  real clips_since_status; ///< clips since the last status()
  real updates_since_status;         ///< updates since the last status()
  bool sparse_updates_enabled;       ///< whether only rows of tables with a gradient are updated
  unsigned aux_allocated = 0;        ///< counts for nothing: the engine allocates
  unsigned aux_allocated_lookup = 0; ///< the same of tables

  ParameterCollection *model; ///< the collection it was made with

  /// Writes what the engine does not know of, as text. With a moving average: std::runtime_error.
  /// Not DyNet's: for vpps::checkpoint.
  void save_fields(std::ostream &os) const;
  /// Reads what save_fields() has written: all of it, or nothing, and then returns false. Not
  /// DyNet's.
  bool read_fields(std::istream &is);

  /// The engine's trainer, brought up to date with the fields and with parameters made since. This
  /// object owns it. Not DyNet's: for vpps::handle.
  vpps_trainer *engine_trainer();
  /// Counts an update that fb() has done. Not DyNet's: for vpps::handle.
  void updated_by_engine();

protected:
  /// A trainer of all parameters of m, those made later included. m must outlive it.
  Trainer(ParameterCollection &m, real learning_rate);
  /// Fills in the engine's rule and its hyper-parameters.
  virtual void describe(vpps_trainer_options &options) const = 0;
  /// What the rule does on the host after an update.
  virtual void after_update() {}
  /// Has the members that stand for what the rule remembers show it: show() for each. Not DyNet's.
  virtual void show_rule() {}
  /// Lists vector number `vector` of what the engine's trainer remembers of each parameter. Nothing
  /// is copied until a program reads a tensor. Not DyNet's.
  void show(size_t vector, std::vector<ShadowParameters> &p,
            std::vector<ShadowLookupParameters> &lp) const;
  /// The rule's name in a file, null for SGD.
  virtual const char *saved_as() const { return nullptr; }
  /// Writes the rule's hyper-parameters.
  virtual void save_rule(std::ostream &) const {}
  /// Reads them; false if the text is something else.
  virtual bool read_rule(std::istream &) { return true; }

  real ema_beta;                             ///< beta of the exponential average
  MovingAverage ma_mode;                     ///< which average is kept
  bool ma_params_swapped;                    ///< whether the parameters are the averages
  bool ma_params_saved;                      ///< whether their values were saved then
  unsigned ma_update_freq;                   ///< updates from one update of the average to the next
  unsigned ma_updates;                       ///< updates of the average so far
  std::vector<ShadowParameters> ma_p;        ///< averages, by parameter
  std::vector<ShadowLookupParameters> ma_lp; ///< averages, by table
  std::vector<ShadowParameters> ma_saved_p;  ///< values before the swap, by parameter
  std::vector<ShadowLookupParameters> ma_saved_lp; ///< values before the swap, by table

private:
  void tell_updated(ParameterStorageBase &p);
  void take_fields(const Trainer &o) noexcept;
  void take_rule(Trainer &o) noexcept;
  void forget_updates() noexcept;
  std::shared_ptr<const RuleState> rule_state() const;
  void average_over(MovingAverage mode, float beta, unsigned update_freq);
  void average();
  void shadow(std::vector<ShadowParameters> &p, std::vector<ShadowLookupParameters> &lp) const;

  ParameterCollection own_; // keeps the parameters alive
  std::shared_ptr<Engine> engine_;
  vpps_trainer *trainer_;
  size_t parameters_, tables_; // how many the engine's trainer knows
  vpps_trainer_options sent_;
  std::shared_ptr<const RuleState>
      inherited_; // for the engine's trainer that is to be made; or null
};

/// p -= learning_rate * g.
class SimpleSGDTrainer : public Trainer {
public:
  /// For the parameters of m.
  explicit SimpleSGDTrainer(ParameterCollection &m, real rate = 0.1) : Trainer(m, rate) {}

protected:
  void describe(vpps_trainer_options &options) const override;
};

/// A learning rate that goes up and down between two bounds: from min to max in step_size updates
/// and back. Each update multiplies the distance from min by gamma. Not a name of DyNet's.
class CyclicalRate {
public:
  /// Begins at the lower bound.
  CyclicalRate(float lower, float upper, float updates, float factor)
      : min(lower), max(upper), step_size(updates), gamma(factor), it(0) {}
  /// The rate of the next update.
  float next();

  float min;       ///< the lower bound
  float max;       ///< the upper bound
  float step_size; ///< updates from one bound to the other
  float gamma;     ///< the factor of the distance from min, for each update
  unsigned it;     ///< updates so far
};

/// SGD with a cyclical learning rate.
class CyclicalSGDTrainer : public Trainer {
public:
  /// Rates from learning_rate_min to learning_rate_max in step_size updates and back; gamma as of
  /// CyclicalRate. edecay counts for nothing, as in DyNet.
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

/// v = momentum*v - learning_rate*g; p += v.
class MomentumSGDTrainer : public Trainer {
public:
  /// With momentum mom, in [0,1).
  explicit MomentumSGDTrainer(ParameterCollection &m, real rate = 0.01, real mom = 0.9)
      : Trainer(m, rate), momentum(mom) {}
  real momentum; ///< in [0,1)

  std::vector<ShadowParameters> vp;        ///< by parameter: v
  std::vector<ShadowLookupParameters> vlp; ///< by table: v

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "MomentumSGDTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// h += g^2; p -= learning_rate*g/sqrt(h + epsilon).
class AdagradTrainer : public Trainer {
public:
  /// With epsilon eps, 0 or more.
  explicit AdagradTrainer(ParameterCollection &m, real rate = 0.1, real eps = 1e-20)
      : Trainer(m, rate), epsilon(eps) {}
  real epsilon; ///< 0 or more

  std::vector<ShadowParameters> vp;        ///< by parameter: h
  std::vector<ShadowLookupParameters> vlp; ///< by table: h

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "AdagradTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// h = rho*h + (1-rho)*g^2; d = g*sqrt(k + epsilon)/sqrt(h + epsilon); k = rho*k + (1-rho)*d^2; p
/// -= d. The learning rate is not read.
class AdadeltaTrainer : public Trainer {
public:
  /// With epsilon eps, 0 or more, and rho decay, in [0,1).
  explicit AdadeltaTrainer(ParameterCollection &m, real eps = 1e-6, real decay = 0.95)
      : Trainer(m, 1.0), epsilon(eps), rho(decay) {}
  real epsilon; ///< 0 or more
  real rho;     ///< in [0,1)

  std::vector<ShadowParameters> hg;        ///< by parameter: h
  std::vector<ShadowLookupParameters> hlg; ///< by table: h
  std::vector<ShadowParameters> hd;        ///< by parameter: k
  std::vector<ShadowLookupParameters> hld; ///< by table: k

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "AdadeltaTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// h = rho*h + (1-rho)*g^2; p -= learning_rate*g/sqrt(h + epsilon).
class RMSPropTrainer : public Trainer {
public:
  /// With epsilon eps, 0 or more, and rho decay, in [0,1).
  explicit RMSPropTrainer(ParameterCollection &m, real rate = 0.1, real eps = 1e-20,
                          real decay = 0.95)
      : Trainer(m, rate), epsilon(eps), rho(decay) {}
  real epsilon; ///< 0 or more
  real rho;     ///< in [0,1)

  std::vector<ShadowParameters> hmsg;        ///< by parameter: h
  std::vector<ShadowLookupParameters> hlmsg; ///< by table: h

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "RMSPropTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// h = beta_1*h + (1-beta_1)*g; k = beta_2*k + (1-beta_2)*g^2; p -= rate*h/(sqrt(k) + epsilon),
/// where rate is learning_rate with the bias correction. That counts all updates of this trainer,
/// also for table rows that are seldom touched.
class AdamTrainer : public Trainer {
public:
  /// With betas b1 and b2, in [0,1), and epsilon eps, 0 or more.
  explicit AdamTrainer(ParameterCollection &all, float rate = 0.001, float b1 = 0.9,
                       float b2 = 0.999, float eps = 1e-8)
      : Trainer(all, rate), beta_1(b1), beta_2(b2), epsilon(eps) {}
  float beta_1;  ///< in [0,1)
  float beta_2;  ///< in [0,1)
  float epsilon; ///< 0 or more

  std::vector<ShadowParameters> m;        ///< by parameter: h
  std::vector<ShadowLookupParameters> lm; ///< by table: h
  std::vector<ShadowParameters> v;        ///< by parameter: k
  std::vector<ShadowLookupParameters> lv; ///< by table: k

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "AdamTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// Adam with the largest k so far in place of k.
class AmsgradTrainer : public Trainer {
public:
  /// With betas b1 and b2, in [0,1), and epsilon eps, 0 or more.
  explicit AmsgradTrainer(ParameterCollection &all, float rate = 0.001, float b1 = 0.9,
                          float b2 = 0.999, float eps = 1e-8)
      : Trainer(all, rate), beta_1(b1), beta_2(b2), epsilon(eps) {}
  float beta_1;  ///< in [0,1)
  float beta_2;  ///< in [0,1)
  float epsilon; ///< 0 or more

  std::vector<ShadowParameters> m;           ///< by parameter: h
  std::vector<ShadowLookupParameters> lm;    ///< by table: h
  std::vector<ShadowParameters> v;           ///< by parameter: the present k
  std::vector<ShadowLookupParameters> lv;    ///< by table: the present k
  std::vector<ShadowParameters> vhat;        ///< by parameter: the largest k
  std::vector<ShadowLookupParameters> lvhat; ///< by table: the largest k

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "AmsgradTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
};

/// Exponentiated gradient with momentum: h = momentum*h - learning_rate*g; p = p*exp(h), scaled so
/// that the first column of each tensor (of each row of a table) sums to 1. Values must be
/// positive.
class EGTrainer : public Trainer {
public:
  /// With momentum mom, in [0,1). ne counts for nothing, as in DyNet.
  explicit EGTrainer(ParameterCollection &m, real rate = 0.1, real mom = 0.9, real ne = 0.0)
      : Trainer(m, rate), momentum(mom), rate_(0, 0, 0, 0), cyclical_(false) {
    (void)ne;
  }
  /// From the second update on the learning rate goes up and down, beginning at the lower bound:
  /// CyclicalRate.
  void enableCyclicalLR(float learning_rate_min = 0.01, float learning_rate_max = 0.1,
                        float step_size = 2000, float gamma = 0.0);
  real momentum; ///< in [0,1)

  std::vector<ShadowParameters> hp;        ///< by parameter: h
  std::vector<ShadowLookupParameters> hlp; ///< by table: h
  Tensor zeg;                              ///< where DyNet adds up within an update: a zero here
  Tensor meg;                              ///< likewise

protected:
  void describe(vpps_trainer_options &options) const override;
  void show_rule() override;
  const char *saved_as() const override { return "EGTrainer"; }
  void save_rule(std::ostream &os) const override;
  bool read_rule(std::istream &is) override;
  void after_update() override;

private:
  CyclicalRate rate_;
  bool cyclical_; // whether rate_ counts
};

} // namespace dynet
#endif
