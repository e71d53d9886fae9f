// The text format. A file is parsed whole before anything is written to parameters.
#include "dynet/io.h"

#include <cstdio>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "text_file.h"
#include "vpps/c_numbers.hpp"

namespace dynet {

namespace {

// Keys of single parameters.
void check_key(const std::string &key) {
  if (key == "/" || key.find_first_of(" #") != std::string::npos)
    throw std::invalid_argument("the key '" + key + "' of a parameter must have neither ' ' nor " +
                                "'#', and be more than '/'");
}

// Keys of collections.
void check_folder(const std::string &key) {
  if (!key.empty() && (key[0] != '/' || key.find_first_of(" #") != std::string::npos))
    throw std::invalid_argument("the key '" + key +
                                "' must begin with '/' and have neither ' ' nor '#'");
}

// What names of parameters in a collection's file begin with: "/sub" and "/sub/", a collection's
// full name, are the same key.
std::string folder(const std::string &key) { return key.back() == '/' ? key : key + "/"; }

// One parameter of a file.
struct Entry {
  std::string name;
  Dim dim;
  bool table, has_gradient;
  std::vector<float> values, gradient;
};

// A line of so many numbers.
std::vector<float> parse_numbers(text_file &in, uint64_t wanted) {
  std::vector<float> v;
  while (in.more() && v.size() < wanted)
    v.push_back(in.number());
  if (v.size() != wanted || in.more())
    in.fail("needs " + std::to_string(wanted) + " numbers, found " +
            (v.size() == wanted ? "more" : std::to_string(v.size())) + ": the file is damaged");
  if (in.get() != '\n')
    in.fail("the last line does not end: the file is damaged");
  return v;
}

// Its elements. A number takes two bytes at least, so those that the file cannot have are refused
// before they are counted in 32 bits.
uint64_t elements(const text_file &in, const Dim &dim) {
  uint64_t n = 1;
  for (unsigned i = 0; i < dim.nd; ++i)
    if (n <= in.left() || dim.d[i] == 0)
      n *= dim.d[i];
  if (dim.bd != 1 || dim.nd == 0 || n > (in.left() + 1) / 2) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << "a parameter of dim " << dim << ", but " << in.left()
         << " bytes are left: the file is damaged";
    in.fail(text.str());
  }
  return n;
}

std::vector<Entry> parse_file(const std::string &filename) {
  const vpps::c_numbers in_c;
  text_file in(filename);
  std::vector<Entry> entries;
  while (in.peek() != text_file::end) {
    const std::string place = in.place(), line = in.line();
    if (line.empty())
      continue;
    std::istringstream header(line);
    header.imbue(std::locale::classic());
    std::string kind, gradient;
    size_t bytes = 0;
    Entry e;
    header >> kind >> e.name >> e.dim >> bytes;
    bool parameter = kind == "#Parameter#";
    e.table = kind == "#LookupParameter#";
    if (!header || (!parameter && !e.table))
      throw std::runtime_error(place + "not a header of a parameter: '" + line.substr(0, 60) +
                               "': the file is damaged or no model");
    // Old files have no word for the gradient, but have the gradient.
    header >> gradient;
    const uint64_t n = elements(in, e.dim);
    e.values = parse_numbers(in, n);
    e.has_gradient = gradient != "ZERO_GRAD";
    if (e.has_gradient)
      e.gradient = parse_numbers(in, n);
    entries.push_back(std::move(e));
  }
  return entries;
}

void check_dim(const std::string &filename, const Entry &e, const std::string &name,
               const Dim &dim) {
  if (e.dim == dim)
    return;
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << filename << ": Dimensions of parameter " << e.name << " are " << e.dim << ", but " << name
       << " has " << dim;
  throw std::runtime_error(text.str());
}

void load(const Entry &e, ParameterStorageBase &p) {
  p.write(VPPS_VALUES, 0, e.values.data(), e.values.size());
  p.clear();
  if (e.has_gradient) {
    p.write(VPPS_GRADIENT, 0, e.gradient.data(), e.gradient.size());
    p.nonzero_grad = true;
  }
}

const Entry &find(const std::string &filename, const std::vector<Entry> &entries,
                  const std::string &key, bool table) {
  check_key(key);
  if (key.empty())
    throw std::invalid_argument("loading one parameter needs its key in the file");
  for (const Entry &e : entries)
    if (e.name == key && e.table == table)
      return e;
  throw std::runtime_error(filename + " has no " + (table ? "lookup parameter " : "parameter ") +
                           key);
}

} // namespace

// ---- saving --------------------------------------------------------------------

TextFileSaver::TextFileSaver(const std::string &filename, bool append)
    : filename_(filename), append_(append) {
  vpps::atomic_file::check(filename);
}

TextFileSaver::~TextFileSaver() {}

void TextFileSaver::save(const ParameterCollection &model, const std::string &key) {
  check_folder(key);
  const std::string &own = model.get_fullname();
  // A parameter that was loaded may have a name from elsewhere.
  auto name = [&](const std::string &full) {
    if (key.empty())
      return full;
    return folder(key) +
           full.substr(full.compare(0, own.size(), own) == 0 ? own.size() : full[0] == '/');
  };
  vpps::atomic_file out(filename_, beginning());
  for (auto &p : model.unexposed_parameters())
    write(out, "#Parameter#", *p, name(p->name));
  for (auto &p : model.unexposed_tables())
    write(out, "#LookupParameter#", *p, name(p->name));
  commit(out);
}

