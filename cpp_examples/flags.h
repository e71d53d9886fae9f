// A table of a program's options. One table both reads the command line and prints the help, so an
// option cannot be in one and not in the other.
#ifndef VPPS_EXAMPLES_FLAGS_H
#define VPPS_EXAMPLES_FLAGS_H

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// A command line that makes no sense: one line, and exit status 2.
class usage_error : public std::runtime_error {
public:
  explicit usage_error(const std::string &what) : std::runtime_error(what) {}
};

// A number of the command line, from least on.
inline double number_of(const std::string &name, const std::string &text, double least,
                        bool whole) {
  char *end;
  const double x = std::strtod(text.c_str(), &end);
  const bool in_range = (whole ? x >= least : x > least) && x <= 1e9;
  if (text.empty() || *end || !in_range || (whole && x != std::floor(x))) {
    std::ostringstream from;
    from << least;
    throw usage_error(
        name + " " + text + ": give a " +
        (whole ? "whole number from " + from.str() + " on" : "number above " + from.str()));
  }
  return x;
}

class flags {
public:
  // ---- the kinds of options; what the field holds now is the default

  void on(const std::string &name, bool &field, const std::string &meaning) {
    add(name, "", meaning, "", [&field](const std::string &) { field = true; });
  }
  void text(const std::string &name, const std::string &value, std::string &field,
            const std::string &meaning) {
    add(name, value, meaning, field, [&field](const std::string &v) { field = v; });
  }
  // A file that must be there.
  void readable(const std::string &name, std::string &field, const std::string &meaning) {
    add(name, "FILE", meaning, field, [name, &field](const std::string &v) {
      if (!std::ifstream(v.c_str()).good())
        throw usage_error(name + " " + v + ": cannot be opened");
      field = v;
    });
  }
  // One of some words.
  void choice(const std::string &name, const std::vector<std::string> &words, std::string &field,
              const std::string &meaning) {
    add(name, "NAME", meaning + ": " + list(words), field,
        [name, words, &field](const std::string &v) {
          if (std::find(words.begin(), words.end(), v) == words.end())
            throw usage_error(name + " " + v + " is unknown: give " + list(words));
          field = v;
        });
  }
  // A whole number from least on.
  void whole(const std::string &name, unsigned least, unsigned &field, const std::string &meaning) {
    add(name, "N", meaning, field ? std::to_string(field) : "",
        [name, least, &field](const std::string &v) {
          field = unsigned(number_of(name, v, least, true));
        });
  }
  // A number above 0.
  void number(const std::string &name, const std::string &value, double &field,
              const std::string &meaning) {
    std::ostringstream standard;
    if (field > 0)
      standard << field;
    add(name, value, meaning, standard.str(),
        [name, &field](const std::string &v) { field = number_of(name, v, 0, false); });
  }
  // Whole numbers from 1 on, with commas between them.
  void wholes(const std::string &name, std::vector<unsigned> &field, const std::string &meaning) {
    std::string standard;
    for (unsigned x : field)
      standard += (standard.empty() ? "" : ",") + std::to_string(x);
    add(name, "N,...", meaning, standard, [name, &field](const std::string &v) {
      field.clear();
      std::istringstream in(v);
      for (std::string word; std::getline(in, word, ',');)
        field.push_back(unsigned(number_of(name, word, 1, true)));
    });
  }
  // A headline of the help.
  void heading(const std::string &title) { rows.push_back({title, "", "", "", nullptr}); }

  // ---- what the table is for

  // Sets the fields. What is not in the table, or makes no sense: usage_error.
  void parse(const std::vector<std::string> &arguments) {
    for (size_t k = 0; k < arguments.size(); k++) {
      const std::string name = arguments[k] == "-h" ? "--help" : arguments[k];
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&name](const option &o) { return o.set && o.name == name; });
      if (row == rows.end())
        throw usage_error(name + " is unknown: see --help");
      given.insert(name);
      if (row->value.empty()) {
        row->set("");
        continue;
      }
      if (++k == arguments.size() || arguments[k].compare(0, 2, "--") == 0)
        throw usage_error(name + " needs " + kind(row->value) + ": see --help");
      row->set(arguments[k]);
    }
  }

  bool was_given(const std::string &name) const { return given.count(name) != 0; }

  // A line for each option, its default at the end; more, where the meaning has more.
  std::string help() const {
    std::string text;
    for (const option &o : rows) {
      if (!o.set) {
        text += "\n" + o.name + ":\n";
        continue;
      }
      std::string line = "  " + o.name + (o.value.empty() ? "" : " " + o.value);
      line.resize(std::max<size_t>(line.size() + 2, column), ' ');
      for (char c : o.meaning) {
        line += c;
        if (c == '\n')
          line += std::string(column, ' ');
      }
      text += line + (o.standard.empty() ? "" : " [" + o.standard + "]") + "\n";
    }
    return text;
  }

private:
  struct option {
    std::string name, value, meaning, standard;   // value: the word for it in the help
    std::function<void(const std::string &)> set; // none: a headline
  };

  void add(const std::string &name, const std::string &value, const std::string &meaning,
           const std::string &standard, std::function<void(const std::string &)> set) {
    rows.push_back({name, value, meaning, standard, std::move(set)});
  }

  static std::string kind(const std::string &value) {
    return value == "FILE"   ? "a file"
           : value == "DIR"  ? "a folder"
           : value == "NAME" ? "a name"
                             : "a value";
  }

  static std::string list(const std::vector<std::string> &words) {
    std::string text;
    for (size_t k = 0; k < words.size(); k++)
      text += (k == 0 ? "" : k + 1 < words.size() ? ", " : " or ") + words[k];
    return text;
  }

  enum { column = 26 }; // where meanings begin
  std::vector<option> rows;
  std::set<std::string> given;
};

#endif
