// Parameters, tables and collections over the engine's blocks of floats.
#include "dynet/model.h"

#include <cmath>
#include <iostream>
#include <stdexcept>

#include "dynet/io.h"
#include "recorder.h"

namespace dynet {

// What copies of a ParameterCollection share. A parameter is listed in its collection
// and in all those above it; weight decay is the root's.
struct CollectionState : public ParameterCollectionStorage {
  std::shared_ptr<CollectionState> parent;                                // null: a root
  std::string name;                                                       // "/", "/sub/"
  std::unordered_map<std::string, int> parameter_names, collection_names; // how often used

  explicit CollectionState(float lambda) : ParameterCollectionStorage(lambda) {}
  CollectionState &root() {
    CollectionState *s = this;
    while (s->parent)
      s = s->parent.get();
    return *s;
  }
};

namespace {

vpps_dim wire(const Dim &d) {
  vpps_dim w = vpps_dim();
  w.nd = d.nd;
  w.bd = d.bd;
  for (unsigned i = 0; i < d.nd; ++i)
    w.d[i] = d.d[i];
  return w;
}

// A name below a collection: numbered when it was used before, or is empty.
std::string unique_name(const std::string &prefix, const std::string &name,
                        std::unordered_map<std::string, int> &used) {
  if (name.find_first_of("/_") != std::string::npos)
    throw std::runtime_error("the name '" + name + "' must not contain '/' or '_'");
  int index = used[name]++;
  std::string full = prefix + name;
  if (index > 0 || name.empty())
    full += "_" + std::to_string(index);
  return full;
}

Dim table_dim(unsigned n, const Dim &row) {
  Dim d = row;
  d.bd = 1;
  d.insert_dim(d.nd, n);
  return d;
}

} // namespace

// ---- weight decay --------------------------------------------------------------

void L2WeightDecay::set_lambda(float lambda) {
  if (!(lambda >= 0))
    throw std::domain_error("weight decay must not be negative");
  recorder.settle();
  lambda_ = lambda;
  if (engine_)
    check(vpps_collection_set_lambda(engine_->raw, collection_, lambda));
}

L2WeightDecay::L2WeightDecay(const L2WeightDecay &o)
    : lambda_(o.lambda_), factor_(o.current_weight_decay()), collection_(0) {}

L2WeightDecay &L2WeightDecay::operator=(const L2WeightDecay &o) {
  if (this == &o)
    return *this;
  const float factor = o.current_weight_decay();
  set_lambda(o.lambda_);
  set_factor(factor);
  return *this;
}

void L2WeightDecay::set_factor(float factor) {
  recorder.settle();
  if (engine_)
    check(vpps_collection_set_factor(engine_->raw, collection_, factor));
  factor_ = factor;
}

// One update is rounded otherwise than many, as in DyNet.
void L2WeightDecay::update_weight_decay(unsigned num_updates) {
  if (num_updates == 0 || lambda_ == 0)
    return;
  const float factor = current_weight_decay();
  set_factor(num_updates == 1
                 ? factor - factor * lambda_
                 : static_cast<float>(factor * std::pow(double(1 - lambda_), num_updates)));
}

void L2WeightDecay::reset_weight_decay() { set_factor(1); }

float L2WeightDecay::current_weight_decay() const {
  float factor = factor_;
  if (engine_)
    check(vpps_collection_factor(engine_->raw, collection_, &factor));
  return factor;
}

uint32_t L2WeightDecay::collection() {
  if (!engine_) {
    const std::shared_ptr<Engine> &e = engine("parameters are added");
    check(vpps_collection_create(e->raw, lambda_, &collection_));
    if (factor_ != 1)
      check(vpps_collection_set_factor(e->raw, collection_, factor_));
    engine_ = e;
  }
  return collection_;
}

// ---- storage -------------------------------------------------------------------

ParameterStorageBase::ParameterStorageBase(CollectionState &root, const std::string &name,
                                           const Dim &dim, uint32_t flags,
                                           const ParameterInit &init, Device *device)
    : name(name), updated(true), nonzero_grad(false), device(device), owner(nullptr), id(0),
      engine_dim(dim), dim_id(0), dim_epoch(0), row_dim_id(0), row_dim_epoch(0),
      engine_(engine("parameters are added")), collection_(root.weight_decay.collection()),
      engine_updated_(true) {
  if (dim.bd != 1 || dim.nd == 0)
    throw std::invalid_argument("parameter " + name +
                                ": needs a dim of at least one axis, without a batch");
  // Programs make parameters without elements, and do not use them. The engine's have some, and a
  // dim that no node has.
  const Dim stored = dim.size() > 0 ? dim : Dim({dim.d[0] == 1 ? 2u : 1u, 1});
  std::vector<float> values(stored.size());
  Tensor t(dim, values.data(), device, DeviceMempool::PS);
  init.initialize_params(t);
  vpps_dim w = wire(stored);
  check(vpps_parameter_create(engine_->raw, collection_, name.c_str(), &w, flags, values.data(),
                              &id));
}

// A failure while letting go has nobody to tell.
ParameterStorageBase::~ParameterStorageBase() { recorder.release(engine_, *this); }

void ParameterStorageBase::scale_parameters(float a) {
  recorder.settle();
  check(vpps_parameter_scale(engine_->raw, id, VPPS_VALUES, a));
}
void ParameterStorageBase::scale_gradient(float a) {
  check(vpps_parameter_scale(engine_->raw, id, VPPS_GRADIENT, a));
}
void ParameterStorageBase::clear() {
  scale_gradient(0);
  nonzero_grad = false;
}

std::vector<float> ParameterStorageBase::read(vpps_part part) const {
  std::vector<float> v(size());
  if (!v.empty())
    check(vpps_parameter_read(engine_->raw, id, part, 0, v.size(), v.data()));
  return v;
}

void ParameterStorageBase::write(vpps_part part, size_t offset, const float *from, size_t count) {
  recorder.settle();
  if (count > 0)
    check(vpps_parameter_write(engine_->raw, id, part, offset, count, from));
}

namespace {
// Sums side by side, so that none waits for the one before.
double sum_of_squares(const std::vector<float> &v) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= v.size(); i += 8)
    for (size_t k = 0; k < 8; ++k)
      sums[k] += static_cast<double>(v[i + k]) * v[i + k];
  for (; i < v.size(); ++i)
    sums[0] += static_cast<double>(v[i]) * v[i];
  double all = 0;
  for (double s : sums)
    all += s;
  return all;
}

