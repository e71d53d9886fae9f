// text_file reads a text piece by piece and knows where it is, for errors. Whatever the file holds,
// memory is taken only for what was read of it.
#ifndef DYNET_TEXT_FILE_H
#define DYNET_TEXT_FILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace dynet {

class text_file {
public:
  // Ordinary files only: a folder, a pipe or a device is a std::runtime_error at once.
  explicit text_file(const std::string &name);
  ~text_file();

  static const int end = -1;
  // The next character, without and with going on; end: there is none.
  int peek() { return at_ < count_ || fill() ? static_cast<unsigned char>(block_[at_]) : end; }
  int get();
  // A line without its end. One of more than 64 KiB, or without an end, fails.
  std::string line();
  // The next word of the line, a number. Numbers are read as vpps::c_numbers has them.
  float number();
  // Whether the line has another word; goes to where it begins.
  bool more();
  // Bytes that are not read yet.
  uint64_t left() const { return size_ > offset() ? size_ - offset() : 0; }
  // "file, line 3, byte 120: "
  std::string place() const;
  // A std::runtime_error that begins with the place.
  [[noreturn]] void fail(const std::string &reason) const;

private:
  text_file(const text_file &);
  text_file &operator=(const text_file &);
  bool fill();
  size_t word(); // into word_; its length, at most 63
  uint64_t offset() const { return before_ + at_; }

  std::string name_;
  int fd_;
  uint64_t size_, before_, line_; // before_: bytes before the block
  std::vector<char> block_;
  size_t at_, count_;
  char word_[64];
};

} // namespace dynet
#endif
