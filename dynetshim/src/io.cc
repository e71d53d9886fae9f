// The text format. A file is parsed whole before anything is written to parameters.
#include "dynet/io.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace dynet {

namespace {

void check_key(const std::string &key) {
  if (!key.empty() && (key[0] != '/' || key.find_first_of(" #") != std::string::npos))
    throw std::invalid_argument("the key '" + key +
                                "' must begin with '/' and have neither ' ' nor '#'");
}

// One parameter of a file.
struct Entry {
  std::string name;
  Dim dim;
  bool table, has_gradient;
  std::vector<float> values, gradient;
};

std::vector<float> parse_numbers(const std::string &line, size_t wanted, const std::string &where) {
  std::vector<float> v;
  v.reserve(wanted);
  const char *p = line.c_str();
  for (char *end = nullptr;; p = end) {
    float x = std::strtof(p, &end);
    if (end == p)
      break;
    v.push_back(x);
  }
  while (*p == ' ' || *p == '\r')
    ++p;
  if (*p != 0 || v.size() != wanted)
    throw std::runtime_error(where + ": needs " + std::to_string(wanted) + " numbers, found " +
                             std::to_string(v.size()) + ": the file is damaged");
  return v;
}

std::vector<Entry> parse_file(const std::string &filename) {
  std::ifstream in(filename);
  if (!in)
    throw std::runtime_error("cannot read the model file " + filename);
  std::vector<Entry> entries;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty())
      continue;
    std::istringstream header(line);
    std::string kind, gradient;
    size_t bytes = 0;
    Entry e;
    header >> kind >> e.name >> e.dim >> bytes;
    bool parameter = kind == "#Parameter#";
    e.table = kind == "#LookupParameter#";
    if (!header || (!parameter && !e.table) || e.dim.nd == 0)
      throw std::runtime_error(filename + ": not a header of a parameter: '" + line.substr(0, 60) +
                               "': the file is damaged or no model");
    // Old files have no word for the gradient, but have the gradient.
    header >> gradient;
    e.has_gradient = gradient != "ZERO_GRAD";
    std::string where = filename + ", " + e.name;
    line.clear();
    std::getline(in, line);
    e.values = parse_numbers(line, e.dim.size(), where);
    if (e.has_gradient) {
      line.clear();
      std::getline(in, line);
      e.gradient = parse_numbers(line, e.dim.size(), where + " (gradient)");
    }
    entries.push_back(std::move(e));
  }
  return entries;
}

void check_dim(const std::string &filename, const Entry &e, const std::string &name,
               const Dim &dim) {
  if (e.dim == dim)
    return;
  std::ostringstream text;
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
    : filename_(filename), out_(filename, append ? std::ios::app : std::ios::trunc) {
  if (!out_)
    throw std::runtime_error("cannot write the model file " + filename);
}

TextFileSaver::~TextFileSaver() {}

void TextFileSaver::save(const ParameterCollection &model, const std::string &key) {
  check_key(key);
  size_t own = model.get_fullname().size();
  std::string prefix = key.empty() ? model.get_fullname() : key + "/";
  for (auto &p : model.unexposed_parameters())
    write("#Parameter#", *p, prefix + p->name.substr(own));
  for (auto &p : model.unexposed_tables())
    write("#LookupParameter#", *p, prefix + p->name.substr(own));
  finish();
}

void TextFileSaver::save(const Parameter &param, const std::string &key) {
  check_key(key);
  write("#Parameter#", *param.p.unexposed(), key.empty() ? param.p.unexposed()->name : key);
  finish();
}

void TextFileSaver::save(const LookupParameter &param, const std::string &key) {
  check_key(key);
  write("#LookupParameter#", *param.p.unexposed(), key.empty() ? param.p.unexposed()->name : key);
  finish();
}

void TextFileSaver::write(const char *kind, const ParameterStorageBase &p,
                          const std::string &name) {
  bool gradient = p.has_grad();
  size_t line = 16 * p.size() + 1;
  out_ << kind << ' ' << name << ' ' << p.engine_dim << ' ' << (gradient ? 2 * line : line)
       << (gradient ? " FULL_GRAD\n" : " ZERO_GRAD\n");
  std::string text;
  text.reserve(line);
  for (int part = 0; part < (gradient ? 2 : 1); ++part) {
    float factor = part == 0 ? p.current_weight_decay() : 1.f;
    text.clear();
    for (float x : p.read(part == 0 ? VPPS_VALUES : VPPS_GRADIENT)) {
      char number[32];
      int n = std::snprintf(number, sizeof number, "%+.8e ", static_cast<double>(x * factor));
      text.append(number, static_cast<size_t>(n));
    }
    out_ << text << '\n';
  }
}

void TextFileSaver::finish() {
  out_.flush();
  if (!out_)
    throw std::runtime_error("writing the model file " + filename_ + " failed: is the disk full?");
}

// ---- loading -------------------------------------------------------------------

void TextFileLoader::populate(ParameterCollection &model, const std::string &key) {
  check_key(key);
  std::vector<Entry> entries = parse_file(filename_);
  const auto &parameters = model.unexposed_parameters();
  const auto &tables = model.unexposed_tables();
  std::vector<const Entry *> of_parameters, of_tables;
  for (const Entry &e : entries) {
    if (!key.empty() && e.name.compare(0, key.size() + 1, key + "/") != 0)
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
  load(e, *p.p.unexposed());
  return p;
}

} // namespace dynet