void TextFileSaver::save(const Parameter &param, const std::string &key) {
  check_key(key);
  vpps::atomic_file out(filename_, beginning());
  write(out, "#Parameter#", *param.p.unexposed(), key.empty() ? param.p.unexposed()->name : key);
  commit(out);
}

void TextFileSaver::save(const LookupParameter &param, const std::string &key) {
  check_key(key);
  vpps::atomic_file out(filename_, beginning());
  write(out, "#LookupParameter#", *param.p.unexposed(),
        key.empty() ? param.p.unexposed()->name : key);
  commit(out);
}

// What was saved before stays in the next version.
vpps::atomic_file::beginning TextFileSaver::beginning() const {
  return append_ ? vpps::atomic_file::with_old_contents : vpps::atomic_file::empty;
}

void TextFileSaver::commit(vpps::atomic_file &out) {
  out.commit();
  append_ = true;
}

void TextFileSaver::write(vpps::atomic_file &out, const char *kind, const ParameterStorageBase &p,
                          const std::string &name) {
  const vpps::c_numbers in_c;
  bool gradient = p.has_grad();
  size_t line = 16 * p.size() + 1;
  std::ostringstream header;
  header.imbue(std::locale::classic());
  header << kind << ' ' << name << ' ' << p.engine_dim << ' ' << (gradient ? 2 * line : line)
         << (gradient ? " FULL_GRAD\n" : " ZERO_GRAD\n");
  out.write(header.str());
  for (int part = 0; part < (gradient ? 2 : 1); ++part) {
    float factor = part == 0 ? p.current_weight_decay() : 1.f;
    std::string text;
    for (float x : p.read(part == 0 ? VPPS_VALUES : VPPS_GRADIENT)) {
      char number[32];
      int n = std::snprintf(number, sizeof number, "%+.8e ", static_cast<double>(x * factor));
      text.append(number, static_cast<size_t>(n));
      if (text.size() >= 1 << 16) {
        out.write(text);
        text.clear();
      }
    }
    out.write(text + '\n');
  }
}

// ---- loading -------------------------------------------------------------------

void TextFileLoader::populate(ParameterCollection &model, const std::string &key) {
  check_folder(key);
  std::vector<Entry> entries = parse_file(filename_);
  const auto &parameters = model.unexposed_parameters();
  const auto &tables = model.unexposed_tables();
  std::vector<const Entry *> of_parameters, of_tables;
  const std::string within = key.empty() ? key : folder(key);
  for (const Entry &e : entries) {
    if (e.name.compare(0, within.size(), within) != 0)
      continue;
    std::vector<const Entry *> &to = e.table ? of_tables : of_parameters;
    size_t most = e.table ? tables.size() : parameters.size();
    if (to.size() == most)
      throw std::runtime_error("Too many parameters in " + filename_ + ": " + e.name +
                               " has none to go to in the model");
    ParameterStorageBase &p =
        e.table ? static_cast<ParameterStorageBase &>(*tables[to.size()]) : *parameters[to.size()];
    check_dim(filename_, e, p.name, p.engine_dim);
    to.push_back(&e);
  }
  if (of_parameters.size() != parameters.size() || of_tables.size() != tables.size())
    throw std::runtime_error(filename_ + " has " + std::to_string(of_parameters.size()) +
                             " parameters and " + std::to_string(of_tables.size()) +
                             " lookup parameters" + (key.empty() ? "" : " under " + key) +
                             ", the model " + std::to_string(parameters.size()) + " and " +
                             std::to_string(tables.size()));
  for (size_t i = 0; i < parameters.size(); ++i)
    load(*of_parameters[i], *parameters[i]);
  for (size_t i = 0; i < tables.size(); ++i)
    load(*of_tables[i], *tables[i]);
}

void TextFileLoader::populate(Parameter &param, const std::string &key) {
  std::vector<Entry> entries = parse_file(filename_);
  const Entry &e = find(filename_, entries, key, false);
  check_dim(filename_, e, param.p.unexposed()->name, param.p.unexposed()->engine_dim);
  load(e, *param.p.unexposed());
}

void TextFileLoader::populate(LookupParameter &lookup_param, const std::string &key) {
  std::vector<Entry> entries = parse_file(filename_);
  const Entry &e = find(filename_, entries, key, true);
  check_dim(filename_, e, lookup_param.p.unexposed()->name, lookup_param.p.unexposed()->engine_dim);
  load(e, *lookup_param.p.unexposed());
}

Parameter TextFileLoader::load_param(ParameterCollection &model, const std::string &key) {
  std::vector<Entry> entries = parse_file(filename_);
  const Entry &e = find(filename_, entries, key, false);
  Parameter p = model.add_parameters(e.dim, ParameterInitConst(0));
  p.p.unexposed()->name = key;
  load(e, *p.p.unexposed());
  return p;
}

LookupParameter TextFileLoader::load_lookup_param(ParameterCollection &model,
                                                  const std::string &key) {
  std::vector<Entry> entries = parse_file(filename_);
  const Entry &e = find(filename_, entries, key, true);
  Dim row = e.dim;
  unsigned n = row[row.nd - 1];
  if (row.nd < 2)
    throw std::runtime_error(filename_ + ", " + key + ": a table has at least two axes");
  row.d[--row.nd] = 0;
  LookupParameter p = model.add_lookup_parameters(n, row, ParameterInitConst(0));
  p.p.unexposed()->name = key;
  load(e, *p.p.unexposed());
  return p;
}

} // namespace dynet
