// The engine under an installed DyNet, and which of its parameters each of DyNet's is. The
// engine has the values that count; DyNet's own memory is brought up to date by pull().
#ifndef VPPS_INSTALLED_PARAMETERS_HPP
#define VPPS_INSTALLED_PARAMETERS_HPP

#include <dynet/devices.h>
#include <dynet/dynet.h>
#include <dynet/except.h>
#include <dynet/globals.h>
#include <dynet/model.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <vpps.h>
#include <vpps/options.hpp>

#include "life.hpp"
#include "marks.hpp"
#include "reveal.hpp"
#include "waiting.hpp"

namespace vpps {
namespace installed {

VPPS_REVEAL(L2WeightDecay, float, weight_decay)

// Turns a failure into the exception that DyNet's users expect.
inline void check(vpps_status status) {
  if (status == VPPS_OK)
    return;
  std::string text = vpps_last_error();
  if (text.empty())
    text = "libvpps: failure " + std::to_string(static_cast<int>(status));
  if (status == VPPS_ERR_ARGUMENT || status == VPPS_ERR_GRAPH)
    throw std::invalid_argument(text);
  throw std::runtime_error(text);
}

inline vpps_dim wire(const dynet::Dim &d) {
  vpps_dim w;
  std::memset(&w, 0, sizeof w);
  w.nd = d.nd;
  w.bd = d.bd;
  for (unsigned i = 0; i < d.nd; ++i)
    w.d[i] = d.d[i];
  return w;
}

// The device of tensors whose values the engine has: DyNet's functions, savers among them, refuse
// it as a bad device type.
class no_device : public dynet::Device {
public:
  static dynet::Device *the() {
    static no_device *d = new no_device;
    return d;
  }

private:
  no_device() : dynet::Device(-1, static_cast<dynet::DeviceType>(77), nullptr) {
    name = "libvpps: call pull() first";
  }
};

// A Parameter or LookupParameter of DyNet and the engine's.
struct parameter_record {
  uint32_t id, collection;
  dynet::ParameterStorage *dense; // one of the two
  dynet::LookupParameterStorage *table;
  std::weak_ptr<dynet::ParameterStorageBase> alive; // keeps the address from being used again
  bool updated;                                     // what the engine knows of `updated`
  bool stale = false;      // the engine's values are newer; DyNet's are marked (marks.hpp)
  bool delivered = false;  // DyNet has got gradients, so its own trainer may change values
  std::vector<float> seen; // DyNet's values when they were last copied
  float *own = nullptr;    // DyNet's own memory, while it uses the engine's instead

  // Gradients (gradients.hpp), while there are vpps::trainers that update it.
  unsigned trainers = 0;
  const bool *defer = nullptr;     // the trainer's defer_copies
  float *own_gradient = nullptr;   // DyNet's own memory, while it uses the engine's instead
  std::vector<float> sent;         // else: DyNet's copy when it was last equal to the engine's
  std::vector<uint32_t> sent_rows; // rows of the engine's gradient that may be other than zero
  bool deferred = false;           // the copy is marked

  const std::string &name() const { return dense ? dense->name : table->name; }
  float *values() const { return dense ? dense->values.v : table->all_values.v; }
  float *gradient() const { return dense ? dense->g.v : table->all_grads.v; }
  size_t size() const { return dense ? dense->dim.size() : table->all_dim.size(); }
  size_t row() const { return dense ? dense->dim.size() : table->dim.size(); }
  void point(float *memory) {
    (dense ? dense->values : table->all_values).v = memory;
    for (size_t i = 0; table && i < table->values.size(); ++i)
      table->values[i].v = memory + i * row();
  }
  void point_gradient(float *memory) {
    (dense ? dense->g : table->all_grads).v = memory;
    for (size_t i = 0; table && i < table->grads.size(); ++i)
      table->grads[i].v = memory + i * row();
  }
  void set_device(dynet::Device *device) {
    (dense ? dense->values : table->all_values).device = device;
    for (size_t i = 0; table && i < table->values.size(); ++i)
      table->values[i].device = device;
  }
  bool wanted_updated() const { return dense ? dense->updated : table->updated; }

