/// \file
/// vpps::handle, vpps::trainer and the functions that look inside, over libvpps's own DyNet
/// headers. Programs include vpps/vpps.hpp.
#ifndef VPPS_BUNDLED_HPP
#define VPPS_BUNDLED_HPP

#include <dynet/dynet.h>
#include <dynet/training.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ticket.hpp"
#include "vpps.h"

/// What libvpps adds to DyNet's interface.
namespace vpps {

class checkpoint;

/// A model that is planned for the device: its weights live on the chip while fb() trains it. The
/// interface is that of Khorasani et al. (MICRO 2018): hndl.fb(model, cg, loss) takes the place of
/// forward, backward and update.
class handle {
public:
  /// Plans the model's parameters for the device and compiles its kernel, or finds the kernel in
  /// the cache. The trainer is DyNet's SimpleSGDTrainer at its defaults, clipping included. The
  /// model must outlive the handle. Failures: std::runtime_error, dynet::out_of_memory.
  explicit handle(dynet::ParameterCollection &model)
      : own_(new dynet::SimpleSGDTrainer(model)), trainer_(*own_),
        learning_rate(trainer_.learning_rate) {
    open(model);
  }
  /// The same with a trainer of the program's, which must outlive the handle, too.
  handle(dynet::ParameterCollection &model, dynet::Trainer &trainer)
      : trainer_(trainer), learning_rate(trainer_.learning_rate) {
    open(model);
  }
  /// Batches in flight are finished; trained values stay in the model.
  ~handle() { vpps_handle_destroy(raw_); }

  /// Forward, backward and update of the scalar loss {1}, in one launch. Returns the loss of the
  /// call VPPS_FB_LAG, 8, calls before, 0 for the first ones. What is wrong with the graph is
  /// std::invalid_argument from this call. NaN, infinity and device errors are std::runtime_error
  /// from a later call; the failed batch and the batches after it change nothing. The graph may be
  /// cleared or destroyed at once. Afterwards only nodes that were evaluated before, or kept by
  /// keep(), have values.
  float fb(dynet::ParameterCollection &, dynet::ComputationGraph &cg,
           const dynet::Expression &loss) {
    if (loss.pg != &cg || loss.graph_id != cg.get_id())
      throw std::invalid_argument("vpps::handle::fb: the loss belongs to another graph than the "
                                  "one given; pass the graph it was built in");
    trainer_.engine_trainer();
    float stale = cg.train(raw_, loss.i);
    trainer_.updated_by_engine();
    return stale;
  }

  /// Asks for the value of x, an expression of cg, and returns before it is known: as
  /// cg.forward(x), but the program goes on while the device works, as after fb(). result() gives
  /// the value. The graph may be cleared or destroyed at once; afterwards none of its nodes is
  /// evaluated. infer() and fb() come in any order: the value is that of the parameters after all
  /// fb() before it. What is wrong with the graph is std::invalid_argument from this call. It also
  /// tells of a batch of fb() that has failed, by std::runtime_error; then call it again. A graph
  /// with nodes of the program's own classes is evaluated before the call returns.
  ticket infer(dynet::ComputationGraph &cg, const dynet::Expression &x) {
    return infer(cg, std::vector<dynet::Expression>(1, x));
  }
  /// The same for several expressions, at least one.
  ticket infer(dynet::ComputationGraph &cg, const std::vector<dynet::Expression> &xs) {
    std::vector<dynet::VariableIndex> nodes;
    ticket t;
    for (const dynet::Expression &x : xs) {
      if (x.pg != &cg || x.graph_id != cg.get_id())
        throw std::invalid_argument("vpps::handle::infer: the expression belongs to another graph "
                                    "than the one given; pass the graph it was built in");
      nodes.push_back(x.i);
      t.sizes.push_back(x.dim().size());
    }
    t.number = cg.infer(nodes);
    if (t.number == 0) {
      cg.forward(*std::max_element(nodes.begin(), nodes.end()));
      for (const dynet::Expression &x : xs)
        for (float v : dynet::as_vector(x.value()))
          t.values.push_back(v);
    }
    return t;
  }
  /// Waits for the values that infer() has asked for: those of several expressions one after the
  /// other. Tickets come in any order. An answer is given once: a ticket that was used before is
  /// std::invalid_argument. Until then the engine keeps it in the host's memory.
  std::vector<float> result(const ticket &t) {
    if (t.number == 0 && !t.sizes.empty())
      return t.values;
    std::vector<float> values(t.size() + 1); // data() of an empty one may be NULL
    dynet::check(vpps_infer_result(engine_->raw, t.number, values.data(), t.size()));
    values.pop_back();
    return values;
  }
  /// The same with a vector for each expression.
  std::vector<std::vector<float>> results(const ticket &t) { return t.split(result(t)); }
  /// Forgets an answer that nobody will ask for.
  void drop(const ticket &t) {
    if (t.number != 0)
      dynet::check(vpps_infer_drop(engine_->raw, t.number));
  }

