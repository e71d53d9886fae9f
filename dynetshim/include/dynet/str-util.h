/// \file
/// Functions over strings.
#ifndef DYNET_STR_UTIL_H_
#define DYNET_STR_UTIL_H_

#include <string>
#include <vector>

namespace dynet {

/// Whether str begins with key.
inline bool startswith(const std::string &str, const std::string &key) {
  return str.compare(0, key.size(), key) == 0;
}

/// Whether str ends with key.
inline bool endswith(const std::string &str, const std::string &key) {
  return str.size() >= key.size() &&
         str.compare(str.size() - key.size(), std::string::npos, key) == 0;
}

/// The parts of str between separators, without empty ones.
inline std::vector<std::string> str_split(const std::string &str, const char sep) {
  std::vector<std::string> parts;
  for (size_t at = 0; (at = str.find_first_not_of(sep, at)) != std::string::npos;) {
    const size_t end = str.find(sep, at);
    parts.push_back(str.substr(at, end - at));
    at = end;
  }
  return parts;
}

} // namespace dynet
#endif
