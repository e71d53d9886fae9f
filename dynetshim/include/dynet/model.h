/// \file
/// Parameters and their collections. Values and gradients live in the engine (on a GPU in its
/// memory). A program that looks at a storage finds their tensors there. From then on they are
/// *exposed*: the engine shows there what calls change, and what the program writes there counts at
/// the next call.
#ifndef DYNET_PARAMS_H_
#define DYNET_PARAMS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
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

/// What parameters and tables have in common: a block of floats in the engine.
struct ParameterStorageBase {
  virtual ~ParameterStorageBase();
  /// Multiplies all values by a.
  void scale_parameters(float a);
  /// Multiplies the gradient by a.
  void scale_gradient(float a);
  /// Sets all values to 0; of a parameter that is no table, the gradient, too.
  virtual void zero() = 0;
  /// Sets *sqnorm to the sum of squares of the stored values.
  void squared_l2norm(float *sqnorm) const;
  /// Sets *sqnorm to the sum of squares of the gradient.
  void g_squared_l2norm(float *sqnorm) const;
  /// The number of floats; of a table, of all rows.
  size_t size() const { return engine_dim.size(); }
  /// Whether trainers change it.
  bool is_updated() const { return updated; }
  /// Whether a gradient was formed since the last update.
  bool has_grad() const { return nonzero_grad; }
  /// Sets the gradient to zero.
  void clear();

  /// A copy of the values or the gradient, size() floats. Exposes nothing. Not DyNet's.
  std::vector<float> read(vpps_part part) const;
  /// Sets count floats from offset on. Out of range: std::invalid_argument. Not DyNet's.
  void write(vpps_part part, size_t offset, const float *from, size_t count);
  /// The factor of the weight decay: graphs see stored values times this.
  float current_weight_decay() const;

  std::string name;           ///< "/collection/name"
  bool updated;               ///< whether trainers change it; a program may set it
  bool nonzero_grad;          ///< what has_grad() says
  Device *device;             ///< where its nodes are: see to_device
  ParameterCollection *owner; ///< the collection that it was added to

  uint32_t id;            ///< its number in the engine. Not DyNet's
  Dim engine_dim;         ///< all of it; for a table the last axis counts the rows. Not DyNet's
  uint32_t dim_id;        ///< of the recorder: engine_dim's number in the present graph
  uint32_t dim_epoch;     ///< of the recorder: the graph that dim_id holds for
  uint32_t row_dim_id;    ///< of the recorder: the row's dim
  uint32_t row_dim_epoch; ///< of the recorder: the graph that row_dim_id holds for

protected:
  /// Makes the parameter in the engine, with values from init.
  ParameterStorageBase(CollectionState &root, const std::string &name, const Dim &dim,
                       uint32_t flags, const ParameterInit &init, Device *device);
  /// Sets t.v to where the program sees a part.
  void expose(vpps_part part, Tensor &t);
  /// Adds count floats to the gradient from offset on.
  void accumulate(const float *g, size_t offset, size_t count);
  std::shared_ptr<Engine> engine_; ///< keeps the engine open
  uint32_t collection_;            ///< the engine's number of the model's weight decay

private:
  friend class Trainer;
  bool engine_updated_; // what the engine knows of `updated`
  ParameterStorageBase(const ParameterStorageBase &);
  ParameterStorageBase &operator=(const ParameterStorageBase &);
};

/// The storage of a parameter that is no table.
struct ParameterStorage : public ParameterStorageBase {
  Dim dim;       ///< its shape
  Tensor values; ///< its stored values; without memory until exposed
  Tensor g;      ///< its gradient; without memory until exposed

  /// Sets values and gradient to 0.
  void zero() override;
  /// Copies the values of other. Sizes differ: std::invalid_argument.
  void copy(const ParameterStorage &other);
  /// Adds g to the gradient. Sizes differ: std::invalid_argument.
  void accumulate_grad(const Tensor &g);
  /// Brings every stored value into [left,right].
  void clip(float left, float right);
  /// Sets the stored values; weight decay is not divided out. Another count: std::invalid_argument.
  void set_value(const std::vector<float> &val);
  /// Gives `values` its memory.
  void expose_values() { ParameterStorageBase::expose(VPPS_VALUES, values); }
  /// Gives `g` its memory.
  void expose_gradient() { ParameterStorageBase::expose(VPPS_GRADIENT, g); }

private:
  friend class ParameterCollection;
  ParameterStorage(CollectionState &root, const std::string &name, const Dim &d,
                   const ParameterInit &init, Device *device);
};