  // Rows whose gradient may be other than zero, ascending; a dense parameter is one row.
  std::vector<uint32_t> rows() const {
    std::vector<uint32_t> rows;
    if (dense)
      rows.push_back(0);
    else if (table->all_updated)
      for (uint32_t i = 0; i < table->values.size(); ++i)
        rows.push_back(i);
    else
      rows.assign(table->non_zero_grads.begin(), table->non_zero_grads.end());
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  // DyNet's notes of it, after a backward and after an update.
  void note_gradient(const std::vector<uint32_t> &rows, bool whole) {
    (dense ? dense->nonzero_grad : table->nonzero_grad) = true;
    if (table) {
      table->non_zero_grads.insert(rows.begin(), rows.end());
      table->all_updated |= whole;
    }
  }
  void forget_gradient() {
    (dense ? dense->nonzero_grad : table->nonzero_grad) = false;
    if (table) {
      table->non_zero_grads.clear();
      table->all_updated = false;
    }
  }
};

// One of DyNet's root collections: it carries the weight decay.
struct collection_record {
  uint32_t id;
  float lambda;
  float factor; // on both sides, when they were last compared
  life there;   // the collection's
};

class parameters {
public:
  // The process's; opens the engine at the first call.
  static parameters &all() {
    static parameters *p = opened(); // lives on: static models outlive other statics
    return *p;
  }

  vpps_engine *engine() const { return engine_; }
  // Counts updates and what the program writes: values from before are stale for fb.
  uint64_t updates = 0;

  const parameter_record &of(const std::shared_ptr<dynet::ParameterStorage> &p) {
    return find(p.get(), p->owner);
  }
  const parameter_record &of(const std::shared_ptr<dynet::LookupParameterStorage> &p) {
    return find(p.get(), p->owner);
  }

  // The engine's ids, parameters first, then tables; makes those that are new.
  std::vector<uint32_t> ids(dynet::ParameterCollection &model) {
    std::vector<uint32_t> ids;
    for (auto &p : model.parameters_list())
      ids.push_back(of(p).id);
    for (auto &p : model.lookup_parameters_list())
      ids.push_back(of(p).id);
    return ids;
  }

  template <class F> void each(dynet::ParameterCollection &model, F f) {
    for (auto &p : model.parameters_list())
      f(const_cast<parameter_record &>(of(p)));
    for (auto &p : model.lookup_parameters_list())
      f(const_cast<parameter_record &>(of(p)));
  }

  // Engine to DyNet.
  void pull(dynet::ParameterCollection &model) {
    each(model, [this](parameter_record &r) { pull(r); });
    pull_decay(model);
  }
  void pull(parameter_record &r) { pull(r, 0, r.size()); }
  void pull(parameter_record &r, size_t from, size_t count) {
    if (r.own)
      return;
    if (r.stale) { // all of it
      from = 0;
      count = r.size();
    }
    check(vpps_parameter_read(engine_, r.id, VPPS_VALUES, from, count, r.values() + from));
    std::memcpy(&r.seen[from], r.values() + from, count * sizeof(float));
    is_current(r);
  }
  // The engine's values have become newer. DyNet's are marked until pull, so that who reads them
  // notices.
  void leave_behind(parameter_record &r) {
    if (r.stale || r.own || !r.wanted_updated())
      return;
    r.stale = true;
    mark(r.values(), r.size());
    mark(r.seen.data(), r.size());
    if (refuses)
      r.set_device(no_device::the());
  }
  // Whether DyNet's functions refuse marked memory. Who calls them must take their exceptions.
  bool refuses = true;
  // Whatever is newer in the engine.
  void refresh() {
    for (auto &c : collections_) {
      if (c.second.there.expired() || !pull_decay(*c.first, c.second))
        continue;
      for (auto &r : records_) // a rescaling changes everything
        if (r.second.collection == c.second.id && !r.second.alive.expired())
          pull(r.second);
    }
    for (auto &r : records_)
      if (r.second.stale && !r.second.alive.expired())
        pull(r.second);
  }
  // How much smaller than in memory the values there are, by weight decay.
  float decay_of(const float *memory) const {
    for (const auto &r : records_)
      for (const auto &c : collections_)
        if (c.second.id == r.second.collection && !c.second.there.expired() &&
            !r.second.alive.expired() && memory >= r.second.values() &&
            memory < r.second.values() + r.second.size())
          return c.first->weight_decay.current_weight_decay();
    return 1;
  }
  // DyNet to engine.
  void push(dynet::ParameterCollection &model) {
    each(model, [this](parameter_record &r) {
      if (r.stale)
        notice_stale(r, true);
      else
        push(r, 0, r.size());
    });
  }
  void push(parameter_record &r, size_t from, size_t count) {
    check(vpps_parameter_write(engine_, r.id, VPPS_VALUES, from, count, r.values() + from));
    ++updates;
    if (!r.own)
      std::memcpy(&r.seen[from], r.values() + from, count * sizeof(float));
  }

