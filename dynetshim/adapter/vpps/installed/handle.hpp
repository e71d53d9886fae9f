// vpps::handle over the graphs, models and trainers of an installed DyNet.
#ifndef VPPS_INSTALLED_HANDLE_HPP
#define VPPS_INSTALLED_HANDLE_HPP

#if !defined(__GXX_RTTI) && !defined(__cpp_rtti)
#error "libvpps asks a node and a trainer of DyNet for their class: compile without -fno-rtti"
#endif

#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/training.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <vpps/ticket.hpp>

#include "everywhere.hpp"
#include "execution.hpp"
#include "graph.hpp"
#include "trainer.hpp"

namespace vpps {

class handle {
public:
  // Plans the model's parameters for the device and compiles its kernel, or finds it in
  // the cache. Without a trainer: DyNet's SimpleSGDTrainer at its defaults, clipping
  // included. The trainer must outlive the handle, the model the handle's calls. What the rule
  // remembers, momentum and averages, begins as the trainer's and is the handle's then: the
  // trainer's restart does nothing, its save writes what pull() has brought.
  explicit handle(dynet::ParameterCollection &model)
      : own_(new dynet::SimpleSGDTrainer(model)), fields_(*own_), trainer_(*own_, *own_),
        model_(model), learning_rate(fields_.learning_rate) {
    open(model);
  }
  handle(dynet::ParameterCollection &model, dynet::Trainer &trainer)
      : fields_(trainer), trainer_(trainer, trainer), model_(model),
        learning_rate(fields_.learning_rate) {
    open(model);
  }
  // Brings the trained values into DyNet's memory.
  ~handle() {
    const installed::turn mine;
    if (model_.there())
      installed::at_the_end([this] {
        dynet::ParameterCollection &model = model_.get("its handle");
        bool stale = false;
        installed::parameters::all().each(
            model, [&stale](installed::parameter_record &r) { stale |= r.stale; });
        if (stale)
          pull(model);
      });
    graph_.reset();
    vpps_handle_destroy(raw_);
    installed::parameters::all().handle_gone();
  }

  // Forward, backward and update of the scalar loss. Returns the loss of the call before
  // the last, 0 for the first two. What is wrong with the graph is std::invalid_argument
  // from this call (vpps::unknown_node for a class of node that libvpps does not know); NaN,
  // infinity and device errors are std::runtime_error from a later one. The graph may be
  // cleared or destroyed at once.
  //
  // From now on until pull() parameters are NaN in DyNet's own memory, and DyNet's functions, those
  // that save among them, throw "Bad device type" for them. In a graph with nodes that DyNet
  // computes (or_dynet) all but the update is done when the call returns.
  float fb(dynet::ParameterCollection &, dynet::ComputationGraph &cg,
           const dynet::Expression &loss) {
    const installed::turn mine;
    own(cg, loss);
    dynet::ParameterCollection &model = model_.get("its handle");
    installed::parameters &all = installed::parameters::all();
    installed::gradients of_trainers(all);
    all.notice(false);
    trainer_.current();
    all.each(model, [&of_trainers](installed::parameter_record &r) {
      if (r.trainers > 0)
        of_trainers.give(r);
    });
    const float stale = state(cg).train(raw_, loss.i);
    trainer_.count_update();
    all.each(model, [&](installed::parameter_record &r) {
      if (r.trainers > 0)
        of_trainers.applied(r);
      all.leave_behind(r);
    });
    return stale;
  }

  // The value of x under the engine's parameters; the tensor lasts until the next call.
  const dynet::Tensor &forward(dynet::ComputationGraph &cg, const dynet::Expression &x) {
    const installed::turn mine;
    own(cg, x);
    if (installed::execution *e = installed::executing(cg))
      return e->forward(x.i);
    installed::parameters::all().notice(true);
    return state(cg).forward(x.i);
  }

