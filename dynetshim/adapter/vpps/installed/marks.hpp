// Memory of DyNet's whose values are on the device is marked: all elements are one signalling NaN.
// Who reads it computes NaN. Who scales or adds to it makes the NaN quiet, which shows.
#ifndef VPPS_INSTALLED_MARKS_HPP
#define VPPS_INSTALLED_MARKS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vpps {
namespace installed {

const uint32_t mark_bits = 0x7fa5a5a5, quiet_and_sign = 0x80400000;

inline void mark(float *values, size_t n) {
  for (size_t i = 0; i < n; ++i)
    std::memcpy(values + i, &mark_bits, sizeof mark_bits);
}

// Whether any element is still a mark, quiet or not.
inline bool marked(const float *values, size_t n) {
  bool any = false;
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    any |= (bits & ~quiet_and_sign) == (mark_bits & ~quiet_and_sign);
  }
  return any;
}

// Whether memory begins with a mark as it was written.
inline bool begins_marked(const float *values) {
  return std::memcmp(values, &mark_bits, sizeof mark_bits) == 0;
}

} // namespace installed
} // namespace vpps
#endif