// To copy this many floats takes about as long as to begin another copy.
const size_t floats_of_a_copy = 1 << 14;
} // namespace

void ParameterStorageBase::squared_l2norm(float *sqnorm) const {
  *sqnorm = static_cast<float>(sum_of_squares(read(VPPS_VALUES)));
}

// Of a large table only the rows that have a gradient.
void ParameterStorageBase::g_squared_l2norm(float *sqnorm) const {
  *sqnorm = 0;
  if (size() == 0)
    return;
  uint64_t count = 0;
  int all = 0;
  check(vpps_parameter_touched(engine_->raw, id, nullptr, 0, &count, &all));
  const size_t row = size() / engine_dim[engine_dim.nd - 1];
  if (all || count * (row + floats_of_a_copy) >= size()) {
    *sqnorm = static_cast<float>(sum_of_squares(read(VPPS_GRADIENT)));
    return;
  }
  std::vector<uint32_t> rows(count);
  check(vpps_parameter_touched(engine_->raw, id, rows.data(), rows.size(), &count, &all));
  std::vector<float> g(row);
  double sum = 0;
  for (uint32_t r : rows) {
    check(vpps_parameter_read(engine_->raw, id, VPPS_GRADIENT, r * row, row, g.data()));
    sum += sum_of_squares(g);
  }
  *sqnorm = static_cast<float>(sum);
}

float ParameterStorageBase::current_weight_decay() const {
  float factor = 1;
  check(vpps_collection_factor(engine_->raw, collection_, &factor));
  return factor;
}

void ParameterStorageBase::expose(vpps_part part, Tensor &t) {
  if (t.v != nullptr)
    return;
  recorder.settle();
  recorder.exposed = true;
  check(vpps_parameter_expose(engine_->raw, id, part, &t.v));
}

void ParameterStorageBase::accumulate(const float *g, size_t offset, size_t count) {
  std::vector<float> sum(count);
  check(vpps_parameter_read(engine_->raw, id, VPPS_GRADIENT, offset, count, sum.data()));
  for (size_t i = 0; i < count; ++i)
    sum[i] += g[i];
  write(VPPS_GRADIENT, offset, sum.data(), count);
  nonzero_grad = true;
}

