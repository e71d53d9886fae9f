// Trainers as text, in DyNet's format: files of one are read by the other. A file is parsed whole
// before anything is changed.
#include "dynet/training.h"

#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "vpps/c_numbers.hpp"

namespace dynet {

namespace {

// How many vectors a rule remembers of a parameter, by vpps_rule.
const size_t vectors_of_rule[] = {0, 1, 1, 2, 1, 2, 3, 1};

// The engine's memory of a trainer, parameter by parameter: first the dense ones, then tables.
struct remembered {
  size_t dense, vectors;
  std::vector<uint32_t> ids;
  std::vector<size_t> sizes;
  std::vector<std::vector<float>> state; // vectors one after the other

  remembered(const ParameterCollection &m, uint32_t rule)
      : dense(m.unexposed_parameters().size()), vectors(vectors_of_rule[rule]) {
    for (const auto &p : m.unexposed_parameters())
      add(p->id, p->dim.size());
    for (const auto &p : m.unexposed_tables())
      add(p->id, p->all_dim.size());
  }
  void add(uint32_t id, size_t size) {
    ids.push_back(id);
    sizes.push_back(size);
    state.emplace_back(vectors * size);
  }
};

// Numbers have a sign, counts have none.
void header(std::ostream &os, const std::string &name, size_t dense, size_t tables) {
  os << std::noshowpos << '#' << name << "# " << dense << ' ' << tables << '\n' << std::showpos;
}

// One vector of parameters [from, to).
void write_vectors(std::ostream &os, const char *kind, const remembered &r, size_t vector,
                   size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    os << std::noshowpos << kind << ' ' << r.sizes[i] << ' ' << std::showpos;
    for (size_t k = 0; k < r.sizes[i]; k++)
      os << r.state[i][vector * r.sizes[i] + k] << ' ';
    os << '\n';
  }
}

// Reads words and numbers; what is not there is a std::runtime_error.
class reading {
public:
  explicit reading(std::istream &in) : in_(in) {}
  std::string word() {
    std::string w;
    in_ >> w;
    return w;
  }
  void word(const std::string &wanted) {
    const std::string w = word();
    if (w != wanted)
      fail("'" + w + "' where '" + wanted + "' should be");
  }
  // As a word, for the stream may have a locale with other numbers.
  float number(const char *what) {
    const std::string w = word();
    char *end = nullptr;
    const float x = std::strtof(w.c_str(), &end);
    if (w.empty() || end != w.c_str() + w.size())
      fail("'" + w + "' where the " + what + " should be");
    return x;
  }
  size_t count(size_t most, const char *what) {
    const std::string w = word();
    const size_t n = digits(w) ? std::strtoull(w.c_str(), nullptr, 10) : 0;
    if (!digits(w))
      fail("'" + w + "' where a number of " + what + " should be");
    if (n > most)
      fail(w + " " + what + ", but the model has " + std::to_string(most));
    return n;
  }
  // What is left of a line, which must end: else a number may have lost its last digits.
  std::string line() {
    std::string text;
    if (!std::getline(in_, text) || in_.eof())
      fail("a line does not end");
    return text;
  }
  [[noreturn]] static void fail(const std::string &what) {
    throw std::runtime_error("populate of a trainer: " + what +
                             ": the text is damaged or another trainer's");
  }

private:
  static bool digits(const std::string &w) {
    return !w.empty() && w.size() < 20 && w.find_first_not_of("0123456789") == std::string::npos;
  }
  std::istream &in_;
};

void read_vectors(reading &in, const char *kind, remembered &r, size_t vector, size_t from,
                  size_t to) {
  for (size_t i = from; i < to; i++) {
    in.word(kind);
    const size_t size = r.sizes[i];
    const std::string told = in.word();
    if (told != std::to_string(size))
      reading::fail(std::string(kind) + " of " + told + " numbers, not " + std::to_string(size));
    for (size_t k = 0; k < size; k++)
      r.state[i][vector * size + k] = in.number("number");
  }
}

uint32_t bits_of(real x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

} // namespace

void Trainer::save(std::ostream &to) {
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  describe(o);
  remembered r(own_, o.rule);
  // Before the first update there is nothing to remember; of parameters made since, neither.
  const size_t dense = parameters_, tables = tables_;
  uint64_t made = 0; // batches that failed count in `updates` only
  if (trainer_ != nullptr)
    check(vpps_trainer_updates(trainer_, &made));
  for (size_t i = 0; r.vectors && i < r.ids.size(); i++)
    if (i < dense || (i >= r.dense && i < r.dense + tables))
      check(vpps_trainer_read_state(trainer_, r.ids[i], r.state[i].size(), r.state[i].data()));

  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << std::scientific << std::setprecision(8);
  header(text, "Trainer", dense, tables);
  text << learning_rate << ' ' << clipping_enabled << ' ' << clip_threshold << ' '
       << static_cast<real>(made) << ' ' << 0.0f << " None +0 +0 1 0\n[MA:FALSE]\n";
  if (const char *name = saved_as()) {
    header(text, name, dense, tables);
    for (size_t k = 0; k < r.vectors; k++)
      write_vectors(text, "#Parameter#", r, k, 0, dense);
    for (size_t k = 0; k < r.vectors; k++)
      write_vectors(text, "#LookupParameter#", r, k, r.dense, r.dense + tables);
    save_rule(text);
    text << '\n';
  }
  to << text.str() << std::flush;
}

void Trainer::populate(std::istream &from) {
  const vpps::c_numbers in_c;
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  describe(o);
  remembered r(own_, o.rule);
  const size_t all_tables = r.ids.size() - r.dense;
  reading in(from);
  in.word("#Trainer#");
  in.count(r.dense, "parameters");
  in.count(all_tables, "tables");
  const real rate = in.number("learning rate");
  const bool clipping = in.number("mark of clipping") != 0;
  const real threshold = in.number("threshold of clipping");
  const real made = in.number("number of updates");
  if (!(made >= 0 && made <= 9007199254740992.0f)) // 2^53, as many as the engine counts
    reading::fail("a number of updates that cannot be");
  in.line();
  std::stringstream old_rule; // comes back if the engine refuses what the text says
  old_rule.imbue(std::locale::classic());
  old_rule << std::setprecision(9);
  save_rule(old_rule);
  if (in.word() != "[MA:FALSE]")
    reading::fail("no [MA:FALSE] (moving averages of parameters are not known here)");
  in.line();
  if (const char *name = saved_as()) {
    in.word(std::string("#") + name + "#");
    const size_t dense = in.count(r.dense, "parameters");
    const size_t tables = in.count(all_tables, "tables");
    for (size_t k = 0; k < r.vectors; k++)
      read_vectors(in, "#Parameter#", r, k, 0, dense);
    for (size_t k = 0; k < r.vectors; k++)
      read_vectors(in, "#LookupParameter#", r, k, r.dense, r.dense + tables);
    in.line();
    std::istringstream rule(in.line());
    rule.imbue(std::locale::classic());
    if (!read_rule(rule)) // the last that can fail
      reading::fail("no hyper-parameters");
  }

  const real old_rate = learning_rate, old_threshold = clip_threshold, old_updates = updates;
  const bool old_clipping = clipping_enabled;
  learning_rate = rate;
  clipping_enabled = clipping;
  clip_threshold = threshold;
  updates = made;
  try {
    engine_trainer();
  } catch (const std::invalid_argument &e) {
    learning_rate = old_rate;
    clipping_enabled = old_clipping;
    clip_threshold = old_threshold;
    updates = old_updates;
    read_rule(old_rule);
    reading::fail(e.what());
  }
  for (size_t i = 0; r.vectors && i < r.ids.size(); i++)
    check(vpps_trainer_write_state(trainer_, r.ids[i], r.state[i].size(), r.state[i].data()));
  check(vpps_trainer_set_updates(trainer_, static_cast<uint64_t>(made)));
}

void Trainer::populate(std::istream &from, real lr) {
  populate(from);
  learning_rate = lr;
}

void Trainer::save_fields(std::ostream &os) const {
  for (real x :
       {learning_rate, clip_threshold, clips, updates, clips_since_status, updates_since_status})
    os << bits_of(x) << ' ';
  os << clipping_enabled << ' ' << sparse_updates_enabled << ' ' << std::setprecision(9);
  save_rule(os);
  os << '\n';
}

bool Trainer::read_fields(std::istream &is) {
  uint32_t bits[6];
  for (uint32_t &x : bits)
    is >> x;
  bool clipping, sparse;
  if (!(is >> clipping >> sparse) || !read_rule(is))
    return false;
  real *const fields[] = {&learning_rate, &clip_threshold,     &clips,
                          &updates,       &clips_since_status, &updates_since_status};
  for (int k = 0; k < 6; k++)
    std::memcpy(fields[k], &bits[k], sizeof bits[k]);
  clipping_enabled = clipping;
  sparse_updates_enabled = sparse;
  return true;
}

// ---- hyper-parameters: all are read, or none is changed ---------------------------

void MomentumSGDTrainer::save_rule(std::ostream &os) const { os << momentum; }
bool MomentumSGDTrainer::read_rule(std::istream &is) {
  real m;
  return is >> m && (momentum = m, true);
}

void AdagradTrainer::save_rule(std::ostream &os) const { os << epsilon; }
bool AdagradTrainer::read_rule(std::istream &is) {
  real e;
  return is >> e && (epsilon = e, true);
}

void AdadeltaTrainer::save_rule(std::ostream &os) const { os << epsilon << ' ' << rho; }
bool AdadeltaTrainer::read_rule(std::istream &is) {
  real e, r;
  return is >> e >> r && (epsilon = e, rho = r, true);
}

void RMSPropTrainer::save_rule(std::ostream &os) const { os << epsilon << ' ' << rho; }
bool RMSPropTrainer::read_rule(std::istream &is) {
  real e, r;
  return is >> e >> r && (epsilon = e, rho = r, true);
}

void AdamTrainer::save_rule(std::ostream &os) const {
  os << beta_1 << ' ' << beta_2 << ' ' << epsilon;
}
bool AdamTrainer::read_rule(std::istream &is) {
  float b1, b2, e;
  return is >> b1 >> b2 >> e && (beta_1 = b1, beta_2 = b2, epsilon = e, true);
}

void AmsgradTrainer::save_rule(std::ostream &os) const {
  os << beta_1 << ' ' << beta_2 << ' ' << epsilon;
}
bool AmsgradTrainer::read_rule(std::istream &is) {
  float b1, b2, e;
  return is >> b1 >> b2 >> e && (beta_1 = b1, beta_2 = b2, epsilon = e, true);
}

namespace {

void save_rate(std::ostream &os, const CyclicalRate &c) {
  os << c.min << ' ' << c.max << ' ' << c.step_size << ' ' << c.gamma << ' ' << std::noshowpos
     << c.it;
}

bool read_rate(std::istream &is, CyclicalRate &c) {
  return bool(is >> c.min >> c.max >> c.step_size >> c.gamma >> c.it);
}

} // namespace

void CyclicalSGDTrainer::save_rule(std::ostream &os) const { save_rate(os, rate_); }
bool CyclicalSGDTrainer::read_rule(std::istream &is) {
  CyclicalRate c(0, 0, 0, 0);
  return read_rate(is, c) && (rate_ = c, true);
}

// The first two are DyNet's intermediate results of its last update.
void EGTrainer::save_rule(std::ostream &os) const {
  const CyclicalRate none(0, 0, 0, 0), &c = rate_ ? *rate_ : none;
  os << 0.0f << ' ' << 0.0f << ' ' << momentum << ' ';
  save_rate(os, c);
  os << std::showpos << ' ' << bool(rate_);
}
bool EGTrainer::read_rule(std::istream &is) {
  real z, m;
  CyclicalRate c(0, 0, 0, 0);
  int cyclical;
  if (!(is >> z >> z >> m) || !read_rate(is, c) || !(is >> cyclical))
    return false;
  momentum = m;
  rate_.reset(cyclical ? new CyclicalRate(c) : nullptr);
  return true;
}

} // namespace dynet