/// The storage of a table.
struct LookupParameterStorage : public ParameterStorageBase {
  Dim all_dim;                ///< the shape of the table: a row's, and the number of rows
  Dim dim;                    ///< the shape of one row
  Tensor all_values;          ///< all stored values; without memory until exposed
  Tensor all_grads;           ///< the whole gradient; without memory until exposed
  std::vector<Tensor> values; ///< the stored values row by row; empty until exposed
  std::vector<Tensor> grads;  ///< the gradient row by row; empty until exposed
  bool all_updated;           ///< whether the table as a whole has a gradient

  /// Sets the values to 0; the gradient stays, as in DyNet.
  void zero() override;
  /// Sets the stored values of row index. Another count, or no such row: std::invalid_argument.
  void initialize(unsigned index, const std::vector<float> &val);
  /// Copies the values of other. Sizes differ: std::invalid_argument.
  void copy(const LookupParameterStorage &other);
  /// Adds g to the whole gradient. Sizes differ: std::invalid_argument.
  void accumulate_grad(const Tensor &g);
  /// Adds g to the gradient of row index. Sizes differ, or no such row: std::invalid_argument.
  void accumulate_grad(unsigned index, const Tensor &g);
  /// Adds n rows of gradients at g, one after the other, to those of rows ids[0] to ids[n-1]. The
  /// ids on the device count for nothing. No such row: std::invalid_argument.
  void accumulate_grads(unsigned n, const unsigned *ids, const unsigned *ids_on_device, float *g);
  /// The rows that have a gradient. In DyNet it is a member, not a method.
  std::unordered_set<unsigned> non_zero_grads() const;
  /// Gives `all_values` and `values` their memory.
  void expose_values();
  /// Gives `all_grads` and `grads` their memory.
  void expose_gradient();
  /// Gives `values` and `grads` their rows: exposes both.
  void initialize_lookups() {
    expose_values();
    expose_gradient();
  }

private:
  friend class ParameterCollection;
  void expose_rows(vpps_part part, Tensor &all, std::vector<Tensor> &rows);
  LookupParameterStorage(CollectionState &root, const std::string &name, unsigned n, const Dim &row,
                         const ParameterInit &init, Device *device);
};

/// Shares a storage, as a std::shared_ptr does. Every way to the storage exposes values and
/// gradient first, except unexposed().
template <class Storage> class StoragePointer {
public:
  ///@{
  /// Points to nothing.
  StoragePointer() {}
  StoragePointer(std::nullptr_t) {}
  ///@}
  /// Shares p.
  StoragePointer(const std::shared_ptr<Storage> &p) : p_(p) {}
  /// The storage, exposed; null if there is none.
  Storage *get() const {
    if (p_) {
      p_->expose_values();
      p_->expose_gradient();
    }
    return p_.get();
  }
  ///@{
  /// The storage, exposed.
  Storage *operator->() const { return get(); }
  Storage &operator*() const { return *get(); }
  operator const std::shared_ptr<Storage> &() const {
    get();
    return p_;
  }
  ///@}
  /// The storage as it is. Not DyNet's.
  const std::shared_ptr<Storage> &unexposed() const { return p_; }
  /// Whether it points to a storage.
  explicit operator bool() const { return static_cast<bool>(p_); }
  /// Lets go of the storage.
  void reset() { p_.reset(); }
  /// How many share the storage.
  long use_count() const { return p_.use_count(); }

private:
  std::shared_ptr<Storage> p_;
};

///@{
/// Whether both point to the same storage, or to none.
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
///@}
///@{
/// Whether they point to different storages.
template <class S, class T> bool operator!=(const StoragePointer<S> &a, const T &b) {
  return !(a == b);
}
template <class S> bool operator!=(const std::shared_ptr<S> &a, const StoragePointer<S> &b) {
  return !(a == b);
}
template <class S> bool operator!=(std::nullptr_t, const StoragePointer<S> &a) {
  return !(a == nullptr);
}

///@}

