// A trainer's first steps on a small model: loss, gradients, norm, clipping, weight decay
// and values after each update.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/model.h>
#include <dynet/param-init.h>
#include <dynet/training.h>
#include <vpps/vpps.hpp>

#include <algorithm>
#include <memory>

#include "cases.h"
#include "compare.h"
#include "functions.h"

using namespace dynet;

namespace {

// Rounding errors of a step are carried on by the steps after it, and grow with the size of
// an update that is not clipped.
tolerance after(unsigned steps, const record &r) {
  float factor = float(steps);
  const char *rate = r.has("learning_rate_max") ? "learning_rate_max" : "learning_rate";
  if (!r.natural("clipping_enabled") && r.has(rate))
    factor *= std::max(1.f, r.number(rate) * r.number("scale"));
  return {1e-5f * factor, 0, 1e-6f * factor};
}

struct small_model {
  ParameterCollection m;
  Parameter W, b;
  LookupParameter E;

  explicit small_model(const record &r) {
    for (const line *l : r.all("param")) {
      const std::string name = l->words.at(0);
      const tensor t = l->as_tensor(1);
      if (name == "W")
        W = m.add_parameters(t.dim, ParameterInitFromVector(t.values));
      else if (name == "b")
        b = m.add_parameters(t.dim, ParameterInitFromVector(t.values));
      else
        E = m.add_lookup_parameters(t.dim.d[1], {t.dim.d[0]}, ParameterInitFromVector(t.values));
    }
  }

  Expression loss(ComputationGraph &cg, const record &r, unsigned step) const {
    const std::vector<unsigned> unused = r.list("W_b_unused_in_steps");
    const Expression x =
        lookup(cg, E, r.list("r1")[step]) + 0.5f * lookup(cg, E, r.list("r2")[step]);
    Expression e = squared_norm(x);
    if (r.natural("W_is_vector")) {
      e = squared_distance(parameter(cg, W), input(cg, {6}, {.5f, .1f, 0, .2f, .1f, .1f})) + e +
          pickneglogsoftmax(parameter(cg, b), r.list("y")[step]);
    } else if (std::find(unused.begin(), unused.end(), step) == unused.end()) {
      const Expression scores = affine_transform({parameter(cg, b), parameter(cg, W), tanh(x)});
      e = pickneglogsoftmax(scores, r.list("y")[step]) + 0.1f * e;
    }
    if (r.natural("dense_lookup_term"))
      e = e + 0.05f * squared_norm(parameter(cg, E));
    return r.number("scale") * e;
  }

  std::vector<float> gradient(const std::string &name) const {
    return as_vector(name == "E"   ? E.get_storage().all_grads
                     : name == "W" ? W.get_storage().g
                                   : b.get_storage().g);
  }
  std::vector<float> stored(const std::string &name) const {
    return as_vector(name == "E"   ? E.get_storage().all_values
                     : name == "W" ? W.get_storage().values
                                   : b.get_storage().values);
  }
  // What a parameter node returns.
  std::vector<float> effective(const std::string &name) const {
    ComputationGraph cg;
    vpps::accelerate(cg);
    const Expression e = name == "E"   ? parameter(cg, E)
                         : name == "W" ? parameter(cg, W)
                                       : parameter(cg, b);
    return as_vector(cg.forward(e));
  }
};

// Whether vpps::handle has what a record needs. Over an installed DyNet nobody says that a trainer
// is restarted.
bool handle_has(const record &r) {
#ifdef VPPS_BUNDLED_DYNET
  return !r.fn.empty();
#else
  const bool no_state = r.fn == "SimpleSGDTrainer" || r.fn == "CyclicalSGDTrainer";
  if (r.has("moving_average"))
    return false;
  return !r.fn.empty() && (no_state || !r.has("restart_before_step"));
#endif
}

std::unique_ptr<Trainer> make_trainer(const record &r, ParameterCollection &m) {
  auto number = [&](const char *name) { return r.number(name); };
  Trainer *t = nullptr;
  if (r.fn == "SimpleSGDTrainer") {
    t = new SimpleSGDTrainer(m, number("learning_rate"));
  } else if (r.fn == "CyclicalSGDTrainer") {
    t = new CyclicalSGDTrainer(m, number("learning_rate_min"), number("learning_rate_max"),
                               number("step_size"), number("gamma"));
  } else if (r.fn == "MomentumSGDTrainer") {
    t = new MomentumSGDTrainer(m, number("learning_rate"), number("mom"));
  } else if (r.fn == "AdagradTrainer") {
    t = new AdagradTrainer(m, number("learning_rate"), number("eps"));
  } else if (r.fn == "AdadeltaTrainer") {
    t = new AdadeltaTrainer(m, number("eps"), number("rho"));
  } else if (r.fn == "RMSPropTrainer") {
    t = new RMSPropTrainer(m, number("learning_rate"), number("eps"), number("rho"));
  } else if (r.fn == "AdamTrainer") {
    t = new AdamTrainer(m, number("learning_rate"), number("beta_1"), number("beta_2"),
                        number("eps"));
  } else if (r.fn == "AmsgradTrainer") {
    t = new AmsgradTrainer(m, number("learning_rate"), number("beta_1"), number("beta_2"),
                           number("eps"));
  } else if (r.fn == "EGTrainer") {
    EGTrainer *eg = new EGTrainer(m, number("learning_rate"), number("mom"), number("ne"));
    if (r.has("cyclical"))
      eg->enableCyclicalLR(number("cyclical_learning_rate_min"),
                           number("cyclical_learning_rate_max"), number("cyclical_step_size"),
                           number("cyclical_gamma"));
    t = eg;
  } else {
    throw not_implemented();
  }
  return std::unique_ptr<Trainer>(t);
}

void keep_average(Trainer &trainer, const record &r) {
  const unsigned frequency = r.natural("moving_average_update_freq");
  if (r.word("moving_average_kind") == "exponential")
    trainer.exponential_moving_average(r.number("moving_average_beta"), frequency);
  else
    trainer.cumulative_moving_average(frequency);
}

// The parameters as the moving average, with its bias corrected, and as themselves again.
void compare_averages(const std::string &at, Trainer &trainer, const small_model &model,
                      const record &r, const tolerance &allowed) {
  for (const char *key : {"average", "corrected", "back"}) {
    const std::vector<const line *> lines = r.all(key);
    if (lines.empty())
      continue;
    trainer.swap_params_to_weights();
    if (std::string(key) != "back")
      trainer.swap_params_to_moving_average(true, std::string(key) == "corrected");
    for (const line *l : lines)
      compare(at + key + " " + l->words[0], model.stored(l->words[0]), l->numbers(1), allowed);
  }
}

} // namespace

