// What counts as equal to a recorded number.
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include <stdexcept>
#include <string>
#include <vector>

// A difference; what() names what differs and its first wrong entry.
struct mismatch : public std::runtime_error {
  explicit mismatch(const std::string &what) : std::runtime_error(what) {}
};

// An entry may be off by relative*|b| + of_largest*max|b| + absolute; infinities must be
// equal.
struct tolerance {
  float relative, of_largest, absolute;
};

// Values and gradients of single functions and of builders. Where the exact result is 0
// and only rounding errors were recorded there is nothing to be relative to.
const tolerance usual = {1e-4f, 1e-5f, 0};
const tolerance rounding_only = {0, 1e-3f, 1e-5f};

// Throws mismatch. what says what is compared.
void compare(const std::string &what, const std::vector<float> &got,
             const std::vector<float> &wanted, const tolerance &allowed);

// The same for one number with a relative tolerance.
void compare(const std::string &what, double got, double wanted, double relative, double absolute);

#endif
