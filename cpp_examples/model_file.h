// Files that hold a whole model: a description, then the parameters in DyNet's format. The
// description has the application, sizes, options and vocabulary, so that the file alone answers:
//
//	libvpps example model 1
//	Tree-LSTM
//	--hidden 64 --embed 64 --batch-size 8 --trainer sgd --learning-rate 0.1 --seed 1
//	words 90 <unk>                       how many lines follow, and the word for unknown ones
//	...
//	parameters
//	#Parameter# ...
//
// The file is replaced as a whole.
#ifndef VPPS_EXAMPLES_MODEL_FILE_H
#define VPPS_EXAMPLES_MODEL_FILE_H

#include <dynet/dict.h>
#include <dynet/io.h>
#include <vpps/atomic_file.hpp> // libvpps

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "options.h"

// A file for a moment: DyNet's savers and loaders want one of their own.
class temporary_file {
public:
  temporary_file() {
    const char *folder = std::getenv("TMPDIR");
    name_ = std::string(folder && *folder ? folder : "/tmp") + "/vpps-model-XXXXXX";
    const int fd = mkstemp(&name_[0]);
    if (fd < 0)
      throw std::runtime_error("no file can be made in " + name_.substr(0, name_.rfind('/')) +
                               ": set TMPDIR to another folder");
    close(fd);
  }
  ~temporary_file() { unlink(name_.c_str()); }
  const std::string &name() const { return name_; }

private:
  temporary_file(const temporary_file &);
  temporary_file &operator=(const temporary_file &);
  std::string name_;
};

template <class Corpus>
std::string description_of(const application &a, const options &o, Corpus &data) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << "libvpps example model 1\n"
       << a.name << "\n--hidden " << o.hidden << " --embed " << o.embed << " --batch-size "
       << o.batch_size << " --trainer " << o.trainer << " --learning-rate " << o.learning_rate
       << " --seed " << o.seed << '\n';
  for (const auto &part : data.vocabulary()) {
    const dynet::Dict &dict = *part.second;
    const int unknown = dict.get_unk_id();
    text << part.first << ' ' << dict.size();
    if (unknown >= 0)
      text << ' ' << dict.get_words()[size_t(unknown)];
    text << '\n';
    for (const std::string &word : dict.get_words())
      text << word << '\n';
  }
  text << "parameters\n";
  return text.str();
}

template <class Corpus>
void save_model(const application &a, const options &o, const dynet::ParameterCollection &m,
                Corpus &data) {
  const temporary_file parameters;
  dynet::TextFileSaver(parameters.name()).save(m);
  vpps::atomic_file out(o.save);
  out.write(description_of(a, o, data));
  std::ifstream in(parameters.name().c_str());
  std::string block(1 << 20, '\0');
  while (in.read(&block[0], long(block.size())) || in.gcount() > 0)
    out.write(block.substr(0, size_t(in.gcount())));
  out.commit();
}

// Reads o.load in two steps, for a model is made between them.
class saved_model {
public:
  // Sets the sizes in o and the vocabulary of data, which has none yet.
  template <class Corpus>
  saved_model(const application &a, options &o, Corpus &data) : file(o.load), in(file.c_str()) {
    if (line() != "libvpps example model 1")
      fail("is no model that this program has saved with --save");
    const std::string name = line();
    if (name != a.name)
      fail("is a model of " + name + ", this program is " + a.name);
    std::string hidden_flag, embed_flag;
    unsigned hidden = 0, embed = 0;
    std::istringstream sizes(line());
    sizes.imbue(std::locale::classic());
    sizes >> hidden_flag >> hidden >> embed_flag >> embed;
    if (!sizes || hidden_flag != "--hidden" || embed_flag != "--embed" || !hidden || !embed)
      fail("has no sizes: the file is damaged");
    if (o.sizes_given && (o.hidden != hidden || o.embed != embed))
      throw usage_error("--load: the model of " + file + " has --hidden " + std::to_string(hidden) +
                        " --embed " + std::to_string(embed) + ": leave both out");
    o.hidden = hidden;
    o.embed = embed;
    for (const auto &part : data.vocabulary())
      read(part.first, *part.second);
    if (line() != "parameters")
      fail("has no parameters here: the file is damaged");
  }

  // Of the same shapes as when they were saved.
  void read_parameters(dynet::ParameterCollection &m) {
    const temporary_file parameters;
    {
      std::ofstream out(parameters.name().c_str());
      out << in.rdbuf();
      out.close();
      if (!out)
        throw std::runtime_error("cannot write " + parameters.name() +
                                 ": set TMPDIR to another folder");
    }
    try {
      dynet::TextFileLoader(parameters.name()).populate(m);
    } catch (const std::runtime_error &e) {
      std::string what = e.what(); // in the words of the file that the user knows
      const size_t at = what.find(parameters.name());
      if (at != std::string::npos)
        what.replace(at, parameters.name().size(), file + ", after line " + std::to_string(number));
      throw std::runtime_error(what);
    }
  }

private:
  std::string line() {
    std::string text;
    number++;
    if (!std::getline(in, text))
      fail("ends too early: the file is damaged");
    return text;
  }

  void read(const std::string &part, dynet::Dict &dict) {
    std::istringstream head(line());
    head.imbue(std::locale::classic());
    std::string name, unknown;
    size_t count = 0;
    if (!(head >> name >> count) || name != part)
      fail("has no " + part + " here: the file is damaged");
    while (count-- > 0)
      dict.convert(line());
    dict.freeze();
    if (head >> unknown)
      dict.set_unk(unknown);
  }

  [[noreturn]] void fail(const std::string &what) const {
    throw std::runtime_error(file + ":" + std::to_string(number) + ": " + what);
  }

  const std::string file;
  std::ifstream in;
  size_t number = 0; // of the line that was read last
};

#endif
