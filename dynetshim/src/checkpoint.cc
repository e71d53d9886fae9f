// vpps::checkpoint: the engine saves what it has; what only the front-end knows is a blob beside
// it.
#include "vpps/checkpoint.hpp"

#include <iomanip>
#include <locale>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>

#include "dynet/globals.h"
#include "recorder.h"
#include "vpps/c_numbers.hpp"

namespace vpps {

namespace {

const char front_end[] = "dynet", own_names[] = "dynet.names";

// What the front-end has: dynet::rndeng, weight decay, marks of parameters and the trainer's
// fields.
class front_end_state {
public:
  front_end_state(dynet::ParameterCollection &model, dynet::Trainer &trainer)
      : model_(model), trainer_(trainer) {}

  std::string text() const {
    std::ostringstream os;
    os.imbue(std::locale::classic());
    os << std::setprecision(9) << "1\n" << *dynet::rndeng << '\n';
    os << model_.get_weight_decay_lambda() << '\n';
    for (const auto &p : model_.unexposed_parameters())
      os << mark(p->updated, p->nonzero_grad, false);
    for (const auto &p : model_.unexposed_tables())
      os << mark(p->updated, p->nonzero_grad, p->all_updated);
    os << ".\n";
    trainer_.save_fields(os);
    return os.str();
  }

  // Reads a text without changing anything; the trainer's fields are still to be read.
  void parse(std::istream &is) {
    is.imbue(std::locale::classic());
    int version = 0;
    is >> version >> random_ >> lambda_ >> marks_;
    const size_t count = model_.unexposed_parameters().size() + model_.unexposed_tables().size();
    if (!is || version != 1 || marks_.size() != count + 1 || !(lambda_ >= 0 && lambda_ < 1))
      throw std::runtime_error("the checkpoint is of another front-end or another model");
  }

  // Cannot fail, for the engine has loaded its part.
  void apply() const {
    *dynet::rndeng = random_;
    model_.set_weight_decay_lambda(lambda_);
    size_t k = 0;
    for (const auto &p : model_.unexposed_parameters())
      unmark(*p, k++);
    for (const auto &p : model_.unexposed_tables()) {
      p->all_updated = ((marks_[k] - '0') & 4) != 0;
      unmark(*p, k++);
    }
  }

private:
  static char mark(bool updated, bool gradient, bool all) {
    return static_cast<char>('0' + updated + 2 * gradient + 4 * all);
  }
  void unmark(dynet::ParameterStorageBase &p, size_t k) const {
    p.updated = ((marks_[k] - '0') & 1) != 0;
    p.nonzero_grad = ((marks_[k] - '0') & 2) != 0;
  }

  dynet::ParameterCollection &model_;
  dynet::Trainer &trainer_;
  std::mt19937 random_;
  float lambda_ = 0;
  std::string marks_;
};

// An open file.
class opened {
public:
  explicit opened(const std::string &file) : raw_(nullptr) {
    dynet::check(vpps_checkpoint_open(file.c_str(), &raw_));
  }
  ~opened() { vpps_checkpoint_close(raw_); }
  vpps_checkpoint *raw() const { return raw_; }

  std::string blob(const char *name) const {
    uint64_t size = 0;
    dynet::check(vpps_checkpoint_blob(raw_, name, nullptr, 0, &size));
    std::string bytes(size, '\0');
    dynet::check(vpps_checkpoint_blob(raw_, name, &bytes[0], size, &size));
    return bytes;
  }
  // The program's own, whose names are in a blob, each with an end of 0.
  checkpoint::blobs own() const {
    checkpoint::blobs all;
    const std::string names = blob(own_names);
    for (size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
      const std::string name = names.c_str() + at;
      all[name] = blob(name.c_str());
    }
    return all;
  }

private:
  opened(const opened &);
  opened &operator=(const opened &);
  vpps_checkpoint *raw_;
};

// The contents that the engine is asked to save, or to load into.
struct contents {
  std::vector<uint32_t> ids;
  vpps_trainer *trainer;
  vpps_handle *hndl;
  vpps_checkpoint_contents c;

  contents(const dynet::ParameterCollection &model, dynet::Trainer &t, handle *h)
      : ids(model.engine_ids()), trainer(t.engine_trainer()), hndl(h ? h->get() : nullptr) {
    const vpps_checkpoint_contents init = VPPS_CHECKPOINT_CONTENTS_INIT;
    c = init;
    c.ids = ids.data();
    c.id_count = ids.size();
    c.trainers = &trainer;
    c.trainer_count = 1;
    c.handles = &hndl;
    c.handle_count = h != nullptr;
  }

private:
  contents(const contents &);
  contents &operator=(const contents &);
};

} // namespace

void checkpoint::save(const std::string &file, const blobs &own) const {
  if (handle_)
    handle_->count_clips();
  contents all(model_, trainer_, handle_);
  const std::string mine = front_end_state(model_, trainer_).text();
  std::string names;
  std::vector<vpps_blob> list = {{front_end, mine.data(), mine.size()}};
  for (const auto &b : own) {
    if (b.first.find('\0') != std::string::npos || b.first.compare(0, 5, front_end) == 0)
      throw std::invalid_argument("vpps::checkpoint: a blob cannot be called '" + b.first +
                                  "': names with 0 or beginning with 'dynet' are taken");
    names += b.first + '\0';
    list.push_back({b.first.c_str(), b.second.data(), b.second.size()});
  }
  list.push_back({own_names, names.data(), names.size()});
  all.c.blobs = list.data();
  all.c.blob_count = list.size();
  dynet::check(vpps_checkpoint_save(dynet::engine("vpps::checkpoint")->raw, file.c_str(), &all.c));
}

checkpoint::blobs checkpoint::load(const std::string &file) const {
  const c_numbers in_c;
  const opened from(file);
  blobs own = from.own();
  contents all(model_, trainer_, handle_);
  dynet::recorder.settle();
  std::istringstream text(from.blob(front_end));
  front_end_state state(model_, trainer_);
  state.parse(text);
  std::stringstream before;
  before.imbue(std::locale::classic());
  trainer_.save_fields(before);
  if (!trainer_.read_fields(text))
    throw std::runtime_error(file + ": the checkpoint is of another trainer");
  const std::shared_ptr<dynet::Engine> &engine = dynet::engine("vpps::checkpoint");
  if (vpps_status failed = vpps_checkpoint_load(from.raw(), engine->raw, &all.c)) {
    trainer_.read_fields(before);
    dynet::throw_failure(failed);
  }
  state.apply();
  ++engine->updates; // what graphs have evaluated is stale
  if (handle_)
    handle_->counted_ = handle_->clips();
  return own;
}

checkpoint::blobs checkpoint::read(const std::string &file) { return opened(file).own(); }

} // namespace vpps
