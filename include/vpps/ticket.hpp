/// \file
/// vpps::ticket: what handle::infer() gives and handle::result() takes.
#ifndef VPPS_TICKET_HPP
#define VPPS_TICKET_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpps {

/// An answer that handle::infer() has asked for. It is a value: copies stand for the same answer.
struct ticket {
  uint64_t number = 0;       ///< the engine's number; 0: the host has computed the values
  std::vector<size_t> sizes; ///< the number of elements of each expression
  std::vector<float> values; ///< all values, if the host has computed them

  /// The number of elements of all expressions.
  size_t size() const {
    size_t n = 0;
    for (size_t s : sizes)
      n += s;
    return n;
  }
  /// One vector for each expression, of all values one after the other.
  std::vector<std::vector<float>> split(const std::vector<float> &all) const {
    std::vector<std::vector<float>> parts;
    size_t at = 0;
    for (size_t s : sizes) {
      parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                         all.begin() + static_cast<std::ptrdiff_t>(at + s));
      at += s;
    }
    return parts;
  }
};

} // namespace vpps
#endif
