// Saving and loading parameters as text: for each a header line
//   #Parameter# /name {2,3} 97 ZERO_GRAD        (or #LookupParameter#)
// and a line of values, "%+.8e " each; with FULL_GRAD a second line, the gradient. The
// number is the bytes to the next header. Values are what graphs see: stored values
// times the weight decay factor.
#ifndef DYNET_IO_H
#define DYNET_IO_H

#include <fstream>
#include <memory>
#include <string>

#include "dynet/model.h"

namespace dynet {

// Keys begin with '/' and have neither ' ' nor '#': std::invalid_argument otherwise.
// With a key, it stands in the names in place of the collection's own.
class Saver {
public:
  virtual ~Saver() {}
  virtual void save(const ParameterCollection &model, const std::string &key = "") = 0;
  virtual void save(const Parameter &param, const std::string &key = "") = 0;
  virtual void save(const LookupParameter &param, const std::string &key = "") = 0;
};

class Loader {
public:
  virtual ~Loader() {}
  // Parameters are matched by order, tables likewise; counts and dims must be equal:
  // std::runtime_error otherwise, with nothing changed.
  virtual void populate(ParameterCollection &model, const std::string &key = "") = 0;
  virtual void populate(Parameter &param, const std::string &key = "") = 0;
  virtual void populate(LookupParameter &lookup_param, const std::string &key = "") = 0;
  virtual Parameter load_param(ParameterCollection &model, const std::string &key) = 0;
  virtual LookupParameter load_lookup_param(ParameterCollection &model, const std::string &key) = 0;
};

class TextFileSaver : public Saver {
public:
  // A file that cannot be written: std::runtime_error, also later when the disk is full.
  explicit TextFileSaver(const std::string &filename, bool append = false);
  ~TextFileSaver() override;
  void save(const ParameterCollection &model, const std::string &key = "") override;
  void save(const Parameter &param, const std::string &key = "") override;
  void save(const LookupParameter &param, const std::string &key = "") override;

private:
  void write(const char *kind, const ParameterStorageBase &p, const std::string &name);
  void finish();
  std::string filename_;
  std::ofstream out_;
};

class TextFileLoader : public Loader {
public:
  explicit TextFileLoader(const std::string &filename) : filename_(filename) {}
  ~TextFileLoader() override {}
  void populate(ParameterCollection &model, const std::string &key = "") override;
  void populate(Parameter &param, const std::string &key = "") override;
  void populate(LookupParameter &lookup_param, const std::string &key = "") override;
  Parameter load_param(ParameterCollection &model, const std::string &key) override;
  LookupParameter load_lookup_param(ParameterCollection &model, const std::string &key) override;

private:
  std::string filename_;
};

} // namespace dynet
#endif
