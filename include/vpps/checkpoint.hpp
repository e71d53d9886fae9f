/// \file
/// vpps::checkpoint: saves all that training goes on from in one file, and goes on from it with the
/// same bits as if it had not stopped.
///
///     vpps::checkpoint c(model, trainer, &hndl);
///     c.save("run.checkpoint", {{"epoch", "7"}});
///     ...
///     vpps::checkpoint::blobs own = c.load("run.checkpoint"); // own["epoch"] is "7"
///
/// Programs include vpps/vpps.hpp, compiled against libvpps's own DyNet headers.
#ifndef VPPS_CHECKPOINT_HPP
#define VPPS_CHECKPOINT_HPP

#include <dynet/dynet.h>
#include <dynet/training.h>

#include <map>
#include <string>

#include "vpps.h"
#include <vpps/bundled.hpp>

namespace vpps {

/// Saves and loads the state of one model, its trainer and its handle. Uses vpps_checkpoint_save()
/// and vpps_checkpoint_load(); docs/CHECKPOINT.md describes the file.
class checkpoint {
public:
  /// Bytes of the program's own, by name. Names that begin with "dynet" are taken.
  typedef std::map<std::string, std::string> blobs;

  /// model, trainer and hndl stay the caller's and must outlive the checkpoint. hndl: the handle
  /// that uses the trainer, if there is one.
  checkpoint(dynet::ParameterCollection &model, dynet::Trainer &trainer, handle *hndl = nullptr)
      : model_(model), trainer_(trainer), handle_(hndl) {}

  /// Saves values, gradients, what the trainer remembers and its fields, weight decay, the states
  /// of the random generators (that of dynet::rndeng, too) and own. Waits for the batches in
  /// flight. The file is replaced as a whole (vpps/atomic_file.hpp). What cannot be written:
  /// std::runtime_error.
  void save(const std::string &file, const blobs &own = blobs()) const;
  /// Makes everything as it was when file was saved, and returns the program's own blobs. A file
  /// that is damaged, or of another model or trainer: std::runtime_error, and nothing has changed.
  blobs load(const std::string &file) const;
  /// Returns the program's own blobs alone, of a file that is checked as a whole; changes nothing.
  /// A damaged file: std::runtime_error.
  static blobs read(const std::string &file);

private:
  dynet::ParameterCollection &model_;
  dynet::Trainer &trainer_;
  handle *handle_;
};

} // namespace vpps
#endif