/// A tensor that trains. Copies share it. Calls on an empty one need a parameter first:
/// get_storage(), values() and gradients() throw std::runtime_error without one.
struct Parameter {
  /// Empty.
  Parameter() {}
  /// Shares a storage.
  explicit Parameter(const std::shared_ptr<ParameterStorage> &shared) : p(shared) {}
  /// The storage, exposed.
  ParameterStorage &get_storage() const;
  /// "/collection/name".
  const std::string &get_fullname() const { return storage().name; }
  /// Sets values and gradient to 0.
  void zero() { storage().zero(); }
  /// The shape.
  Dim dim() const { return storage().dim; }
  /// The stored values, exposed. The storage owns them.
  Tensor *values();
  /// The gradient, exposed. The storage owns it.
  Tensor *gradients();
  /// The factor of the weight decay.
  float current_weight_decay() const { return storage().current_weight_decay(); }
  /// Sets whether trainers change it.
  void set_updated(bool b) { storage().updated = b; }
  /// Whether trainers change it.
  bool is_updated() const { return storage().updated; }
  /// Multiplies the values by s.
  void scale(float s) { storage().scale_parameters(s); }
  /// Multiplies the gradient by s.
  void scale_gradient(float s) { storage().scale_gradient(s); }
  /// Brings every value that graphs see into [left,right].
  void clip_inplace(float left, float right);
  /// Sets the stored values; weight decay is not divided out. Another count: std::invalid_argument.
  void set_value(const std::vector<float> &val) { storage().set_value(val); }

  /// The storage.
  StoragePointer<ParameterStorage> p;

private:
  ParameterStorage &storage() const { return *p.unexposed(); }
};

/// A table of n rows of one shape, in which graphs look rows up. Copies share it. Calls on an empty
/// one need a table first: get_storage() and values() throw std::runtime_error without one.
struct LookupParameter {
  /// Empty.
  LookupParameter() {}
  /// Shares a storage.
  explicit LookupParameter(const std::shared_ptr<LookupParameterStorage> &shared) : p(shared) {}
  /// The storage, exposed.
  LookupParameterStorage &get_storage() const;
  /// Sets the stored values of row index. Another count, or no such row: std::invalid_argument.
  void initialize(unsigned index, const std::vector<float> &val) const {
    storage().initialize(index, val);
  }
  /// Sets the values to 0.
  void zero() { storage().zero(); }
  /// "/collection/name".
  const std::string &get_fullname() const { return storage().name; }
  /// The shape of one row.
  Dim dim() const { return storage().dim; }
  /// The stored values row by row, exposed. The storage owns them.
  std::vector<Tensor> *values();
  /// The factor of the weight decay.
  float current_weight_decay() const { return storage().current_weight_decay(); }
  /// Multiplies the values by s.
  void scale(float s) { storage().scale_parameters(s); }
  /// Multiplies the gradient by s.
  void scale_gradient(float s) { storage().scale_gradient(s); }
  /// Sets whether trainers change it.
  void set_updated(bool b) { storage().updated = b; }
  /// Whether trainers change it.
  bool is_updated() const { return storage().updated; }

  /// The storage.
  StoragePointer<LookupParameterStorage> p;

private:
  LookupParameterStorage &storage() const { return *p.unexposed(); }
};

/// What a collection and its subcollections consist of, as ParameterCollection::get_storage() shows
/// it. Programs read it.
struct ParameterCollectionStorage {
  /// Nothing yet, with a weight decay of weight_decay_lambda.
  explicit ParameterCollectionStorage(float weight_decay_lambda)
      : weight_decay(weight_decay_lambda) {}
  /// ParameterCollection::project_weights().
  void project_weights(float radius = 1.0f);
  /// ParameterCollection::gradient_l2_norm().
  float gradient_l2_norm() const;

  std::vector<std::shared_ptr<ParameterStorageBase>> all_params;      ///< all, in order of creation
  std::vector<std::shared_ptr<ParameterStorage>> params;              ///< those that are no tables
  std::vector<std::shared_ptr<LookupParameterStorage>> lookup_params; ///< the tables
  L2WeightDecay weight_decay;                                         ///< the root's counts
};

/// A model: parameters in order of creation, under names that are unique below their root: "/W",
/// "/W_1", without a name "/_0". A subcollection adds "/name/". Copies share the same parameters.
class ParameterCollection {
public:
  /// An empty model. Its weight decay is what --dynet-weight-decay says, else none.
  ParameterCollection();
  virtual ~ParameterCollection() {}

