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
#include "vpps/atomic_file.hpp"

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
  // Parameters are matched by order, tables likewise; counts and dims must be equal. Otherwise, and
  // if the file is damaged or no ordinary one: std::runtime_error, with nothing changed.
  virtual void populate(ParameterCollection &model, const std::string &key = "") = 0;
  virtual void populate(Parameter &param, const std::string &key = "") = 0;
  virtual void populate(LookupParameter &lookup_param, const std::string &key = "") = 0;
  virtual Parameter load_param(ParameterCollection &model, const std::string &key) = 0;
  virtual LookupParameter load_lookup_param(ParameterCollection &model, const std::string &key) = 0;
};

class TextFileSaver : public Saver {
public:
  // Each save() makes a new version of the file, which holds what this saver has saved before, too,
  // and with append what was there before it. Until the new version is stored the old one stays
  // (vpps/atomic_file.hpp). A file that cannot be written: std::runtime_error, from here or, if the
  // disk is full, from save().
  explicit TextFileSaver(const std::string &filename, bool append = false);
  ~TextFileSaver() override;
  void save(const ParameterCollection &model, const std::string &key = "") override;
  void save(const Parameter &param, const std::string &key = "") override;
  void save(const LookupParameter &param, const std::string &key = "") override;

private:
  vpps::atomic_file::beginning beginning() const;
  void write(vpps::atomic_file &out, const char *kind, const ParameterStorageBase &p,
             const std::string &name);
  void commit(vpps::atomic_file &out);
  std::string filename_;
  bool append_; // to what the file holds
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
