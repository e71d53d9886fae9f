/// \file
/// vpps::c_numbers: numbers in text with a point, whatever the locale of the process.
#ifndef VPPS_C_NUMBERS_HPP
#define VPPS_C_NUMBERS_HPP

#include <locale.h>

namespace vpps {

/// While one lives, the C functions that its thread calls (strtof, snprintf) read and write numbers
/// as in the "C" locale, whatever setlocale has chosen for the process. Streams have a locale of
/// their own: std::locale::classic() does the same for them.
class c_numbers {
public:
  /// Switches the calling thread to the "C" locale. Without memory for it the thread keeps its
  /// locale.
  c_numbers() : before_(uselocale(c_locale())) {}
  /// Gives the thread the locale that it had before.
  ~c_numbers() { uselocale(before_); }

private:
  c_numbers(const c_numbers &);
  c_numbers &operator=(const c_numbers &);

  // Made once; 0 without memory for it.
  static locale_t c_locale() {
    static const locale_t c = newlocale(LC_ALL_MASK, "C", locale_t());
    return c;
  }

  locale_t before_;
};

} // namespace vpps
#endif
