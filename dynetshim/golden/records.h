// The recorded cases as the program reads them: a list of lines, each a word that says
// what it is and values with spaces between. convert/main.go writes and describes them.
#ifndef GOLDEN_RECORDS_H
#define GOLDEN_RECORDS_H

#include <dynet/dim.h>

#include <istream>
#include <string>
#include <vector>

struct tensor {
  dynet::Dim dim;
  std::vector<float> values;
};

struct line {
  std::string key;
  std::vector<std::string> words; // after the key

  int integer(size_t k) const;
  float number(size_t k) const;
  std::vector<float> numbers(size_t first = 0) const;
  std::vector<unsigned> naturals(size_t first = 0) const;
  tensor as_tensor(size_t first = 0) const; // dimensions, batch size, values
};

struct record {
  std::string kind, fn, name;
  std::vector<line> lines;

  // The line of a key; null, or an exception from at, if there is none.
  const line *find(const std::string &key) const;
  const line &at(const std::string &key) const;
  std::vector<const line *> all(const std::string &key) const;

  // Lines "attr NAME VALUE" and "list NAME VALUES".
  const line *attribute(const std::string &name) const;
  bool has(const std::string &name) const { return attribute(name) != nullptr; }
  float number(const std::string &name) const;
  unsigned natural(const std::string &name) const;
  std::string word(const std::string &name) const; // "" if there is none
  std::vector<unsigned> list(const std::string &name) const;
  std::vector<float> numbers(const std::string &name) const;
};

// Reads the next record; false at the end. Throws std::runtime_error with the line's
// number if the text is something else.
class record_reader {
public:
  explicit record_reader(std::istream &in) : in_(in), number_(0) {}
  bool next(record &r);

private:
  std::istream &in_;
  size_t number_;
};

#endif
