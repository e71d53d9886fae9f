/// \file
/// The exceptions of the front-end: std::invalid_argument for what a program asks wrongly (shapes,
/// indices, options), std::runtime_error for what went wrong, and out_of_memory.
#ifndef DYNET_EXCEPT_H
#define DYNET_EXCEPT_H

#include <new>
#include <stdexcept>
#include <string>

namespace dynet {

/// Memory of the host or the device ran out. The call that throws it has changed nothing.
class out_of_memory : public std::bad_alloc {
public:
  /// text: what needed how much.
  explicit out_of_memory(const std::string &text) : text_(text) {}
  ~out_of_memory() noexcept override {}
  /// The text, owned by this object.
  const char *what() const noexcept override { return text_.c_str(); }

private:
  std::string text_;
};

} // namespace dynet
#endif