  // Where the engine computes in host memory and no handle has batches in flight, DyNet uses that
  // memory, and nothing is copied any more.
  void share(parameter_record &r) {
    float *memory = nullptr;
    if (handles_ == 0 && !r.own)
      check(vpps_parameter_memory(engine_, r.id, &memory));
    if (memory == nullptr)
      return;
    notice(r, true);
    r.own = r.values();
    r.point(memory);
  }
  unsigned handles() const { return handles_; }
  // Batches in flight change the engine's memory: DyNet uses its own.
  template <class Separate> void handle_made(const Separate &separate_gradient) {
    ++handles_;
    for (auto &r : records_)
      if (!r.second.alive.expired())
        separate_gradient(r.second);
    for (auto &r : records_)
      if (r.second.own && !r.second.alive.expired()) {
        float *own = r.second.own;
        r.second.seen.assign(r.second.values(), r.second.values() + r.second.size());
        std::memcpy(own, r.second.values(), r.second.size() * sizeof(float));
        r.second.point(own);
        r.second.own = nullptr;
      }
  }
  void handle_gone() { --handles_; }

  // Pushes what the program has written into DyNet's memory since it was last copied. thorough:
  // every value of dense parameters and of tables that DyNet's own trainer may have changed;
  // otherwise a few values of each tell whether all of it was set, loaded or scaled.
  void notice(bool thorough) {
    for (auto &r : records_)
      if (!r.second.alive.expired())
        notice(r.second, thorough);
    for (auto &c : collections_)
      if (!c.second.there.expired())
        push_decay(*c.first, c.second);
  }

  // Moves the engine's gradients of a parameter to DyNet's own, for a trainer of DyNet's.
  void deliver(parameter_record &r) {
    std::vector<float> g;
    if (r.dense) {
      r.dense->accumulate_grad(gradient(r, g, 0, r.size(), r.dense->dim));
    } else {
      bool whole = false;
      for (uint32_t row : touched(r, whole))
        r.table->accumulate_grad(row, gradient(r, g, row * r.row(), r.row(), r.table->dim));
      if (whole)
        r.table->accumulate_grad(gradient(r, g, 0, r.size(), r.table->all_dim));
    }
    r.delivered = true;
    drop_gradient(r);
  }
  void drop_gradient(const parameter_record &r) {
    check(vpps_parameter_scale(engine_, r.id, VPPS_GRADIENT, 0));
  }

  // Rows of a table whose gradient is pending; whole: all of it.
  std::vector<uint32_t> touched(const parameter_record &r, bool &whole) {
    uint64_t count = 0;
    int all = 0;
    check(vpps_parameter_touched(engine_, r.id, nullptr, 0, &count, &all));
    std::vector<uint32_t> rows(count);
    check(vpps_parameter_touched(engine_, r.id, rows.data(), rows.size(), &count, &all));
    whole = all != 0;
    if (whole)
      rows.clear();
    return rows;
  }

  // `updated` is a plain field that programs set as they like.
  void tell_updated(dynet::ParameterCollection &model) {
    each(model, [this](parameter_record &r) {
      if (r.updated == r.wanted_updated())
        return;
      check(vpps_parameter_set_updated(engine_, r.id, r.wanted_updated()));
      r.updated = r.wanted_updated();
    });
  }

  // The engine's collection of a model; tells it a changed lambda.
  uint32_t collection(dynet::ParameterCollection &model) {
    auto &dense = model.parameters_list();
    auto &tables = model.lookup_parameters_list();
    dynet::ParameterCollection *owner = !dense.empty()    ? dense[0]->owner
                                        : !tables.empty() ? tables[0]->owner
                                                          : &model;
    collection_record &c = record(owner->get_storage());
    const float lambda = owner->get_weight_decay_lambda();
    if (lambda != c.lambda) {
      check(vpps_collection_set_lambda(engine_, c.id, lambda));
      c.lambda = lambda;
    }
    return c.id;
  }