void run_trainer(const record &r, training by) {
  if (by != training::calls && !handle_has(r))
    throw not_implemented();
  small_model model(r);
  model.m.set_weight_decay_lambda(r.number("weight_decay_lambda"));
  model.b.set_updated(r.natural("b_updated") != 0);
  const std::unique_ptr<Trainer> owned = make_trainer(r, model.m);
  Trainer &trainer = *owned;
  trainer.clipping_enabled = r.natural("clipping_enabled") != 0;
  trainer.clip_threshold = r.number("clip_threshold");
  trainer.sparse_updates_enabled = r.natural("sparse_updates_enabled") != 0;
  if (r.has("moving_average"))
    keep_average(trainer, r);
  std::unique_ptr<vpps::handle> hndl;
  if (by != training::calls)
    hndl.reset(new vpps::handle(model.m, trainer));

  const char *way = hndl ? "fb: " : "calls: ";
  std::string at; // the step that the following lines belong to
  unsigned step = 0;
  for (const line &l : r.lines) {
    if (l.key == "step") {
      at = way + ("step " + std::to_string(step)) + ": ";
      if (r.has("learning_rate_halved_before_step") &&
          step == r.natural("learning_rate_halved_before_step"))
        trainer.learning_rate /= 2;
      if (r.has("restart_before_step") && step == r.natural("restart_before_step"))
        trainer.restart();
      compare(at + "learning rate", trainer.learning_rate, l.number(1), 1e-6, 0);
      ComputationGraph cg;
      vpps::accelerate(cg);
      const Expression loss = model.loss(cg, r, step++);
      if (hndl) {
        hndl->fb(model.m, cg, loss);
        compare(at + "loss", hndl->sync_get_latest_loss(), l.number(0), 1e-5, 1e-6);
        hndl->pull(model.m);
      } else {
        compare(at + "loss", as_scalar(cg.forward(loss)), l.number(0), 1e-5, 1e-6);
        cg.backward(loss);
        compare(at + "gradient norm", model.m.gradient_l2_norm(), l.number(2), 1e-5, 1e-6);
        // The gradients are gone after the update.
        for (const line *g = &l + 1; g != r.lines.data() + r.lines.size() && g->key != "step"; g++)
          if (g->key == "grad")
            compare(at + "gradient of " + g->words[0], model.gradient(g->words[0]), g->numbers(1),
                    after(step, r));
        trainer.update();
      }
      compare(at + "clips", trainer.clips, l.number(3), 0, 0);
      compare(at + "weight decay", model.m.get_weight_decay().current_weight_decay(), l.number(4),
              1e-6, 0);
    } else if (l.key == "stored") {
      compare(at + "stored " + l.words[0], model.stored(l.words[0]), l.numbers(1), after(step, r));
    } else if (l.key == "effective") {
      compare(at + "effective " + l.words[0], model.effective(l.words[0]), l.numbers(1),
              after(step, r));
    }
  }
  compare_averages(way, trainer, model, r, after(step, r));
}