  // Asks for the value of x and returns before it is known, as fb() does; result() gives it. The
  // graph may be cleared or destroyed at once; afterwards none of its nodes is evaluated. The value
  // is that of the parameters after all fb() before it. A batch of fb() that has failed is told by
  // std::runtime_error; then call it again. A graph with nodes that DyNet computes (or_dynet) is
  // evaluated before the call returns.
  ticket infer(dynet::ComputationGraph &cg, const dynet::Expression &x) {
    return infer(cg, std::vector<dynet::Expression>(1, x));
  }
  // The same for several expressions, at least one.
  ticket infer(dynet::ComputationGraph &cg, const std::vector<dynet::Expression> &xs) {
    const installed::turn mine;
    std::vector<uint32_t> nodes;
    ticket t;
    for (const dynet::Expression &x : xs) {
      own(cg, x);
      nodes.push_back(x.i);
      t.sizes.push_back(x.dim().size());
    }
    if (nodes.empty())
      throw std::invalid_argument("vpps::handle::infer: no expression was given");
    const uint32_t last = *std::max_element(nodes.begin(), nodes.end());
    installed::parameters::all().notice(true);
    installed::graph &of = state(cg);
    if (!of.own_nodes_up_to(last)) {
      t.number = of.infer(nodes, last);
      return t;
    }
    of.forward(last);
    for (uint32_t n : nodes)
      for (float v : dynet::as_vector(of.value(n)))
        t.values.push_back(v);
    return t;
  }
  // Waits for the values that infer() has asked for, those of several expressions one after the
  // other. Tickets come in any order, each once: a used one is std::invalid_argument.
  std::vector<float> result(const ticket &t) {
    const installed::turn mine;
    if (t.number == 0 && !t.sizes.empty())
      return t.values;
    std::vector<float> values(t.size() + 1); // data() of an empty one may be NULL
    vpps_engine *const engine = installed::parameters::all().engine();
    installed::check(installed::while_waiting(
        [&] { return vpps_infer_result(engine, t.number, values.data(), t.size()); }));
    values.pop_back();
    return values;
  }
  // The same with a vector for each expression.
  std::vector<std::vector<float>> results(const ticket &t) { return t.split(result(t)); }
  // Forgets an answer that nobody will ask for.
  void drop(const ticket &t) {
    if (t.number != 0)
      installed::check(vpps_infer_drop(installed::parameters::all().engine(), t.number));
  }

  // Waits for all batches; the loss of the last one.
  float sync_get_latest_loss() {
    const installed::turn mine;
    float loss = 0;
    installed::check(installed::while_waiting([&] { return vpps_sync_latest_loss(raw_, &loss); }));
    const uint64_t n = clips();
    trainer_.count(n - counted_);
    counted_ = n;
    return loss;
  }

  // Copies the parameters into DyNet's own memory, where saving and DyNet's own execution
  // find them, and what the rule remembers into the trainer's. Waits.
  void pull(dynet::ParameterCollection &model) {
    const installed::turn mine;
    vpps::pull(model);
    trainer_.pull_state();
  }
  // The other way round: after the program has written parameters by hand. Parameters that
  // were set, loaded or scaled as a whole are noticed without it.
  void push(dynet::ParameterCollection &model) { vpps::push(model); }

  // The value of x can be read after the next fb over its graph, which must be accelerated.
  void keep(const dynet::Expression &x) {
    const installed::turn mine;
    installed::execution *e = x.pg ? installed::executing(*x.pg) : nullptr;
    if (e == nullptr)
      throw std::invalid_argument("vpps::handle::keep: call vpps::accelerate(cg) after the "
                                  "graph's construction: DyNet's own engine keeps nothing");
    e->state().walk();
    e->state().keep(raw_, x.i);
  }

  // Batches whose gradients were scaled down. Waits.
  uint64_t clips() {
    uint64_t n = 0;
    installed::check(vpps_handle_clips(raw_, &n));
    return n;
  }

  // Where each matrix lives, and why.
  std::string plan_report() const {
    size_t size = 0;
    installed::check(vpps_plan_report(raw_, nullptr, 0, &size));
    std::vector<char> text(size + 1);
    installed::check(vpps_plan_report(raw_, text.data(), text.size(), nullptr));
    return text.data();
  }

