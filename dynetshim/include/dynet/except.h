/// \file
/// The exceptions of the front-end: std::invalid_argument for what a program asks wrongly (shapes,
/// indices, options), std::runtime_error for what went wrong, and out_of_memory. DyNet's macros
/// that throw them are here for programs that use them.
#ifndef DYNET_EXCEPT_H_
#define DYNET_EXCEPT_H_

#include <iostream>
#include <new>
#include <sstream>
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

/// DyNet's exception for what has no code for GPUs. Nothing here throws it.
class cuda_not_implemented : public std::logic_error {
public:
  /// text: what is missing.
  explicit cuda_not_implemented(const std::string &text) : std::logic_error(text) {}
};

/// DyNet's exception for faults of a GPU. Nothing here throws it: they are std::runtime_error.
class cuda_exception : public std::runtime_error {
public:
  /// text: what failed.
  explicit cuda_exception(const std::string &text) : std::runtime_error(text) {}
};

} // namespace dynet

/// \cond
#define DYNET_THROW_(type, msg)                                                                    \
  do {                                                                                             \
    std::ostringstream dynet_text_;                                                                \
    dynet_text_ << msg;                                                                            \
    throw type(dynet_text_.str());                                                                 \
  } while (0);
/// \endcond

#ifdef DYNET_SKIP_ARG_CHECK
#define DYNET_INVALID_ARG(msg)
#define DYNET_ARG_CHECK(cond, msg)
#else
/// Throws std::invalid_argument. msg: what to print, such as "got " << n.
#define DYNET_INVALID_ARG(msg) DYNET_THROW_(std::invalid_argument, msg)
/// Throws std::invalid_argument unless cond is true. Nothing, with DYNET_SKIP_ARG_CHECK.
#define DYNET_ARG_CHECK(cond, msg)                                                                 \
  do {                                                                                             \
    if (!(cond))                                                                                   \
      DYNET_INVALID_ARG(msg)                                                                       \
  } while (0);
#endif

#ifdef DYNET_DO_ASSERT
/// Throws std::runtime_error unless expr is true. Nothing, without DYNET_DO_ASSERT.
#define DYNET_ASSERT(expr, msg)                                                                    \
  do {                                                                                             \
    if (!(expr))                                                                                   \
      DYNET_RUNTIME_ERR(msg)                                                                       \
  } while (0);
#else
/// Nothing: programs that define DYNET_DO_ASSERT get a check.
#define DYNET_ASSERT(expr, msg)
#endif

/// Throws std::runtime_error.
#define DYNET_RUNTIME_ERR(msg) DYNET_THROW_(std::runtime_error, msg)
/// Throws std::runtime_error that says that op has no code for GPUs.
#define DYNET_NO_CUDA_IMPL_ERROR(op) DYNET_RUNTIME_ERR(op << " is not implemented for GPUs")

#endif