  /// Makes the value of x readable after the next fb() over its graph: the value from before the
  /// update. It lasts until the graph is evaluated, trained or changed. x must come before the
  /// loss. An expression of no present graph: std::invalid_argument.
  void keep(const dynet::Expression &x) {
    if (x.pg == nullptr || x.is_stale())
      throw std::invalid_argument("vpps::handle::keep: the expression belongs to no present graph");
    x.pg->keep(raw_, x.i);
  }

  /// Does nothing here: parameters have one copy. Over an installed DyNet it copies the trained
  /// parameters to DyNet's memory, so call it before saving and before DyNet evaluates.
  void pull(dynet::ParameterCollection &) {}
  /// Does nothing here. Over an installed DyNet it tells libvpps that the program has written
  /// parameters in DyNet's memory.
  void push(dynet::ParameterCollection &) {}

  /// Waits for all batches and returns the loss of the last one. No fb() yet, or none since a batch
  /// failed: std::runtime_error.
  float sync_get_latest_loss() {
    float loss = 0;
    dynet::check(vpps_sync_latest_loss(raw_, &loss));
    count_clips();
    return loss;
  }

  /// How many batches had their gradients scaled down to the clip threshold. Waits.
  uint64_t clips() {
    uint64_t n = 0;
    dynet::check(vpps_handle_clips(raw_, &n));
    return n;
  }

  /// Where each matrix lives, and why: a text for people.
  std::string plan_report() const {
    size_t size = 0;
    dynet::check(vpps_plan_report(raw_, nullptr, 0, &size));
    std::vector<char> text(size + 1);
    dynet::check(vpps_plan_report(raw_, text.data(), text.size(), nullptr));
    return text.data();
  }

  /// What the engine has counted since it was opened: batches, launches, times in ns.
  vpps_statistics statistics() const {
    vpps_statistics s = VPPS_STATISTICS_INIT;
    dynet::check(vpps_engine_statistics(engine_->raw, &s));
    return s;
  }

  /// The handle of the C interface. It stays this object's: do not destroy it.
  vpps_handle *get() const { return raw_; }

private:
  friend class checkpoint;
  handle(const handle &);
  handle &operator=(const handle &);

  void open(dynet::ParameterCollection &model) {
    engine_ = dynet::engine("vpps::handle");
    std::vector<uint32_t> ids = model.engine_ids();
    dynet::check(
        vpps_handle_create(engine_->raw, ids.data(), ids.size(), trainer_.engine_trainer(), &raw_));
  }

  void count_clips() {
    uint64_t n = clips();
    trainer_.clips += static_cast<float>(n - counted_);
    trainer_.clips_since_status += static_cast<float>(n - counted_);
    counted_ = n;
  }