  vpps_statistics statistics() const {
    vpps_statistics s = VPPS_STATISTICS_INIT;
    installed::check(vpps_engine_statistics(installed::parameters::all().engine(), &s));
    return s;
  }

  vpps_handle *get() const { return raw_; }

private:
  handle(const handle &);
  handle &operator=(const handle &);

  void open(dynet::ParameterCollection &model) {
    const installed::turn mine;
    installed::parameters &all = installed::parameters::all();
    installed::gradients of_trainers(all);
    const std::vector<uint32_t> ids = all.ids(model);
    trainer_.push_state();
    vpps_engine *const engine = all.engine();
    vpps_trainer *const trainer = trainer_.current();
    installed::check(installed::while_waiting(
        [&] { return vpps_handle_create(engine, ids.data(), ids.size(), trainer, &raw_); }));
    all.handle_made([&of_trainers](installed::parameter_record &r) { of_trainers.separate(r); });
  }

  static void own(const dynet::ComputationGraph &cg, const dynet::Expression &x) {
    if (x.pg != &cg || x.graph_id != cg.get_id())
      throw std::invalid_argument("vpps::handle: the expression belongs to another graph than the "
                                  "one given; pass the graph it was built in");
  }

  // Of a graph that is not accelerated nobody says when DyNet clears it: each call takes all of it.
  installed::graph &state(dynet::ComputationGraph &cg) {
    if (installed::execution *e = installed::executing(cg))
      return e->state();
    graph_.reset(new installed::graph(cg, false));
    return *graph_;
  }

  std::unique_ptr<dynet::SimpleSGDTrainer> own_;
  dynet::Trainer &fields_;
  installed::engine_trainer trainer_;
  installed::kept_model model_;
  std::unique_ptr<installed::graph> graph_;
  vpps_handle *raw_ = nullptr;
  uint64_t counted_ = 0;

public:
  dynet::real &learning_rate; // the trainer's: set it before the fb it shall count for
};

// What runs: "cpu: 2 threads, ..." or "cuda:0: ...".
inline std::string device() {
  char text[256] = "";
  installed::check(vpps_engine_describe(installed::parameters::all().engine(), text, sizeof text));
  return text;
}

// What the engine has counted since it was opened.
inline vpps_statistics statistics() {
  vpps_statistics s = VPPS_STATISTICS_INIT;
  installed::check(vpps_engine_statistics(installed::parameters::all().engine(), &s));
  return s;
}

// Where time went since the engine was opened; parts of the kernel with VPPS_PROFILE=1. Waits.
inline vpps_times times() {
  vpps_times t = VPPS_TIMES_INIT;
  installed::check(vpps_engine_times(installed::parameters::all().engine(), &t));
  return t;
}

// Waits, and completes the timeline in the file of VPPS_TRACE; throws if not all could be written.
inline void flush_timeline() {
  installed::check(vpps_flush_timeline(installed::parameters::all().engine()));
}

/// What takes how much memory, on the device and on the host, as a table.
inline std::string memory_report() {
  vpps_engine *e = installed::parameters::all().engine();
  size_t size = 0;
  installed::check(vpps_memory_report(e, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  installed::check(vpps_memory_report(e, text.data(), text.size(), nullptr));
  return text.data();
}

// What VPPS_PROFILE=1 saw of each kind of instruction, as CSV. Waits.
inline std::string clock_table() {
  vpps_engine *e = installed::parameters::all().engine();
  size_t size = 0;
  installed::check(vpps_clock_table(e, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  installed::check(vpps_clock_table(e, text.data(), text.size(), nullptr));
  return text.data();
}

// A script of the last call, disassembled.
inline std::string script_dump() {
  vpps_engine *e = installed::parameters::all().engine();
  size_t size = 0;
  installed::check(vpps_script_dump(e, nullptr, 0, &size));
  std::vector<char> text(size + 1);
  installed::check(vpps_script_dump(e, text.data(), text.size(), nullptr));
  return text.data();
}

} // namespace vpps
#endif