namespace {
void same_size(const std::string &name, size_t wanted, size_t got) {
  if (wanted != got)
    throw std::invalid_argument(name + ": " + std::to_string(got) + " values where it has " +
                                std::to_string(wanted));
}
} // namespace

ParameterStorage::ParameterStorage(CollectionState &root, const std::string &name, const Dim &d,
                                   const ParameterInit &init, Device *device)
    : ParameterStorageBase(root, name, d, 0, init, device), dim(d),
      values(d, nullptr, device, DeviceMempool::PS), g(d, nullptr, device, DeviceMempool::PS) {}

void ParameterStorage::zero() {
  scale_parameters(0);
  clear();
}

void ParameterStorage::copy(const ParameterStorage &other) {
  same_size(name, size(), other.size());
  std::vector<float> v = other.read(VPPS_VALUES);
  write(VPPS_VALUES, 0, v.data(), v.size());
}

void ParameterStorage::accumulate_grad(const Tensor &d) {
  same_size(name, size(), d.d.size());
  accumulate(d.v, 0, size());
}

void ParameterStorage::clip(float left, float right) {
  std::vector<float> v = read(VPPS_VALUES);
  for (float &x : v)
    x = x < left ? left : x > right ? right : x;
  write(VPPS_VALUES, 0, v.data(), v.size());
}

void ParameterStorage::set_value(const std::vector<float> &val) {
  same_size(name, size(), val.size());
  write(VPPS_VALUES, 0, val.data(), val.size());
}

LookupParameterStorage::LookupParameterStorage(CollectionState &root, const std::string &name,
                                               unsigned n, const Dim &row,
                                               const ParameterInit &init, Device *device)
    : ParameterStorageBase(root, name, table_dim(n, row), VPPS_PARAMETER_LOOKUP, init, device),
      all_dim(engine_dim), dim(row), all_values(all_dim, nullptr, device, DeviceMempool::PS),
      all_grads(all_dim, nullptr, device, DeviceMempool::PS), all_updated(false) {}

void LookupParameterStorage::zero() { scale_parameters(0); }

void LookupParameterStorage::initialize(unsigned index, const std::vector<float> &val) {
  same_size(name, dim.size(), val.size());
  if (index >= all_dim[all_dim.nd - 1])
    throw std::invalid_argument(name + " has no row " + std::to_string(index) + ", only " +
                                std::to_string(all_dim[all_dim.nd - 1]));
  write(VPPS_VALUES, static_cast<size_t>(index) * dim.size(), val.data(), val.size());
}

void LookupParameterStorage::copy(const LookupParameterStorage &other) {
  same_size(name, size(), other.size());
  std::vector<float> v = other.read(VPPS_VALUES);
  write(VPPS_VALUES, 0, v.data(), v.size());
}

void LookupParameterStorage::accumulate_grad(const Tensor &d) {
  same_size(name, size(), d.d.size());
  accumulate(d.v, 0, size());
  all_updated = true;
}

void LookupParameterStorage::accumulate_grad(unsigned index, const Tensor &d) {
  same_size(name, dim.size(), d.d.size());
  accumulate(d.v, static_cast<size_t>(index) * dim.size(), dim.size());
}

void LookupParameterStorage::accumulate_grads(unsigned n, const unsigned *ids, const unsigned *,
                                              float *g) {
  for (unsigned i = 0; i < n; ++i)
    accumulate(g + static_cast<size_t>(i) * dim.size(), static_cast<size_t>(ids[i]) * dim.size(),
               dim.size());
}

std::unordered_set<unsigned> LookupParameterStorage::non_zero_grads() const {
  uint64_t count = 0;
  int all = 0;
  check(vpps_parameter_touched(engine_->raw, id, nullptr, 0, &count, &all));
  std::vector<uint32_t> rows(count);
  check(vpps_parameter_touched(engine_->raw, id, rows.data(), rows.size(), &count, &all));
  return std::unordered_set<unsigned>(rows.begin(), rows.end());
}

void LookupParameterStorage::expose_values() { expose_rows(VPPS_VALUES, all_values, values); }
void LookupParameterStorage::expose_gradient() { expose_rows(VPPS_GRADIENT, all_grads, grads); }

void LookupParameterStorage::expose_rows(vpps_part part, Tensor &all, std::vector<Tensor> &rows) {
  if (!rows.empty())
    return;
  ParameterStorageBase::expose(part, all);
  unsigned n = all_dim[all_dim.nd - 1];
  rows.reserve(n);
  for (unsigned i = 0; i < n; ++i)
    rows.push_back(
        Tensor(dim, all.v + static_cast<size_t>(i) * dim.size(), device, DeviceMempool::PS));
}

