// A file that is saved holds its old version or its new one, whatever happens meanwhile: the saving
// process is killed, the disk is full, two save at once.
#include "check.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>

#include <sys/resource.h>
#include <sys/wait.h>

#include "dynet/dynet.h"
#include "dynet/io.h"
#include "dynet/param-init.h"
#include "vpps/atomic_file.hpp"

using namespace dynet;

namespace {

std::string self; // this program's file

// A folder of the test's own.
struct folder {
  std::string name;
  folder() {
    const char *dir = std::getenv("TMPDIR");
    std::string pattern = std::string(dir ? dir : "/tmp") + "/saved_files_XXXXXX";
    name = mkdtemp(&pattern[0]);
  }
  ~folder() {
    if (std::system(("rm -r " + name).c_str()) != 0)
      std::perror("rm");
  }
  std::string operator/(const std::string &file) const { return name + "/" + file; }
};

std::string contents(const std::string &file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

bool exists(const std::string &file) { return access(file.c_str(), F_OK) == 0; }

// A version of a file: so many lines of one letter, many pages.
std::string version(int k) { return std::string(300000, char('a' + k % 26)) + "\n"; }
bool whole(const std::string &text) {
  return text.size() == version(0).size() && text == version(text[0] - 'a');
}

void write(const std::string &file, const std::string &text) {
  vpps::atomic_file out(file);
  out.write(text);
  out.commit();
}

// How a child ended that does something; it uses nothing of libvpps.so.
int in_child(const std::function<void()> &what) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      what();
    } catch (const std::exception &) {
      _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const unsigned rows = 20000;

// A model whose values are all k.
struct model {
  ParameterCollection m;
  Parameter p = m.add_parameters({rows}, ParameterInitConst(0));
  LookupParameter e = m.add_lookup_parameters(rows, {2}, ParameterInitConst(0));
  void set(float k) {
    p.set_value(std::vector<float>(rows, k));
    e.p->write(VPPS_VALUES, 0, std::vector<float>(2 * rows, k).data(), 2 * rows);
  }
  // All values, which must be equal.
  float get() {
    std::vector<float> v = p.p->read(VPPS_VALUES), t = e.p->read(VPPS_VALUES);
    v.insert(v.end(), t.begin(), t.end());
    for (float x : v)
      EQUAL(x, v[0]);
    return v[0];
  }
};

// What the killed program does: it saves one version after the other.
[[noreturn]] void save_for_ever(const std::string &file) {
  model x;
  for (float k = 1;; ++k) {
    x.set(k);
    TextFileSaver(file).save(x.m);
  }
}

} // namespace

TEST(a_killed_writer_leaves_the_old_file_or_the_new_one) {
  const folder f;
  const std::string file = f / "data";
  std::mt19937 random(1);
  std::string last;
  int changed = 0, unfinished = 0;
  write(file, version(0));
  int kills = 0;
  for (; kills < 100 || (kills < 1000 && (changed < 10 || unfinished < 10)); ++kills) {
    const pid_t child = fork();
    if (child == 0)
      for (int k = kills;; ++k)
        write(file, version(k));
    usleep(random() % 8000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string now = contents(file);
    CHECK(whole(now));
    changed += now != last;
    unfinished += exists(file + ".tmp");
    last = now;
  }
  CHECK(changed >= 10 && unfinished >= 10); // the kills came in the middle of saving
  write(file, version(1));
  CHECK(contents(file) == version(1) && !exists(file + ".tmp"));
}

TEST(a_killed_program_leaves_a_model_that_loads) {
  const folder f;
  const std::string file = f / "model";
  model x;
  TextFileSaver(file).save(x.m);
  std::mt19937 random(2);
  int saved = 0;
  for (int k = 0; k < 8 || (saved == 0 && k < 200); ++k) {
    const pid_t child = fork();
    if (child == 0) {
      freopen("/dev/null", "w", stderr);
      execl(self.c_str(), self.c_str(), "--save", file.c_str(), nullptr);
      _exit(1);
    }
    for (int wait = 0; wait < 5000 && !exists(file + ".tmp"); ++wait)
      usleep(1000); // until it saves
    usleep(random() % 60000);
    CHECK(kill(child, SIGKILL) == 0);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    TextFileLoader(file).populate(x.m);
    saved += x.get() > 0;
  }
  CHECK(saved > 0);
}

TEST(a_full_disk_is_an_error_and_the_old_file_stays) {
  const folder f;
  const std::string file = f / "model";
  model x;
  x.set(1);
  TextFileSaver(file).save(x.m);
  const std::string before = contents(file);
  x.set(2);
  // As if 100 kB were left.
  struct rlimit all, few = {100000, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &all);
  few.rlim_max = all.rlim_max;
  struct sigaction ignored = {}, old;
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignored, &old);
  setrlimit(RLIMIT_FSIZE, &few);
  std::string text;
  try {
    TextFileSaver(file).save(x.m);
  } catch (const std::runtime_error &e) {
    text = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &all);
  sigaction(SIGXFSZ, &old, nullptr);
  CHECK(text.find(file) != std::string::npos && text.find("File too large") != std::string::npos);
  CHECK(contents(file) == before);
  CHECK(!exists(file + ".tmp"));
  TextFileSaver(file).save(x.m);
  TextFileLoader(file).populate(x.m);
  EQUAL(x.get(), 2.f);
}

TEST(a_device_that_is_full_is_an_error) {
  const folder f;
  CHECK(symlink("/dev/full", (f / "link").c_str()) == 0);
  model x;
  THROWS(std::runtime_error, "No space left", TextFileSaver(f / "link").save(x.m));
  CHECK(!exists("/dev/full.tmp"));
}

TEST(a_file_that_cannot_be_written_is_an_error_before_anything_is_saved) {
  const folder f;
  THROWS(std::runtime_error, "nowhere/x", vpps::atomic_file::check("/nowhere/x"));
  THROWS(std::runtime_error, "it is a folder", TextFileSaver saver(f.name));
  write(f / "file", "text");
  THROWS(std::runtime_error, "Not a directory", TextFileSaver saver(f / "file/model"));
  CHECK(mkfifo((f / "pipe").c_str(), 0600) == 0);
  THROWS(std::runtime_error, "pipe", TextFileSaver saver(f / "pipe")); // nobody reads it
  vpps::atomic_file::check(f / "file");
  EQUAL(contents(f / "file"), "text");
  if (geteuid() != 0) {
    chmod((f / "file").c_str(), 0400);
    THROWS(std::runtime_error, "Permission denied", TextFileSaver saver(f / "file"));
  }
}

TEST(a_link_and_the_permissions_stay) {
  const folder f;
  write(f / "real", "old");
  chmod((f / "real").c_str(), 0640);
  CHECK(symlink("real", (f / "link").c_str()) == 0);
  write(f / "link", "new");
  EQUAL(contents(f / "real"), "new");
  struct stat s;
  CHECK(lstat((f / "link").c_str(), &s) == 0 && S_ISLNK(s.st_mode));
  CHECK(stat((f / "real").c_str(), &s) == 0 && (s.st_mode & 07777) == 0640);
  CHECK(symlink("later", (f / "dangling").c_str()) == 0);
  write(f / "dangling", "made");
  EQUAL(contents(f / "later"), "made");
}

TEST(only_one_writes_at_a_time) {
  const folder f;
  const std::string file = f / "data";
  vpps::atomic_file mine(file);
  mine.write("mine");
  EQUAL(in_child([&] { write(file, "its"); }), 7);
  THROWS(std::runtime_error, "another writer", vpps::atomic_file second(file));
  mine.commit();
  EQUAL(contents(file), "mine");
  EQUAL(in_child([&] { write(file, "its"); }), 0);
  EQUAL(contents(file), "its");
}

TEST(parameters_without_elements_are_saved) {
  folder dir;
  const std::string file = dir / "model";
  const auto make = [](ParameterCollection &m, float value) {
    m.add_parameters({0, 3});
    m.add_parameters({3, 0});
    m.add_lookup_parameters(0, {1});
    return m.add_parameters({2}, ParameterInitConst(value));
  };
  ParameterCollection one, other;
  make(one, 1);
  Parameter loaded = make(other, 2);
  TextFileSaver(file).save(one);
  CHECK(contents(file) ==
        "#Parameter# /_0 {0,3} 1 ZERO_GRAD\n\n#Parameter# /_1 {3,0} 1 ZERO_GRAD\n\n"
        "#Parameter# /_3 {2} 33 ZERO_GRAD\n+1.00000000e+00 +1.00000000e+00 \n"
        "#LookupParameter# /_2 {1,0} 1 ZERO_GRAD\n\n");
  TextFileLoader(file).populate(other);
  CHECK(as_vector(*loaded.values()) == std::vector<float>(2, 1));
}

TEST(a_saver_keeps_what_it_has_saved) {
  const folder f;
  const std::string file = f / "model";
  ParameterCollection m, fresh;
  Parameter a = m.add_parameters({2}, ParameterInitConst(1), "a");
  Parameter b = m.add_parameters({2}, ParameterInitConst(2), "b");
  write(file, "what was there\n");
  {
    TextFileSaver saver(file);
    EQUAL(contents(file), "what was there\n");
    saver.save(a);
    saver.save(b);
    EQUAL(TextFileLoader(file).load_param(fresh, "/b").p->read(VPPS_VALUES)[0], 2.f);
  }
  const std::string both = contents(file);
  EQUAL(both.find("/a"), 12u);
  { TextFileSaver(file, true).save(a, "/c"); }
  CHECK(contents(file).compare(0, both.size(), both) == 0);
  EQUAL(TextFileLoader(file).load_param(fresh, "/c").p->read(VPPS_VALUES)[1], 1.f);
  { TextFileSaver(f / "new", true).save(a); }
  EQUAL(TextFileLoader(f / "new").load_param(fresh, "/a").dim(), "{2}");
}

int main(int argc, char **argv) {
  self = "/proc/self/exe";
  initialize(argc, argv);
  if (argc == 3 && argv[1] == std::string("--save"))
    save_for_ever(argv[2]);
  return tests::run_tests();
}
