// Reading a text, see text_file.h.
#include "text_file.h"

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dynet {

// O_NONBLOCK: opening a pipe must not wait for who writes it.
text_file::text_file(const std::string &name)
    : name_(name), fd_(open(name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)), size_(0),
      before_(0), line_(1), block_(1 << 16), at_(0), count_(0), word_() {
  if (fd_ < 0)
    throw std::runtime_error("cannot read " + name + ": " + std::generic_category().message(errno));
  struct stat s;
  if (fstat(fd_, &s) != 0 || !S_ISREG(s.st_mode)) {
    close(fd_);
    throw std::runtime_error("cannot read " + name + ": it is no ordinary file");
  }
  size_ = static_cast<uint64_t>(s.st_size);
}

text_file::~text_file() { close(fd_); }

bool text_file::fill() {
  ssize_t n;
  do
    n = read(fd_, block_.data(), block_.size());
  while (n < 0 && errno == EINTR);
  if (n < 0)
    fail("cannot be read: " + std::generic_category().message(errno));
  before_ += count_;
  at_ = 0;
  count_ = static_cast<size_t>(n);
  return n > 0;
}

int text_file::get() {
  const int c = peek();
  if (c == end)
    return end;
  ++at_;
  line_ += c == '\n';
  return c;
}

std::string text_file::line() {
  std::string text;
  for (int c = peek(); c != '\n'; c = peek()) {
    if (c == end)
      fail("the line does not end: the file is damaged");
    if (text.size() == 1 << 16)
      fail("a line of over 65536 bytes where a short one should be: the file is damaged");
    text.push_back(static_cast<char>(get()));
  }
  get();
  if (!text.empty() && text[text.size() - 1] == '\r')
    text.erase(text.size() - 1);
  return text;
}

bool text_file::more() {
  int c = peek();
  for (; c == ' ' || c == '\t' || c == '\r'; c = peek())
    get();
  return c != end && c != '\n';
}

size_t text_file::word() {
  more();
  size_t n = 0;
  for (int c = peek(); c != end && c != '\n' && c != ' ' && c != '\t' && c != '\r'; c = peek()) {
    if (n + 1 == sizeof word_)
      fail("a word of over 63 bytes where a number should be: the file is damaged");
    word_[n++] = static_cast<char>(get());
  }
  word_[n] = 0;
  return n;
}

float text_file::number() {
  const size_t n = word();
  char *stop = nullptr;
  const float x = std::strtof(word_, &stop);
  if (n == 0 || stop != word_ + n)
    fail("'" + std::string(word_) + "' is no number: the file is damaged");
  return x;
}

std::string text_file::place() const {
  return name_ + ", line " + std::to_string(line_) + ", byte " + std::to_string(offset()) + ": ";
}

void text_file::fail(const std::string &reason) const {
  throw std::runtime_error(place() + reason);
}

} // namespace dynet