// ---- Parameter -----------------------------------------------------------------

namespace {
template <class Storage> Storage &existing(const StoragePointer<Storage> &p, const char *of) {
  if (!p)
    throw std::runtime_error(std::string("get_storage of an empty ") + of);
  return *p.unexposed();
}
} // namespace

ParameterStorage &Parameter::get_storage() const {
  existing(p, "Parameter");
  return *p;
}

Tensor *Parameter::values() {
  ParameterStorage &s = existing(p, "Parameter");
  s.expose_values();
  return &s.values;
}

Tensor *Parameter::gradients() {
  ParameterStorage &s = existing(p, "Parameter");
  s.expose_gradient();
  return &s.g;
}

void Parameter::clip_inplace(float left, float right) {
  float factor = current_weight_decay();
  storage().clip(left / factor, right / factor);
}

LookupParameterStorage &LookupParameter::get_storage() const {
  existing(p, "LookupParameter");
  return *p;
}

std::vector<Tensor> *LookupParameter::values() {
  LookupParameterStorage &s = existing(p, "LookupParameter");
  s.expose_values();
  return &s.values;
}

// ---- ParameterCollection -------------------------------------------------------

ParameterCollection::ParameterCollection()
    : state_(std::make_shared<CollectionState>(default_weight_decay_lambda)) {
  state_->name = "/";
}

Parameter ParameterCollection::add_parameters(const Dim &d, float scale, const std::string &name,
                                              Device *device) {
  if (scale == 0)
    return add_parameters(d, ParameterInitGlorot(), name, device);
  return add_parameters(d, ParameterInitUniform(scale), name, device);
}

Parameter ParameterCollection::add_parameters(const Dim &d, Device *device) {
  return add_parameters(d, ParameterInitGlorot(), "", device);
}

Parameter ParameterCollection::add_parameters(const Dim &d, const std::string &name,
                                              Device *device) {
  return add_parameters(d, ParameterInitGlorot(), name, device);
}

Parameter ParameterCollection::add_parameters(const Dim &d, const ParameterInit &init,
                                              const std::string &name, Device *device) {
  engine("parameters are added");
  std::string full = unique_name(state_->name, name, state_->parameter_names);
  std::shared_ptr<ParameterStorage> p(
      new ParameterStorage(state_->root(), full, d, init, device ? device : default_device));
  p->owner = this;
  for (CollectionState *s = state_.get(); s; s = s->parent.get()) {
    s->params.push_back(p);
    s->all_params.push_back(p);
  }
  return Parameter(p);
}

LookupParameter ParameterCollection::add_lookup_parameters(unsigned n, const Dim &d,
                                                           const std::string &name,
                                                           Device *device) {
  return add_lookup_parameters(n, d, ParameterInitGlorot(true), name, device);
}

LookupParameter ParameterCollection::add_lookup_parameters(unsigned n, const Dim &d,
                                                           const ParameterInit &init,
                                                           const std::string &name,
                                                           Device *device) {
  engine("parameters are added");
  std::string full = unique_name(state_->name, name, state_->parameter_names);
  std::shared_ptr<LookupParameterStorage> p(new LookupParameterStorage(
      state_->root(), full, n, d, init, device ? device : default_device));
  p->owner = this;
  for (CollectionState *s = state_.get(); s; s = s->parent.get()) {
    s->lookup_params.push_back(p);
    s->all_params.push_back(p);
  }
  return LookupParameter(p);
}

ParameterCollection ParameterCollection::add_subcollection(const std::string &name,
                                                           float weight_decay_lambda) {
  ParameterCollection sub;
  sub.state_ = std::make_shared<CollectionState>(weight_decay_lambda < 0 ? get_weight_decay_lambda()
                                                                         : weight_decay_lambda);
  sub.state_->name = unique_name(state_->name, name, state_->collection_names) + "/";
  sub.state_->parent = state_;
  return sub;
}

