// The applications' tree reader: what it reads is the tree on the line, or an error with file,
// line, reason and cure.
#include "../../cpp_examples/trees.h"

#include <cstdio>
#include <unistd.h>

static int failures = 0;

static void check(bool ok, const char *what, const std::string &line) {
  if (!ok)
    std::fprintf(stderr, "%s: %s\n", line.c_str(), what), failures++;
}

static std::string error_of(const std::string &path) {
  try {
    read_trees(path);
  } catch (const std::runtime_error &e) {
    return e.what();
  }
  return "";
}

int main() {
  const char *sound[] = {"(3 word)", "(3 (2 very) (4 good))", "(3 (2 (1 a) (0 b)) (4 good))"};
  const size_t nodes[] = {1, 3, 5};
  for (size_t k = 0; k < 3; k++)
    check(parse_tree(sound[k]).nodes.size() == nodes[k], "other nodes", sound[k]);

  const char *bad[] = {"(3 (2 word))",
                       "(3 (3 (2 a) (2 b)))",
                       "(3 (2 a) (1 (2 b)))",
                       "(2 the (3 x))",
                       "(3 (2 x) the)",
                       "(3 a b)",
                       "(3 (2 a) (2 b) (2 c))",
                       "(3)",
                       "(3 (2 a)",
                       "(9 word)",
                       "word"};
  const std::string path = "/tmp/tree_reader." + std::to_string(getpid()) + ".txt";
  for (const char *line : bad) {
    std::ofstream(path.c_str()) << sound[1] << "\n" << line << "\n";
    const std::string e = error_of(path);
    check(e.find(path + ":2: ") == 0, ("error: " + e).c_str(), line);
    check(e.find(": write (label (label word) (label word))") != std::string::npos, "no cure",
          line);
  }
  std::ofstream(path.c_str()) << bad[0] << "\n";
  check(error_of(path).find("one child") != std::string::npos, "no reason", bad[0]);
  std::remove(path.c_str());
  return failures > 0;
}
