/// \file
/// vpps::atomic_file: writes a new version of a file, which replaces the old version as a whole.
/// After a kill, a full disk or a power failure either the old version or the new one is there.
///
///     vpps::atomic_file out("adam.state");
///     out.write(text);
///     out.commit(); // until here the old version is there, from here on the new one
///
/// The new version is written to "adam.state.tmp" in the same folder. If a writer was killed, the
/// next writer takes that file over. A device or a pipe has no versions: it is written at once.
#ifndef VPPS_ATOMIC_FILE_HPP
#define VPPS_ATOMIC_FILE_HPP

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpps {

/// A new version of a file. What cannot be done is a std::runtime_error that names the file and the
/// reason; the old version is still there then.
class atomic_file {
public:
  /// What the new version begins with.
  enum beginning {
    empty,            ///< nothing
    with_old_contents ///< what the old version holds; nothing if there is none
  };

  /// Begins a new version of the file name. Links to files are followed. Fails if the folder is
  /// missing, permission is lacking, or another writer of the same file is at work.
  explicit atomic_file(const std::string &name, beginning b = empty)
      : name_(name), path_(behind_links(name)), temporary_(path_ + ".tmp"), fd_(-1),
        in_place_(false) {
    try {
      open();
      if (b == with_old_contents)
        copy_old();
    } catch (...) {
      discard();
      throw;
    }
  }
  /// Without commit() the new version is dropped and the old one stays.
  ~atomic_file() { discard(); }

  /// Appends text. An error of the disk may come here or from commit().
  void write(const std::string &text) {
    buffer_ += text;
    if (buffer_.size() >= buffered)
      flush();
  }

  /// Says that the new version is complete: stores it (fsync) and replaces the old version. Call it
  /// once, last.
  void commit() {
    flush();
    if (!in_place_) {
      if (fsync(fd_) != 0)
        fail("cannot be stored");
      if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
        fail("cannot be replaced");
    }
    const int fd = fd_;
    fd_ = -1;
    ::close(fd);
    if (!in_place_)
      store_folder();
  }

  /// Throws what a writer of the file name would throw at once: no folder, no permission. Writes
  /// nothing.
  static void check(const std::string &name) { atomic_file probe(name); }

private:
  enum { buffered = 1 << 20 };

  atomic_file(const atomic_file &);
  atomic_file &operator=(const atomic_file &);

  [[noreturn]] void fail(const char *what) const {
    throw std::runtime_error("cannot write " + name_ + ": " + what + ": " +
                             std::generic_category().message(errno));
  }

  static std::string folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
  }

  // The file that a chain of links names, so that links stay.
  static std::string behind_links(std::string path) {
    struct stat s;
    for (int links = 0; links < 40 && lstat(path.c_str(), &s) == 0 && S_ISLNK(s.st_mode); links++) {
      char to[PATH_MAX];
      const ssize_t n = readlink(path.c_str(), to, sizeof to);
      if (n <= 0 || size_t(n) == sizeof to)
        break;
      path = to[0] == '/' ? "" : folder_of(path);
      path.append(to, size_t(n));
    }
    return path;
  }

  void open() {
    struct stat old;
    const bool exists = stat(path_.c_str(), &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
      errno = EISDIR;
      fail("it is a folder");
    }
    if (exists && !S_ISREG(old.st_mode)) {
      open_in_place();
      return;
    }
    if (exists && access(path_.c_str(), W_OK) != 0)
      fail("no permission");
    while (!open_temporary()) {
    }
    if (exists)
      fchmod(fd_, old.st_mode & 07777);
  }

  // A pipe that nobody reads is an error, not a wait.
  void open_in_place() {
    in_place_ = true;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd_ < 0)
      fail("it cannot be opened");
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  }

  // False: another writer was just done with the temporary file. The lock goes with the process,
  // so one that was killed leaves a file that can be taken over.
  bool open_temporary() {
    const int fd =
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0)
      fail(("its folder takes no " + temporary_).c_str());
    struct stat mine, there;
    const bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const bool regular = fstat(fd, &mine) == 0 && S_ISREG(mine.st_mode);
    const bool named = stat(temporary_.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
                       mine.st_ino == there.st_ino;
    if (busy || !regular || !named || ftruncate(fd, 0) != 0) {
      ::close(fd);
      if (!busy && regular && !named)
        return false;
      errno = busy ? EBUSY : EINVAL;
      fail(busy ? "another writer is at work" : (temporary_ + " is no ordinary file").c_str());
    }
    fd_ = fd;
    return true;
  }

  void copy_old() {
    const int from = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (from < 0) {
      if (errno == ENOENT || in_place_)
        return;
      fail("it cannot be read");
    }
    ssize_t n = 0;
    try {
      std::string block(buffered, '\0');
      while ((n = read(from, &block[0], block.size())) > 0)
        put(block.data(), size_t(n));
    } catch (...) {
      ::close(from);
      throw;
    }
    ::close(from);
    if (n < 0)
      fail("it cannot be read");
  }

  void flush() {
    put(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

  void put(const char *text, size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd_, text, size);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        fail("its text cannot be written");
      text += n;
      size -= size_t(n);
    }
  }

  // Some file systems know nothing to store of a folder: they say EINVAL.
  void store_folder() {
    const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int failed = folder < 0 || (fsync(folder) != 0 && errno != EINVAL) ? errno : 0;
    if (folder >= 0)
      ::close(folder);
    errno = failed;
    if (failed && failed != EACCES) // a folder that may be written, but not read
      fail("the new version is there, but may be lost if the machine stops");
  }

  void discard() {
    if (fd_ < 0)
      return;
    if (!in_place_)
      unlink(temporary_.c_str()); // before the lock goes
    ::close(fd_);
    fd_ = -1;
  }

  const std::string name_, path_, temporary_;
  int fd_;
  bool in_place_;
  std::string buffer_;
};

} // namespace vpps
#endif