  parameter_record *known(const std::shared_ptr<dynet::ParameterStorageBase> &p) {
    const auto at = records_.find(key(p.get()));
    return at == records_.end() ? nullptr : &at->second;
  }
  parameter_record &changeable(const parameter_record &r) {
    return const_cast<parameter_record &>(r);
  }

  // Brings DyNet's weight decay factor to the engine's. True if the values were scaled on the
  // way: the factor only falls in between.
  bool pull_decay(dynet::ParameterCollection &model) {
    const uint32_t id = collection(model);
    for (auto &c : collections_)
      if (c.second.id == id)
        return pull_decay(*c.first, c.second);
    return false;
  }

private:
  parameters() {}

  void is_current(parameter_record &r) {
    if (!r.stale)
      return;
    r.stale = false;
    r.set_device(r.dense ? r.dense->device : r.table->device);
  }

  // A program may have written into marked memory: all of it is a new value, less is an error.
  void notice_stale(parameter_record &r, bool thorough) {
    const float *now = r.values();
    if (thorough ? std::memcmp(now, r.seen.data(), r.size() * sizeof(float)) == 0
                 : !differs(now, r.seen))
      return;
    if (marked(now, r.size()))
      throw std::invalid_argument("parameter " + r.name() +
                                  " was changed in DyNet's memory, which does not have the trained "
                                  "values: call pull(model) before that, and then push(model)");
    is_current(r);
    push(r, 0, r.size());
  }

  void notice(parameter_record &r, bool thorough) {
    const float *now = r.values();
    const size_t n = r.size();
    if (n == 0)
      return;
    if (r.stale)
      return notice_stale(r, thorough);
    if (r.own) {
      if (r.delivered)
        push(r, 0, r.row());
      r.delivered = false;
      return;
    }
    if (r.table) {
      if ((thorough && r.delivered) || differs(now, r.seen)) {
        for (size_t at = 0; at < n; at += r.row())
          if (std::memcmp(now + at, &r.seen[at], r.row() * sizeof(float)) != 0)
            push(r, at, r.row());
        r.delivered = false;
      }
    } else if (thorough ? std::memcmp(now, r.seen.data(), n * sizeof(float)) != 0
                        : differs(now, r.seen)) {
      push(r, 0, n);
    }
  }

  bool pull_decay(dynet::ParameterCollectionStorage &root, collection_record &c) {
    check(vpps_collection_factor(engine_, c.id, &c.factor));
    dynet::L2WeightDecay &decay = root.weight_decay;
    const bool scaled = decay.current_weight_decay() < c.factor;
    VPPS_HIDDEN(decay, L2WeightDecay, weight_decay) = c.factor;
    return scaled;
  }

  // The engine's weight decay factor follows DyNet's, which the program or DyNet's own trainer
  // moves.
  void push_decay(dynet::ParameterCollectionStorage &root, collection_record &c) {
    const float factor = root.weight_decay.current_weight_decay();
    if (factor == c.factor)
      return;
    check(vpps_collection_set_factor(engine_, c.id, factor));
    c.factor = factor;
  }

  static bool differs(const float *now, const std::vector<float> &seen) {
    const size_t n = seen.size(), samples = 16, step = n / samples + 1;
    for (size_t i = 0; i < n; i += step)
      if (std::memcmp(now + i, &seen[i], sizeof(float)) != 0)
        return true;
    return std::memcmp(now + n - 1, &seen[n - 1], sizeof(float)) != 0;
  }

  dynet::Tensor gradient(const parameter_record &r, std::vector<float> &g, size_t from,
                         size_t count, const dynet::Dim &d) {
    g.resize(count);
    check(vpps_parameter_read(engine_, r.id, VPPS_GRADIENT, from, count, g.data()));
    return dynet::Tensor(d, g.data(), dynet::default_device, dynet::DeviceMempool::NONE);
  }

