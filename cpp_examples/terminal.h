// Where the output goes: how wide a terminal is, and whether it shows colours.
#ifndef VPPS_EXAMPLES_TERMINAL_H
#define VPPS_EXAMPLES_TERMINAL_H

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

inline bool output_is_terminal() { return isatty(STDOUT_FILENO) != 0; }

// Columns, at this moment; 80 if nobody knows.
inline size_t terminal_width() {
  struct winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The text in a colour, a number of the escape sequence ESC[...m, if a terminal is to show it and
// NO_COLOR is unset or empty. No colour: the text as it is.
inline std::string painted(const std::string &text, const std::string &colour) {
  const char *refused = std::getenv("NO_COLOR");
  if (colour.empty() || (refused && *refused) || !output_is_terminal())
    return text;
  return "\033[" + colour + "m" + text + "\033[0m";
}

#endif