namespace {
template <class Storage> std::shared_ptr<Storage> exposed(const std::shared_ptr<Storage> &p) {
  return StoragePointer<Storage>(p);
}

template <class Storage>
const std::vector<std::shared_ptr<Storage>> &
exposed(const std::vector<std::shared_ptr<Storage>> &all) {
  for (auto &p : all)
    exposed(p);
  return all;
}

template <class Storage>
std::shared_ptr<Storage> named(const std::vector<std::shared_ptr<Storage>> &all,
                               const std::string &name, const char *kind) {
  for (auto &p : all)
    if (p->name == name)
      return exposed(p);
  throw std::runtime_error(std::string("no ") + kind + " is called '" + name + "'");
}
} // namespace

std::vector<std::shared_ptr<ParameterStorageBase>>
ParameterCollection::get_parameter_storages_base() const {
  exposed(state_->params);
  exposed(state_->lookup_params);
  return state_->all_params;
}

std::shared_ptr<ParameterStorage>
ParameterCollection::get_parameter_storage(const std::string &name) const {
  return named(state_->root().params, name, "parameter");
}

std::vector<std::shared_ptr<ParameterStorage>> ParameterCollection::get_parameter_storages() const {
  return exposed(state_->params);
}

std::shared_ptr<LookupParameterStorage>
ParameterCollection::get_lookup_parameter_storage(const std::string &name) const {
  return named(state_->root().lookup_params, name, "lookup parameter");
}

std::vector<std::shared_ptr<LookupParameterStorage>>
ParameterCollection::get_lookup_parameter_storages() const {
  return exposed(state_->lookup_params);
}

const std::vector<std::shared_ptr<ParameterStorage>> &ParameterCollection::parameters_list() const {
  return exposed(state_->params);
}
const std::vector<std::shared_ptr<LookupParameterStorage>> &
ParameterCollection::lookup_parameters_list() const {
  return exposed(state_->lookup_params);
}

const std::vector<std::shared_ptr<ParameterStorage>> &
ParameterCollection::unexposed_parameters() const {
  return state_->params;
}
const std::vector<std::shared_ptr<LookupParameterStorage>> &
ParameterCollection::unexposed_tables() const {
  return state_->lookup_params;
}

void ParameterCollection::reset_gradient() {
  for (auto &p : state_->all_params)
    p->clear();
  for (auto &p : state_->lookup_params)
    p->all_updated = false;
}

float ParameterCollection::gradient_l2_norm() const { return state_->gradient_l2_norm(); }

ParameterCollectionStorage &ParameterCollection::get_storage() {
  get_parameter_storages_base();
  return *state_;
}
const ParameterCollectionStorage &ParameterCollection::get_storage() const {
  get_parameter_storages_base();
  return *state_;
}

size_t ParameterCollection::parameter_count() const {
  size_t n = 0;
  for (auto &p : state_->all_params)
    n += p->size();
  return n;
}

size_t ParameterCollection::updated_parameter_count() const {
  size_t n = 0;
  for (auto &p : state_->all_params)
    n += p->updated ? p->size() : 0;
  return n;
}

size_t ParameterCollection::size() const { return state_->params.size(); }
const std::string &ParameterCollection::get_fullname() const { return state_->name; }

void ParameterCollection::set_weight_decay_lambda(float lambda) {
  state_->weight_decay.set_lambda(lambda);
}
L2WeightDecay &ParameterCollection::get_weight_decay() { return state_->weight_decay; }
float ParameterCollection::get_weight_decay_lambda() const {
  return state_->weight_decay.get_lambda();
}

void ParameterCollection::project_weights(float radius) { state_->project_weights(radius); }

float ParameterCollectionStorage::gradient_l2_norm() const {
  double sum = 0;
  for (auto &p : all_params) {
    float s = 0;
    p->g_squared_l2norm(&s);
    sum += s;
  }
  return static_cast<float>(std::sqrt(sum));
}

void ParameterCollectionStorage::project_weights(float) {
  double sum = 0;
  for (auto &p : all_params) {
    float s = 0;
    p->squared_l2norm(&s);
    sum += static_cast<double>(s);
  }
  std::cerr << "NORM: " << std::sqrt(sum) << std::endl;
}

std::vector<uint32_t> ParameterCollection::engine_ids() const {
  std::vector<uint32_t> ids;
  for (auto &p : state_->params)
    ids.push_back(p->id);
  for (auto &p : state_->lookup_params)
    ids.push_back(p->id);
  return ids;
}

void save_dynet_model(std::string filename, ParameterCollection *model) {
  TextFileSaver(filename).save(*model, "/model");
}

void load_dynet_model(std::string filename, ParameterCollection *model) {
  TextFileLoader(filename).populate(*model, "/model");
}

} // namespace dynet
