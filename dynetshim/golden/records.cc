// Parses the recorded cases.
#include "records.h"

#include <cstdlib>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace {

// Reads "inf" and "nan" too.
float to_float(const std::string &word) {
  char *end;
  const float x = std::strtof(word.c_str(), &end);
  if (word.empty() || *end)
    throw std::runtime_error(word + " is not a number");
  return x;
}

} // namespace

int line::integer(size_t k) const { return int(std::strtol(words.at(k).c_str(), nullptr, 10)); }

float line::number(size_t k) const { return to_float(words.at(k)); }

std::vector<float> line::numbers(size_t first) const {
  std::vector<float> xs;
  for (size_t k = first; k < words.size(); k++)
    xs.push_back(to_float(words[k]));
  return xs;
}

std::vector<unsigned> line::naturals(size_t first) const {
  std::vector<unsigned> xs;
  for (size_t k = first; k < words.size(); k++)
    xs.push_back(unsigned(integer(k)));
  return xs;
}

tensor line::as_tensor(size_t first) const {
  const size_t nd = size_t(integer(first));
  std::vector<long> dims;
  for (size_t k = 0; k < nd; k++)
    dims.push_back(integer(first + 1 + k));
  tensor t;
  t.dim = dynet::Dim(dims, unsigned(integer(first + 1 + nd)));
  t.values = numbers(first + 2 + nd);
  if (t.values.size() != t.dim.size())
    throw std::runtime_error(key + ": a tensor with other than its dim's number of values");
  return t;
}

const line *record::find(const std::string &key) const {
  for (const line &l : lines)
    if (l.key == key)
      return &l;
  return nullptr;
}

const line &record::at(const std::string &key) const {
  const line *l = find(key);
  if (!l)
    throw std::runtime_error("the record has no line " + key + ": convert the files anew");
  return *l;
}

std::vector<const line *> record::all(const std::string &key) const {
  std::vector<const line *> found;
  for (const line &l : lines)
    if (l.key == key)
      found.push_back(&l);
  return found;
}

const line *record::attribute(const std::string &name) const {
  for (const line &l : lines)
    if ((l.key == "attr" || l.key == "list") && l.words.at(0) == name)
      return &l;
  return nullptr;
}

float record::number(const std::string &name) const {
  const line *l = attribute(name);
  if (!l || l->key != "attr")
    throw std::runtime_error("the record has no attribute " + name);
  return l->number(1);
}

unsigned record::natural(const std::string &name) const { return unsigned(number(name)); }

std::string record::word(const std::string &name) const {
  const line *l = attribute(name);
  return l ? l->words.at(1) : "";
}

std::vector<unsigned> record::list(const std::string &name) const {
  const line *l = attribute(name);
  if (!l || l->key != "list")
    throw std::runtime_error("the record has no list " + name);
  return l->naturals(1);
}

std::vector<float> record::numbers(const std::string &name) const {
  list(name);
  return attribute(name)->numbers(1);
}

bool record_reader::next(record &r) {
  r = record();
  std::string text;
  while (std::getline(in_, text)) {
    number_++;
    line l;
    std::istringstream words(text);
    words >> l.key;
    for (std::string w; words >> w;)
      l.words.push_back(w);
    if (l.key == "case" && r.kind.empty() && l.words.size() == 3) {
      r.kind = l.words[0];
      r.fn = l.words[1];
      r.name = l.words[2];
    } else if (l.key == "end" && !r.kind.empty()) {
      return true;
    } else if (!r.kind.empty()) {
      r.lines.push_back(l);
    } else {
      throw std::runtime_error("line " + std::to_string(number_) +
                               " is no case: give what dynetshim/golden/convert writes");
    }
  }
  if (!r.kind.empty())
    throw std::runtime_error("the text ends inside " + r.name + ": it was cut off");
  return false;
}
