// The engine under an installed DyNet, and which of its parameters each of DyNet's is. The
// engine has the values that count; DyNet's own memory is brought up to date by pull().
#ifndef VPPS_INSTALLED_PARAMETERS_HPP
#define VPPS_INSTALLED_PARAMETERS_HPP

#include <dynet/dynet.h>
#include <dynet/except.h>
#include <dynet/globals.h>
#include <dynet/model.h>

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

namespace vpps {
namespace installed {

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

// A Parameter or LookupParameter of DyNet and the engine's.
struct parameter_record {
  uint32_t id, collection;
  dynet::ParameterStorage *dense; // one of the two
  dynet::LookupParameterStorage *table;
  std::weak_ptr<dynet::ParameterStorageBase> alive; // keeps the address from being used again
  bool updated;                                     // what the engine knows of `updated`
  bool stale = false;                               // the engine's values are newer than DyNet's

  float *values() const { return dense ? dense->values.v : table->all_values.v; }
  float *gradient() const { return dense ? dense->g.v : table->all_grads.v; }
  size_t size() const { return dense ? dense->dim.size() : table->all_dim.size(); }
  bool wanted_updated() const { return dense ? dense->updated : table->updated; }
};

// One of DyNet's root collections: it carries the weight decay.
struct collection_record {
  uint32_t id;
  float lambda;
  float factor; // DyNet's weight decay factor, in step with the engine's
  std::weak_ptr<dynet::ParameterStorageBase> first;
};

class parameters {
public:
  // The process's; opens the engine at the first call.
  static parameters &all() {
    static parameters *p = new parameters; // lives on: static models outlive other statics
    if (p->engine_ == nullptr)
      p->open();
    return *p;
  }

  vpps_engine *engine() const { return engine_; }
  uint64_t updates = 0; // counts updates: what a graph evaluated before one is stale for fb

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

  // Engine to DyNet: whatever is newer there.
  void pull(dynet::ParameterCollection &model) {
    each(model, [this](parameter_record &r) { pull(r); });
    pull_decay(model);
  }
  void pull(parameter_record &r) {
    check(vpps_parameter_read(engine_, r.id, VPPS_VALUES, 0, r.size(), r.values()));
    r.stale = false;
  }
  // DyNet to engine.
  void push(dynet::ParameterCollection &model) {
    each(model, [this](parameter_record &r) {
      check(vpps_parameter_write(engine_, r.id, VPPS_VALUES, 0, r.size(), r.values()));
      r.stale = false;
    });
  }
  // After an update by the engine, of which nothing has been copied yet.
  void mark_stale(dynet::ParameterCollection &model) {
    each(model, [](parameter_record &r) {
      if (r.wanted_updated())
        r.stale = true;
    });
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
    collection_record &c = record(*owner);
    const float lambda = owner->get_weight_decay_lambda();
    if (lambda != c.lambda) {
      check(vpps_collection_set_lambda(engine_, c.id, lambda));
      c.lambda = lambda;
    }
    return c.id;
  }

private:
  parameters() {}

  void open() {
    if (dynet::default_device == nullptr)
      throw std::invalid_argument("dynet::initialize must be called before libvpps is used");
    check(vpps_frontend(VPPS_FRONTEND_INSTALLED));
    vpps_engine_options o = VPPS_ENGINE_OPTIONS_INIT;
    o.device = std::getenv("VPPS_DEVICE");
    // A copy: the program's own sequence of random numbers stays as it is without libvpps.
    std::mt19937 random = *dynet::rndeng;
    while (o.seed == 0)
      o.seed = static_cast<uint32_t>(random());
    check(vpps_engine_open(&o, &engine_));
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
    const std::string &name = r.dense ? r.dense->name : r.table->name;
    dynet::Device *device = r.dense ? r.dense->device : r.table->device;
    if (device != dynet::default_device)
      throw std::invalid_argument("parameter " + name +
                                  " is on another device of DyNet's than its "
                                  "default one: libvpps reads only that");
    collection_record &c = record(root);
    r.collection = c.id;
    r.alive = p;
    r.updated = true;
    const vpps_dim d = wire(r.dense ? r.dense->dim : r.table->all_dim);
    check(vpps_parameter_create(engine_, c.id, name.c_str(), &d,
                                r.dense ? 0 : VPPS_PARAMETER_LOOKUP, r.values(), &r.id));
    if (c.first.expired())
      c.first = p;
    records_[key(p.get())] = r;
  }

  collection_record &record(dynet::ParameterCollection &root) {
    const auto at = collections_.find(&root);
    if (at != collections_.end() && !at->second.first.expired())
      return at->second;
    collection_record c;
    c.lambda = root.get_weight_decay_lambda();
    c.factor = root.get_weight_decay().current_weight_decay();
    if (c.factor != 1) { // the engine begins with 1: fold the factor into the values, as DyNet does
      for (auto &p : root.get_parameter_storages_base())
        p->scale_parameters(c.factor);
      root.get_weight_decay().reset_weight_decay();
      c.factor = 1;
    }
    check(vpps_collection_create(engine_, c.lambda, &c.id));
    return collections_[&root] = c;
  }

  // Brings DyNet's weight decay factor to the engine's, by the steps that DyNet takes.
  void pull_decay(dynet::ParameterCollection &model) {
    const uint32_t id = collection(model);
    for (auto &c : collections_) {
      if (c.second.id != id || c.second.lambda == 0)
        continue;
      float factor = 1;
      check(vpps_collection_factor(engine_, id, &factor));
      dynet::L2WeightDecay &decay = c.first->get_weight_decay();
      if (decay.current_weight_decay() < factor)
        decay.reset_weight_decay();
      while (decay.current_weight_decay() > factor)
        decay.update_weight_decay();
    }
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
  std::unordered_map<void *, parameter_record> records_;
  std::unordered_map<dynet::ParameterCollection *, collection_record> collections_;
};

} // namespace installed
} // namespace vpps
#endif
