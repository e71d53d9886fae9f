// vpps::handle over libvpps's own DyNet headers. Programs include vpps/vpps.hpp.
#ifndef VPPS_BUNDLED_HPP
#define VPPS_BUNDLED_HPP

#include <dynet/dynet.h>
#include <dynet/training.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "vpps.h"

namespace vpps {

class checkpoint;

class handle {
public:
  // Plans the model's parameters for the device and compiles its kernel, or finds it in
  // the cache. Without a trainer: DyNet's SimpleSGDTrainer at its defaults, clipping
  // included. Model and trainer must outlive the handle.
  explicit handle(dynet::ParameterCollection &model)
      : own_(new dynet::SimpleSGDTrainer(model)), trainer_(*own_),
        learning_rate(trainer_.learning_rate) {
    open(model);
  }
  handle(dynet::ParameterCollection &model, dynet::Trainer &trainer)
      : trainer_(trainer), learning_rate(trainer_.learning_rate) {
    open(model);
  }
  ~handle() { vpps_handle_destroy(raw_); }

  // Forward, backward and update of the scalar loss. Returns the loss of the call before
  // the last, 0 for the first two. What is wrong with the graph is std::invalid_argument
  // from this call; NaN, infinity and device errors are std::runtime_error from a later
  // one, and the batches behind the failed one change nothing. The graph may be cleared
  // or destroyed at once; values of nodes that were neither evaluated before nor kept are gone.
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

  // The value of x can be read after the next fb over its graph: the one from before the
  // update. It lasts until the graph is evaluated, trained or changed. x must come
  // before the loss.
  void keep(const dynet::Expression &x) {
    if (x.pg == nullptr || x.is_stale())
      throw std::invalid_argument("vpps::handle::keep: the expression belongs to no present graph");
    x.pg->keep(raw_, x.i);
  }

  // An installed DyNet has copies of the parameters; these headers have not.
  void pull(dynet::ParameterCollection &) {}
  void push(dynet::ParameterCollection &) {}

  // Waits for all batches; the loss of the last one.
  float sync_get_latest_loss() {
    float loss = 0;
    dynet::check(vpps_sync_latest_loss(raw_, &loss));
    count_clips();
    return loss;
  }

  // Batches whose gradients were scaled down. Waits.
  uint64_t clips() {
    uint64_t n = 0;
    dynet::check(vpps_handle_clips(raw_, &n));
    return n;
  }

  // Where each matrix lives, and why.
  std::string plan_report() const {
    size_t size = 0;
    dynet::check(vpps_plan_report(raw_, nullptr, 0, &size));
    std::vector<char> text(size + 1);
    dynet::check(vpps_plan_report(raw_, text.data(), text.size(), nullptr));
    return text.data();
  }

  vpps_statistics statistics() const {
    vpps_statistics s = VPPS_STATISTICS_INIT;
    dynet::check(vpps_engine_statistics(engine_->raw, &s));
    return s;
  }

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
  float &learning_rate; // the trainer's: set it before the fb it shall count for
};

// A script of the last call, disassembled.
inline std::string script_dump() {
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::script_dump");
  size_t size = 0;
  dynet::check(vpps_script_dump(e->raw, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  dynet::check(vpps_script_dump(e->raw, text.data(), text.size(), nullptr));
  return text.data();
}

// What runs: "cpu: 2 threads, ..." or "cuda:0: ...".
inline std::string device() {
  char text[256] = "";
  dynet::check(vpps_engine_describe(dynet::engine("vpps::device")->raw, text, sizeof text));
  return text;
}

// What the engine has counted since it was opened.
inline vpps_statistics statistics() {
  vpps_statistics s = VPPS_STATISTICS_INIT;
  dynet::check(vpps_engine_statistics(dynet::engine("vpps::statistics")->raw, &s));
  return s;
}

// Where time went since the engine was opened; parts of the kernel with VPPS_CLOCKS=1. Waits.
inline vpps_times times() {
  vpps_times t = VPPS_TIMES_INIT;
  dynet::check(vpps_engine_times(dynet::engine("vpps::times")->raw, &t));
  return t;
}

// Waits, and completes the timeline in the file of VPPS_TRACE; throws if not all could be written.
inline void flush_timeline() {
  dynet::check(vpps_flush_timeline(dynet::engine("vpps::flush_timeline")->raw));
}

// What VPPS_CLOCKS=1 saw of each kind of instruction, as CSV. Waits.
inline std::string clock_table() {
  const std::shared_ptr<dynet::Engine> &e = dynet::engine("vpps::clock_table");
  size_t size = 0;
  dynet::check(vpps_clock_table(e->raw, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  dynet::check(vpps_clock_table(e->raw, text.data(), text.size(), nullptr));
  return text.data();
}

// What an installed DyNet needs so that its own calls run here (installed/execution.hpp). With
// these headers they always do; a program with these lines compiles either way.
enum graph_policy { only_vpps, or_dynet };
inline void accelerate(dynet::ComputationGraph &, graph_policy = only_vpps) {}

class trainer {
public:
  explicit trainer(dynet::Trainer &wrapped)
      : defer_copies(false), learning_rate(wrapped.learning_rate), wrapped_(wrapped) {}
  void update() { wrapped_.update(); }
  void restart() { wrapped_.restart(); }
  void status() { wrapped_.status(); }
  bool defer_copies;

private:
  trainer(const trainer &);
  trainer &operator=(const trainer &);

public:
  dynet::real &learning_rate;

private:
  dynet::Trainer &wrapped_;
};

inline void pull(dynet::ParameterCollection &) {}
inline void push(dynet::ParameterCollection &) {}

} // namespace vpps
#endif