  static parameters *opened() {
    std::unique_ptr<parameters> p(new parameters);
    p->open();
    return p.release();
  }
  void open() {
    if (dynet::default_device == nullptr)
      throw std::invalid_argument("dynet::initialize must be called before libvpps is used");
    check(vpps_frontend(VPPS_FRONTEND_INSTALLED));
    vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
    o.device = std::getenv("VPPS_DEVICE");
    o.plan = std::getenv("VPPS_PLAN");
    o.trace = std::getenv("VPPS_TRACE");
    if (const char *times = std::getenv("VPPS_TIMES"))
      o.times = std::string(times) == "1";
    chosen_options::all().into(o);
    if (o.data_parallel)
      throw std::invalid_argument("vpps::options::data_parallel: an installed DyNet trains in one "
                                  "process: compile against libvpps's own headers");
    // A copy: the program's own sequence of random numbers stays as it is without libvpps.
    std::mt19937 random = *dynet::rndeng;
    while (o.seed == 0)
      o.seed = static_cast<uint32_t>(random());
    check(while_waiting([&] { return vpps_engine_open(&o, &engine_); }));
    check(vpps_engine_seed(engine_, o.seed));
  }

  const parameter_record &find(void *storage, dynet::ParameterCollection *owner) {
    const auto at = records_.find(storage);
    if (at != records_.end())
      return at->second;
    if (owner == nullptr)
      throw std::invalid_argument("a parameter belongs to no collection: make it with "
                                  "add_parameters or add_lookup_parameters");
    add_all(*owner);
    const auto made = records_.find(storage);
    if (made == records_.end())
      throw std::invalid_argument("a parameter is not listed in the collection that made it");
    return made->second;
  }

  // In the order in which the program made them, which then is that of the ids.
  void add_all(dynet::ParameterCollection &root) {
    sweep();
    for (auto &p : root.get_parameter_storages_base())
      if (!records_.count(key(p.get())))
        add(root, p);
  }

  static void *key(dynet::ParameterStorageBase *p) {
    if (auto *dense = dynamic_cast<dynet::ParameterStorage *>(p))
      return dense;
    return dynamic_cast<dynet::LookupParameterStorage *>(p);
  }

  void add(dynet::ParameterCollection &root,
           const std::shared_ptr<dynet::ParameterStorageBase> &p) {
    parameter_record r;
    r.dense = dynamic_cast<dynet::ParameterStorage *>(p.get());
    r.table = dynamic_cast<dynet::LookupParameterStorage *>(p.get());
    const std::string &name = r.name();
    dynet::Device *device = r.dense ? r.dense->device : r.table->device;
    if (device->type != dynet::DeviceType::CPU)
      throw std::invalid_argument("parameter " + name + " is in the memory of DyNet's device " +
                                  device->name +
                                  ", libvpps reads only the host's: run with --dynet-devices CPU");
    collection_record &c = record(root.get_storage());
    r.collection = c.id;
    r.alive = p;
    r.updated = true;
    // Programs make parameters without elements, and do not use them. The engine's have some, and a
    // dim that no node has.
    const float nothing[2] = {};
    const bool empty = r.size() == 0;
    const dynet::Dim &dim = r.dense ? r.dense->dim : r.table->all_dim;
    const vpps_dim d = wire(empty ? dynet::Dim({dim.d[0] == 1 ? 2u : 1u, 1}) : dim);
    check(vpps_parameter_create(engine_, c.id, name.c_str(), &d,
                                r.dense ? 0 : VPPS_PARAMETER_LOOKUP, empty ? nothing : r.values(),
                                &r.id));
    r.seen.assign(r.values(), r.values() + r.size());
    records_[key(p.get())] = r;
  }

  collection_record &record(dynet::ParameterCollectionStorage &root) {
    const auto at = collections_.find(&root);
    if (at != collections_.end() && !at->second.there.expired())
      return at->second;
    collection_record c;
    c.lambda = root.weight_decay.get_lambda();
    c.there = life_of(root);
    c.factor = 1;
    check(vpps_collection_create(engine_, c.lambda, &c.id));
    push_decay(root, c);
    return collections_[&root] = c;
  }

  // Parameters whose model is gone.
  void sweep() {
    for (auto at = records_.begin(); at != records_.end();)
      if (at->second.alive.expired()) {
        vpps_parameter_destroy(engine_, at->second.id);
        at = records_.erase(at);
      } else {
        ++at;
      }
  }

  vpps_engine *engine_ = nullptr;
  unsigned handles_ = 0;
  std::unordered_map<void *, parameter_record> records_;
  std::unordered_map<dynet::ParameterCollectionStorage *, collection_record> collections_;
};

} // namespace installed
} // namespace vpps
#endif
