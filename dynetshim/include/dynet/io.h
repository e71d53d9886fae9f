/// \file
/// Saving and loading parameters as text, in DyNet's format. Each parameter has a header line
///
///     #Parameter# /name {2,3} 97 ZERO_GRAD        (or #LookupParameter#)
///
/// and a line of values, "%+.8e " each; with FULL_GRAD a second line, the gradient. The number is
/// the bytes to the next header. Values are what graphs see: stored values times the factor of the
/// weight decay. A locale of the process changes nothing.
#ifndef DYNET_IO_H_
#define DYNET_IO_H_

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "dynet/model.h"
#include "vpps/atomic_file.hpp"

namespace dynet {

/// Writes parameters. A key takes the place of the collection's own name in the names of the file;
/// a '/' at its end counts for nothing. Keys of collections begin with '/', and no key has ' ' or
/// '#': std::invalid_argument otherwise.
class Saver {
public:
  virtual ~Saver() {}
  ///@{
  /// Saves a collection, a parameter or a table, under its own name or key. What cannot be written:
  /// std::runtime_error.
  virtual void save(const ParameterCollection &model, const std::string &key = "") = 0;
  virtual void save(const Parameter &param, const std::string &key = "") = 0;
  virtual void save(const LookupParameter &param, const std::string &key = "") = 0;
  ///@}
};

/// Reads what a Saver has written.
class Loader {
public:
  virtual ~Loader() {}
  ///@{
  /// Sets the values of a collection, a parameter or a table, saved under its own name or key.
  /// Parameters are matched by order, and tables by theirs; counts and shapes must be equal.
  /// Otherwise, and if the file is damaged or no ordinary one: std::runtime_error, and nothing has
  /// changed.
  virtual void populate(ParameterCollection &model, const std::string &key = "") = 0;
  virtual void populate(Parameter &param, const std::string &key = "") = 0;
  virtual void populate(LookupParameter &lookup_param, const std::string &key = "") = 0;
  ///@}
  /// Makes the parameter that the file has under key, in model, with the key as its name. Fails as
  /// populate() does.
  virtual Parameter load_param(ParameterCollection &model, const std::string &key) = 0;
  /// Makes the table that the file has under key, in model, with the key as its name. Fails as
  /// populate() does.
  virtual LookupParameter load_lookup_param(ParameterCollection &model, const std::string &key) = 0;
};

/// Writes a text file.
class TextFileSaver : public Saver {
public:
  /// For the file filename. Each save() makes a new version of the file. It holds what this saver
  /// has saved before, and with append also what the file held before. The old version stays until
  /// the new one is stored (vpps/atomic_file.hpp). A file that cannot be written is
  /// std::runtime_error from here; a full disk is that from save().
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

/// Reads a text file.
class TextFileLoader : public Loader {
public:
  /// For the file filename, which each call opens anew.
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
