// Parameters and their collections. Values and gradients live in the engine (on a GPU in its
// memory). A program that looks at a storage finds their Tensors there: from then on the engine
// shows it what calls change, and what the program writes there counts at the next call.
#ifndef DYNET_MODEL_H
#define DYNET_MODEL_H

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dynet/engine.h"
#include "dynet/except.h"
#include "dynet/init.h"
#include "dynet/param-init.h"
#include "dynet/tensor.h"
#include "dynet/weight-decay.h"

namespace dynet {

class ParameterCollection;
struct CollectionState;

// What Parameter and LookupParameter have in common: a block of floats in the engine.
struct ParameterStorageBase {
  virtual ~ParameterStorageBase();
  void scale_parameters(float a);
  void scale_gradient(float a);
  virtual void zero() = 0;
  // Sums of squares of the stored values and of the gradient.
  void squared_l2norm(float *sqnorm) const;
  void g_squared_l2norm(float *sqnorm) const;
  size_t size() const { return engine_dim.size(); }
  bool is_updated() const { return updated; }
  // Whether there was a gradient since the last update.
  bool has_grad() const { return nonzero_grad; }
  // Sets the gradient to zero.
  void clear();

  // Reads without making the host copy.
  std::vector<float> read(vpps_part part) const;
  void write(vpps_part part, size_t offset, const float *from, size_t count);
  float current_weight_decay() const;

  std::string name; // "/collection/name"
  bool updated;     // whether trainers change it
  bool nonzero_grad;
  Device *device;
  ParameterCollection *owner; // where it was added

  uint32_t id;    // in the engine
  Dim engine_dim; // all of it; for a table the last axis counts the rows
  // The dim in the graph being recorded; valid while dim_epoch is the recorder's.
  uint32_t dim_id, dim_epoch, row_dim_id, row_dim_epoch;

protected:
  ParameterStorageBase(CollectionState &root, const std::string &name, const Dim &dim,
                       uint32_t flags, const ParameterInit &init, Device *device);
  // Sets t.v to where the program sees a part.
  void expose(vpps_part part, Tensor &t);
  void accumulate(const float *g, size_t offset, size_t count);
  std::shared_ptr<Engine> engine_;
  uint32_t collection_;

private:
  friend class Trainer;
  bool engine_updated_; // what the engine knows of `updated`
  ParameterStorageBase(const ParameterStorageBase &);
  ParameterStorageBase &operator=(const ParameterStorageBase &);
};

struct ParameterStorage : public ParameterStorageBase {
  Dim dim;
  Tensor values, g;

  void zero() override; // values and gradient
  void copy(const ParameterStorage &other);
  void accumulate_grad(const Tensor &g);
  void clip(float left, float right);
  void set_value(const std::vector<float> &val); // raw: weight decay is not divided out
  void expose_values() { ParameterStorageBase::expose(VPPS_VALUES, values); }
  void expose_gradient() { ParameterStorageBase::expose(VPPS_GRADIENT, g); }

private:
  friend class ParameterCollection;
  ParameterStorage(CollectionState &root, const std::string &name, const Dim &d,
                   const ParameterInit &init, Device *device);
};

struct LookupParameterStorage : public ParameterStorageBase {
  Dim all_dim, dim; // of the table and of one row
  Tensor all_values, all_grads;
  std::vector<Tensor> values, grads; // row by row
  bool all_updated;                  // the table as a whole has a gradient

  void zero() override; // values only
  void initialize(unsigned index, const std::vector<float> &val);
  void copy(const LookupParameterStorage &other);
  void accumulate_grad(const Tensor &g);
  void accumulate_grad(unsigned index, const Tensor &g);
  // Rows that have a gradient.
  std::unordered_set<unsigned> non_zero_grads() const;
  void expose_values();
  void expose_gradient();

private:
  friend class ParameterCollection;
  void expose_rows(vpps_part part, Tensor &all, std::vector<Tensor> &rows);
  LookupParameterStorage(CollectionState &root, const std::string &name, unsigned n, const Dim &row,
                         const ParameterInit &init, Device *device);
};

// Shares a storage. Whoever looks at the storage through it finds values and gradients there: they
// are exposed first, but for unexposed().
template <class Storage> class StoragePointer {
public:
  StoragePointer() {}
  StoragePointer(std::nullptr_t) {}
  StoragePointer(const std::shared_ptr<Storage> &p) : p_(p) {}
  Storage *get() const {
    if (p_) {
      p_->expose_values();
      p_->expose_gradient();
    }
    return p_.get();
  }
  Storage *operator->() const { return get(); }
  Storage &operator*() const { return *get(); }
  operator const std::shared_ptr<Storage> &() const {
    get();
    return p_;
  }
  const std::shared_ptr<Storage> &unexposed() const { return p_; }
  explicit operator bool() const { return static_cast<bool>(p_); }
  void reset() { p_.reset(); }
  long use_count() const { return p_.use_count(); }

private:
  std::shared_ptr<Storage> p_;
};

template <class S> bool operator==(const StoragePointer<S> &a, const StoragePointer<S> &b) {
  return a.unexposed() == b.unexposed();
}
template <class S> bool operator==(const StoragePointer<S> &a, const std::shared_ptr<S> &b) {
  return a.unexposed() == b;
}
template <class S> bool operator==(const std::shared_ptr<S> &a, const StoragePointer<S> &b) {
  return a == b.unexposed();
}
template <class S> bool operator==(const StoragePointer<S> &a, std::nullptr_t) { return !a; }
template <class S> bool operator==(std::nullptr_t, const StoragePointer<S> &a) { return !a; }
template <class S, class T> bool operator!=(const StoragePointer<S> &a, const T &b) {
  return !(a == b);
}
template <class S> bool operator!=(const std::shared_ptr<S> &a, const StoragePointer<S> &b) {
  return !(a == b);
}
template <class S> bool operator!=(std::nullptr_t, const StoragePointer<S> &a) {
  return !(a == nullptr);
}

// A trainable tensor. Copies share it.
struct Parameter {
  Parameter() {}
  explicit Parameter(const std::shared_ptr<ParameterStorage> &p) : p(p) {}
  ParameterStorage &get_storage() const;
  const std::string &get_fullname() const { return storage().name; }
  void zero() { storage().zero(); }
  Dim dim() const { return storage().dim; }
  Tensor *values();
  Tensor *gradients();
  float current_weight_decay() const { return storage().current_weight_decay(); }
  void set_updated(bool b) { storage().updated = b; }
  bool is_updated() const { return storage().updated; }
  void scale(float s) { storage().scale_parameters(s); }
  void scale_gradient(float s) { storage().scale_gradient(s); }
  void clip_inplace(float left, float right);
  void set_value(const std::vector<float> &val) { storage().set_value(val); }

