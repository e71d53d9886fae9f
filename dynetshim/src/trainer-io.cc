// Trainers as text, in DyNet's format: files of one are read by the other. A file is parsed whole
// before anything is changed.
#include "dynet/training.h"

#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "trainer_state.h"
#include "vpps/c_numbers.hpp"

namespace dynet {

namespace {

// Numbers have a sign, counts have none.
void header(std::ostream &os, const std::string &name, size_t dense, size_t tables) {
  os << std::noshowpos << '#' << name << "# " << dense << ' ' << tables << '\n' << std::showpos;
}

// One vector of parameters [from, to).
void write_vectors(std::ostream &os, const char *kind, const RuleState &r, size_t vector,
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

void read_vectors(reading &in, const char *kind, RuleState &r, size_t vector, size_t from,
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

// What the first line of a file says of the moving average.
struct Averaging {
  float beta;
  MovingAverage mode;
  bool swapped, saved;
  unsigned frequency, updates;
};

Averaging read_averaging(reading &in) {
  Averaging a = Averaging();
  a.beta = in.number("beta of the average");
  std::istringstream mode(in.word());
  try {
    mode >> a.mode;
  } catch (const std::runtime_error &e) {
    reading::fail(e.what());
  }
  a.swapped = in.number("mark of a swap") != 0;
  a.saved = in.number("mark of saved weights") != 0;
  const size_t most = 0xffffffffu;
  a.frequency = static_cast<unsigned>(in.count(most, "updates from average to average"));
  a.updates = static_cast<unsigned>(in.count(most, "updates of the average"));
  if (a.frequency == 0)
    reading::fail("an update frequency of 0");
  in.line();
  return a;
}

uint32_t bits_of(real x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

} // namespace

void Trainer::save(std::ostream &to) {
  if (inherited_)
    engine_trainer();
  vpps_trainer_options o = VPPS_TRAINER_OPTIONS_INIT;
  describe(o);
  RuleState r(own_, RuleState::vectors_of(o.rule));
  // Before the first update there is nothing to remember; of parameters made since, neither.
  const size_t dense = parameters_, tables = tables_;
  if (trainer_ != nullptr)
    r.read(trainer_, dense, tables); // batches that failed count in `updates` only

  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << std::scientific << std::setprecision(8);
  header(text, "Trainer", dense, tables);
  text << learning_rate << ' ' << clipping_enabled << ' ' << clip_threshold << ' '
       << static_cast<real>(r.updates) << ' ' << ema_beta << ' ' << ma_mode << ' '
       << ma_params_swapped << ' ' << ma_params_saved << ' ' << ma_update_freq << ' ' << ma_updates
       << '\n';
  if (ma_mode == MovingAverage::None || ma_params_swapped) {
    text << "[MA:FALSE]\n";
  } else {
    text << "[MA:TRUE]\n";
    header(text, "MA", ma_p.size(), ma_lp.size());
    RuleState averages(own_, 1);
    for (size_t i = 0; i < ma_p.size(); i++)
      averages.state[i] = as_vector(ma_p[i].h);
    for (size_t i = 0; i < ma_lp.size(); i++)
      averages.state[averages.dense + i] = as_vector(ma_lp[i].all_h);
    write_vectors(text, "#Parameter#", averages, 0, 0, ma_p.size());
    write_vectors(text, "#LookupParameter#", averages, 0, averages.dense,
                  averages.dense + ma_lp.size());
  }
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
  RuleState r(own_, RuleState::vectors_of(o.rule));
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
  const Averaging averaging = read_averaging(in);
  std::stringstream old_rule; // comes back if the engine refuses what the text says
  old_rule.imbue(std::locale::classic());
  old_rule << std::setprecision(9);
  save_rule(old_rule);
  const std::string mark = in.word();
  if (mark != "[MA:FALSE]" && mark != "[MA:TRUE]")
    reading::fail("'" + mark + "' where [MA:FALSE] or [MA:TRUE] should be");
  in.line();
  RuleState averages(own_, 1);
  size_t averaged = 0, averaged_tables = 0;
  if (mark == "[MA:TRUE]") {
    in.word("#MA#");
    averaged = in.count(r.dense, "parameters");
    averaged_tables = in.count(all_tables, "tables");
    read_vectors(in, "#Parameter#", averages, 0, 0, averaged);
    read_vectors(in, "#LookupParameter#", averages, 0, r.dense, r.dense + averaged_tables);
    in.line();
  }
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
  r.updates = static_cast<uint64_t>(made);
  r.write(trainer_);
  show_rule();

  ema_beta = averaging.beta;
  ma_mode = averaging.mode;
  ma_params_swapped = averaging.swapped;
  ma_params_saved = averaging.saved;
  ma_update_freq = averaging.frequency;
  ma_updates = averaging.updates;
  if (mark == "[MA:TRUE]") {
    shadow(ma_p, ma_lp);
    for (size_t i = 0; i < averaged; i++)
      TensorTools::set_elements(ma_p[i].h, averages.state[i]);
    for (size_t i = 0; i < averaged_tables; i++)
      TensorTools::set_elements(ma_lp[i].all_h, averages.state[r.dense + i]);
  }
}

void Trainer::populate(std::istream &from, real lr) {
  populate(from);
  learning_rate = lr;
}

void Trainer::save_fields(std::ostream &os) const {
  if (ma_mode != MovingAverage::None)
    throw std::runtime_error("a checkpoint has no moving averages of parameters: use "
                             "Trainer::save() and TextFileSaver");
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
  const CyclicalRate none(0, 0, 0, 0), &c = cyclical_ ? rate_ : none;
  os << 0.0f << ' ' << 0.0f << ' ' << momentum << ' ';
  save_rate(os, c);
  os << std::showpos << ' ' << cyclical_;
}
bool EGTrainer::read_rule(std::istream &is) {
  real z, m;
  CyclicalRate c(0, 0, 0, 0);
  int cyclical;
  if (!(is >> z >> z >> m) || !read_rate(is, c) || !(is >> cyclical))
    return false;
  momentum = m;
  rate_ = c;
  cyclical_ = cyclical != 0;
  return true;
}

} // namespace dynet