  std::shared_ptr<dynet::Engine> engine_;
  std::unique_ptr<dynet::SimpleSGDTrainer> own_;
  dynet::Trainer &trainer_;
  vpps_handle *raw_ = nullptr;
  uint64_t counted_ = 0;

public:
  /// The trainer's learning rate. A new value counts from the next fb() on.
  float &learning_rate;
};

/// The script of the last call, disassembled: one instruction a line.
inline std::string script_dump() {
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::script_dump");
  size_t size = 0;
  dynet::check(vpps_script_dump(e->raw, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  dynet::check(vpps_script_dump(e->raw, text.data(), text.size(), nullptr));
  return text.data();
}

/// What runs: "cpu: 2 threads, ..." or "cuda:0: ...". If the CPU runs although there is a GPU, the
/// text says what the GPU lacks.
inline std::string device() {
  char text[256] = "";
  dynet::check(vpps_engine_describe(dynet::engine("vpps::device")->raw, text, sizeof text));
  return text;
}

/// What the engine has counted since it was opened: batches, launches, times in ns.
inline vpps_statistics statistics() {
  vpps_statistics s = VPPS_STATISTICS_INIT;
  dynet::check(vpps_engine_statistics(dynet::engine("vpps::statistics")->raw, &s));
  return s;
}

/// Where time went since the engine was opened, in ns; parts of the kernel with VPPS_PROFILE=1.
/// Waits.
inline vpps_times times() {
  vpps_times t = VPPS_TIMES_INIT;
  dynet::check(vpps_engine_times(dynet::engine("vpps::times")->raw, &t));
  return t;
}

/// Waits, and completes the timeline in the file of VPPS_TRACE. Not all could be written:
/// std::runtime_error.
inline void flush_timeline() {
  dynet::check(vpps_flush_timeline(dynet::engine("vpps::flush_timeline")->raw));
}

/// What takes how much memory, on the device and on the host, as a table.
inline std::string memory_report() {
  vpps_engine *e = dynet::engine("vpps::memory_report")->raw;
  size_t size = 0;
  dynet::check(vpps_memory_report(e, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  dynet::check(vpps_memory_report(e, text.data(), text.size(), nullptr));
  return text.data();
}

/// What VPPS_PROFILE=1 saw of each kind of instruction, as CSV. Waits.
inline std::string clock_table() {
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::clock_table");
  size_t size = 0;
  dynet::check(vpps_clock_table(e->raw, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  dynet::check(vpps_clock_table(e->raw, text.data(), text.size(), nullptr));
  return text.data();
}

/// What accelerate() does with a node of a class that libvpps does not know. It counts over an
/// installed DyNet only.
enum graph_policy {
  only_vpps, ///< the graph is an error
  or_dynet   ///< DyNet computes the node
};
/// Does nothing here: these headers always run on libvpps. Over an installed DyNet the graph's own
/// calls (forward, value, backward) then run on libvpps. A program with this line compiles either
/// way.
inline void accelerate(dynet::ComputationGraph &, graph_policy = only_vpps) {}
/// Does nothing here either. Over an installed DyNet all graphs and trainers that are made from
/// then on run on libvpps.
inline void accelerate(graph_policy = or_dynet) {}

/// Passes everything on to the wrapped trainer. Over an installed DyNet, update() then runs where
/// the parameters live. A program with this class compiles either way.
class trainer {
public:
  /// wrapped stays the caller's and must outlive this object.
  explicit trainer(dynet::Trainer &wrapped)
      : defer_copies(false), learning_rate(wrapped.learning_rate), wrapped_(wrapped) {}
  /// Applies the gradients and clears them: dynet::Trainer::update.
  void update() { wrapped_.update(); }
  /// Makes the rule forget its averages: dynet::Trainer::restart.
  void restart() { wrapped_.restart(); }
  /// Prints learning rate and counts to std::cerr: dynet::Trainer::status.
  void status() { wrapped_.status(); }
  /// Counts for nothing here. Over an installed DyNet: whether gradients and values stay on the
  /// device until pull().
  bool defer_copies;

private:
  trainer(const trainer &);
  trainer &operator=(const trainer &);

public:
  /// The wrapped trainer's learning rate.
  dynet::real &learning_rate;

private:
  dynet::Trainer &wrapped_;
};

/// Does nothing here: see handle::pull.
inline void pull(dynet::ParameterCollection &) {}
/// Does nothing here: see handle::push.
inline void push(dynet::ParameterCollection &) {}

} // namespace vpps
#endif
