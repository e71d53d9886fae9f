// vpps::c_numbers: while one lives, the C functions that the thread calls (strtof, snprintf) read
// and write numbers as in the "C" locale, whatever setlocale has chosen for the process. Streams
// have a locale of their own: std::locale::classic() is the same for them.
#ifndef VPPS_C_NUMBERS_HPP
#define VPPS_C_NUMBERS_HPP

#include <locale.h>

namespace vpps {

class c_numbers {
public:
  c_numbers() : before_(uselocale(c_locale())) {}
  ~c_numbers() { uselocale(before_); }

private:
  c_numbers(const c_numbers &);
  c_numbers &operator=(const c_numbers &);

  // Made once. Without memory for it the thread keeps its locale.
  static locale_t c_locale() {
    static const locale_t c = newlocale(LC_ALL_MASK, "C", locale_t(0));
    return c;
  }

  locale_t before_;
};

} // namespace vpps
#endif
