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

// A tree by its nodes: children's order and words.
static std::string text_of(const tree &t, int n) {
  const tree_node &node = t.nodes[size_t(n)];
  return node.is_word() ? node.word
                        : "(" + text_of(t, node.left) + " " + text_of(t, node.right) + ")";
}
static std::string text_of(const tree &t) {
  return std::to_string(t.root().label) + text_of(t, int(t.nodes.size()) - 1);
}

int main() {
  const char *sound[] = {"(3 word)", "(3 (2 very) (4 good))", "(3 (2 (1 a) (0 b)) (4 good))"};
  const size_t nodes[] = {1, 3, 5};
  for (size_t k = 0; k < 3; k++)
    check(parse_tree(sound[k]).nodes.size() == nodes[k], "other nodes", sound[k]);

  const struct {
    const char *typed, *same;
  } lines[] = {{"((very good) film)", "(2 (2 (2 very) (2 good)) (2 film))"},
               {"  (3 (2 very) (4 good))", "(3 (2 very) (4 good))"},
               {"not very good\r", "(0 (0 not) (0 (0 very) (0 good)))"},
               {"good", "(0 good)"}};
  for (const auto &l : lines)
    check(text_of(parse_line(l.typed)) == text_of(parse_tree(l.same)), "another tree", l.typed);

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