  ///@{
  /// Makes a parameter of shape d, at least one axis and no batch. Values come from init; else from
  /// Glorot's initialisation or, if scale is not 0, uniform in [-scale,scale). A name with '/' or
  /// '_': std::runtime_error. Before initialize(), or a wrong shape: std::invalid_argument.
  Parameter add_parameters(const Dim &d, float scale = 0.0f, const std::string &name = "",
                           Device *device = default_device);
  Parameter add_parameters(const Dim &d, Device *device);
  Parameter add_parameters(const Dim &d, const std::string &name, Device *device = default_device);
  Parameter add_parameters(const Dim &d, const char *name, Device *device = default_device) {
    return add_parameters(d, std::string(name), device);
  }
  Parameter add_parameters(const Dim &d, const ParameterInit &init, const std::string &name = "",
                           Device *device = default_device);
  ///@}
  ///@{
  /// Makes a table of n rows of shape d each. Values come from init, else from Glorot's
  /// initialisation of a row. Errors as of add_parameters().
  LookupParameter add_lookup_parameters(unsigned n, const Dim &d, const std::string &name = "",
                                        Device *device = default_device);
  LookupParameter add_lookup_parameters(unsigned n, const Dim &d, const ParameterInit &init,
                                        const std::string &name = "",
                                        Device *device = default_device);
  ///@}
  /// A collection whose parameters are this one's, too. The weight decay of the root counts for all
  /// parameters; weight_decay_lambda is only kept (below 0: this collection's). A name with '/' or
  /// '_': std::runtime_error.
  ParameterCollection add_subcollection(const std::string &name = "",
                                        float weight_decay_lambda = -1);

  /// All storages in order of creation, exposed.
  std::vector<std::shared_ptr<ParameterStorageBase>> get_parameter_storages_base() const;
  /// The parameter of the model with a full name, exposed. No such name: std::runtime_error.
  std::shared_ptr<ParameterStorage> get_parameter_storage(const std::string &name) const;
  /// All parameters without tables, exposed.
  std::vector<std::shared_ptr<ParameterStorage>> get_parameter_storages() const;
  /// The table of the model with a full name, exposed. No such name: std::runtime_error.
  std::shared_ptr<LookupParameterStorage>
  get_lookup_parameter_storage(const std::string &name) const;
  /// All tables, exposed.
  std::vector<std::shared_ptr<LookupParameterStorage>> get_lookup_parameter_storages() const;
  /// All parameters without tables, exposed. The list is the collection's own.
  const std::vector<std::shared_ptr<ParameterStorage>> &parameters_list() const;
  /// All tables, exposed. The list is the collection's own.
  const std::vector<std::shared_ptr<LookupParameterStorage>> &lookup_parameters_list() const;
  /// parameters_list() without exposing. Not DyNet's.
  const std::vector<std::shared_ptr<ParameterStorage>> &unexposed_parameters() const;
  /// lookup_parameters_list() without exposing. Not DyNet's.
  const std::vector<std::shared_ptr<LookupParameterStorage>> &unexposed_tables() const;

  /// Sets all gradients to zero.
  void reset_gradient();
  /// The square root of the sum of squares of all gradients.
  float gradient_l2_norm() const;
  /// The number of floats, tables included.
  size_t parameter_count() const;
  /// The number of floats that trainers change, tables included.
  size_t updated_parameter_count() const;
  /// The number of parameters, without tables.
  size_t size() const;
  /// "/" or "/name/".
  const std::string &get_fullname() const;

  /// Sets the weight decay, 0 or more and below 1: that of the root counts. Errors as of
  /// L2WeightDecay.
  void set_weight_decay_lambda(float lambda);
  /// The weight decay, owned by the collection.
  L2WeightDecay &get_weight_decay();
  /// The weight decay that was set.
  float get_weight_decay_lambda() const;
  ///@{
  /// Parameter::set_updated() and LookupParameter::set_updated() of p.
  void set_updated_param(const Parameter *p, bool status) { Parameter(*p).set_updated(status); }
  void set_updated_lookup_param(const LookupParameter *p, bool status) {
    LookupParameter(*p).set_updated(status);
  }
  ///@}
  ///@{
  /// Parameter::is_updated() and LookupParameter::is_updated() of p.
  bool is_updated_param(const Parameter *p) { return p->is_updated(); }
  bool is_updated_lookup_param(const LookupParameter *p) { return p->is_updated(); }
  ///@}
  /// As in DyNet, prints "NORM: " and the norm of all values to std::cerr, and changes nothing.
  void project_weights(float radius = 1.0f);
  ///@{
  /// All of it, exposed. The collection owns it.
  ParameterCollectionStorage &get_storage();
  const ParameterCollectionStorage &get_storage() const;
  ///@}
  /// Numbers in the engine: parameters, then tables. Not DyNet's.
  std::vector<uint32_t> engine_ids() const;

private:
  std::shared_ptr<CollectionState> state_;
};

/// The name of older programs.
class Model : public ParameterCollection {
public:
  /// An empty model.
  Model() {}
};

/// Writes a collection to a text file, under the key "/model": TextFileSaver.
void save_dynet_model(std::string filename, ParameterCollection *model);
/// Reads what save_dynet_model() has written: TextFileLoader.
void load_dynet_model(std::string filename, ParameterCollection *model);

} // namespace dynet
#endif
