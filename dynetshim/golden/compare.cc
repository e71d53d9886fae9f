// Compares with recorded numbers.
#include "compare.h"

#include <cmath>
#include <cstdio>

void compare(const std::string &what, const std::vector<float> &got,
             const std::vector<float> &wanted, const tolerance &allowed) {
  char text[160];
  if (got.size() != wanted.size()) {
    std::snprintf(text, sizeof text, ": %zu entries instead of %zu", got.size(), wanted.size());
    throw mismatch(what + text);
  }
  float largest = 0;
  for (float w : wanted)
    if (std::isfinite(w))
      largest = std::fmax(largest, std::fabs(w));
  for (size_t k = 0; k < wanted.size(); k++) {
    const float limit =
        allowed.relative * std::fabs(wanted[k]) + allowed.of_largest * largest + allowed.absolute;
    const bool same = std::isfinite(wanted[k])
                          ? std::fabs(got[k] - wanted[k]) <= limit // false if got is NaN
                          : got[k] == wanted[k] || (std::isnan(got[k]) && std::isnan(wanted[k]));
    if (!same) {
      std::snprintf(text, sizeof text, "[%zu] is %.9g instead of %.9g", k, got[k], wanted[k]);
      throw mismatch(what + text);
    }
  }
}

void compare(const std::string &what, double got, double wanted, double relative, double absolute) {
  if (std::fabs(got - wanted) <= relative * std::fabs(wanted) + absolute)
    return;
  char text[96];
  std::snprintf(text, sizeof text, " is %.9g instead of %.9g", got, wanted);
  throw mismatch(what + text);
}