  StoragePointer<ParameterStorage> p;

private:
  ParameterStorage &storage() const { return *p.unexposed(); }
};

// A table of n rows of one dim, of which graphs look rows up. Copies share it.
struct LookupParameter {
  LookupParameter() {}
  explicit LookupParameter(const std::shared_ptr<LookupParameterStorage> &p) : p(p) {}
  LookupParameterStorage &get_storage() const;
  // Sets row index; a wrong size or index: std::invalid_argument.
  void initialize(unsigned index, const std::vector<float> &val) const {
    storage().initialize(index, val);
  }
  void zero() { storage().zero(); }
  const std::string &get_fullname() const { return storage().name; }
  Dim dim() const { return storage().dim; } // of one row
  std::vector<Tensor> *values();
  float current_weight_decay() const { return storage().current_weight_decay(); }
  void scale(float s) { storage().scale_parameters(s); }
  void scale_gradient(float s) { storage().scale_gradient(s); }
  void set_updated(bool b) { storage().updated = b; }
  bool is_updated() const { return storage().updated; }

  StoragePointer<LookupParameterStorage> p;

private:
  LookupParameterStorage &storage() const { return *p.unexposed(); }
};

// A model: parameters in order of creation, under names that are unique below their
// root: "/W", "/W_1", unnamed "/_0"; a sub-collection adds "/name/". Copies share the
// same parameters.
class ParameterCollection {
public:
  // Weight decay: what --dynet-weight-decay says, else none.
  ParameterCollection();
  virtual ~ParameterCollection() {}

  // Names must not contain '/' or '_': std::runtime_error. Before dynet::initialize:
  // std::invalid_argument. scale 0: Glorot, else uniform in [-scale,scale).
  Parameter add_parameters(const Dim &d, float scale = 0.0f, const std::string &name = "",
                           Device *device = default_device);
  Parameter add_parameters(const Dim &d, Device *device);
  Parameter add_parameters(const Dim &d, const std::string &name, Device *device = default_device);
  Parameter add_parameters(const Dim &d, const char *name, Device *device = default_device) {
    return add_parameters(d, std::string(name), device);
  }
  Parameter add_parameters(const Dim &d, const ParameterInit &init, const std::string &name = "",
                           Device *device = default_device);
  // n rows of dim d each.
  LookupParameter add_lookup_parameters(unsigned n, const Dim &d, const std::string &name = "",
                                        Device *device = default_device);
  LookupParameter add_lookup_parameters(unsigned n, const Dim &d, const ParameterInit &init,
                                        const std::string &name = "",
                                        Device *device = default_device);
  // weight_decay_lambda < 0: the same as this collection's.
  ParameterCollection add_subcollection(const std::string &name = "",
                                        float weight_decay_lambda = -1);

  // The getters and lists of storages expose them; a wrong name: std::runtime_error.
  std::vector<std::shared_ptr<ParameterStorageBase>> get_parameter_storages_base() const;
  std::shared_ptr<ParameterStorage> get_parameter_storage(const std::string &name) const;
  std::vector<std::shared_ptr<ParameterStorage>> get_parameter_storages() const;
  std::shared_ptr<LookupParameterStorage>
  get_lookup_parameter_storage(const std::string &name) const;
  std::vector<std::shared_ptr<LookupParameterStorage>> get_lookup_parameter_storages() const;
  const std::vector<std::shared_ptr<ParameterStorage>> &parameters_list() const;
  const std::vector<std::shared_ptr<LookupParameterStorage>> &lookup_parameters_list() const;
  // The same lists as they are.
  const std::vector<std::shared_ptr<ParameterStorage>> &unexposed_parameters() const;
  const std::vector<std::shared_ptr<LookupParameterStorage>> &unexposed_tables() const;

  void reset_gradient();
  float gradient_l2_norm() const;
  size_t parameter_count() const; // floats, tables included
  size_t updated_parameter_count() const;
  size_t size() const; // Parameters, without tables
  const std::string &get_fullname() const;

  void set_weight_decay_lambda(float lambda);
  L2WeightDecay &get_weight_decay();
  float get_weight_decay_lambda() const;
  // Ids in the engine: parameters, then tables.
  std::vector<uint32_t> engine_ids() const;

private:
  std::shared_ptr<CollectionState> state_;
};

typedef ParameterCollection Model;

// One collection in a text file, under the key "/model".
void save_dynet_model(std::string filename, ParameterCollection *model);
void load_dynet_model(std::string filename, ParameterCollection *model);

} // namespace dynet
#endif
