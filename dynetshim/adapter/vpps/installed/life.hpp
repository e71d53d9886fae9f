// Whether a model of DyNet's is still there. DyNet's trainers and libvpps's objects have only its
// address. A model's first parameter is held through an owner of ours, which goes with the model.
#ifndef VPPS_INSTALLED_LIFE_HPP
#define VPPS_INSTALLED_LIFE_HPP

#include <dynet/model.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace vpps {
namespace installed {

typedef std::weak_ptr<void> life;

// Owns the model's reference to a parameter; programs have others, which outlive the model.
template <class Storage> life watch(std::shared_ptr<Storage> &of_model) {
  const auto owner = std::make_shared<std::shared_ptr<Storage>>(of_model);
  of_model = std::shared_ptr<Storage>(owner, of_model.get());
  return owner;
}

// Ends with the model; of a model without parameters it has ended already.
inline life life_of(dynet::ParameterCollectionStorage &model) {
  static auto *known = new std::unordered_map<dynet::ParameterCollectionStorage *, life>;
  life &l = (*known)[&model];
  if (l.expired() && !model.params.empty())
    l = watch(model.params[0]);
  else if (l.expired() && !model.lookup_params.empty())
    l = watch(model.lookup_params[0]);
  return l;
}

// A model whose address somebody keeps.
class kept_model {
public:
  explicit kept_model(dynet::ParameterCollection &model) : model_(model) { (void)get("it"); }

  // For calls, which need it.
  dynet::ParameterCollection &get(const char *whose) {
    if (seen_ && life_.expired())
      throw std::logic_error(std::string("the model was destroyed before ") + whose +
                             ": declare the model first, so that it is destroyed last");
    if (!seen_) {
      life_ = life_of(model_.get_storage());
      seen_ = !life_.expired();
    }
    return model_;
  }
  // For destructors. A model that never had parameters has nothing to be done.
  bool there() const { return !life_.expired(); }

private:
  dynet::ParameterCollection &model_;
  life life_;
  bool seen_ = false; // it had parameters
};

} // namespace installed
} // namespace vpps
#endif
