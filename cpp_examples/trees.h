// Reads labelled binary trees in the Stanford Sentiment Treebank's format, one a line:
// (3 (2 the) (3 (2 very) (3 good))). A tree is kept as a list of nodes, children before
// their parents, so that a program walks it with a loop.
#ifndef VPPS_EXAMPLES_TREES_H
#define VPPS_EXAMPLES_TREES_H

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dynet/dict.h>

struct tree_node {
  unsigned label = 0;
  int left = -1, right = -1; // indices of the children, -1 for a word
  std::string word;
  unsigned word_id = 0; // set by number_words
  bool is_word() const { return left < 0; }
};

struct tree {
  std::vector<tree_node> nodes; // the root is the last one
  const tree_node &root() const { return nodes.back(); }
  size_t words() const { return (nodes.size() + 1) / 2; }
};

const unsigned tree_labels = 5;

// Parses one line; throws std::runtime_error without a file's name.
inline tree parse_tree(const std::string &line) {
  tree t;
  std::vector<unsigned> labels;           // of the brackets that are open
  std::vector<std::vector<int>> children; // and what they hold so far
  std::vector<bool> word;                 // and whether that is a word
  size_t at = 0;
  while (at < line.size()) {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\r') {
      at++;
    } else if (c == '(') {
      char *end;
      const unsigned long label = std::strtoul(line.c_str() + at + 1, &end, 10);
      if (end == line.c_str() + at + 1 || label >= tree_labels)
        throw std::runtime_error("a bracket without a label from 0 to 4");
      if (!word.empty() && word.back())
        throw std::runtime_error("a node next to a word");
      labels.push_back(unsigned(label));
      children.push_back(std::vector<int>());
      word.push_back(false);
      at = size_t(end - line.c_str());
    } else if (labels.empty()) {
      throw std::runtime_error("text outside the brackets");
    } else if (c == ')') {
      if (!word.back() && children.back().size() == 1)
        throw std::runtime_error("a node with one child, which has no place in a binary tree: "
                                 "leave the outer bracket out");
      if (children.back().size() == 2) { // a word has made its node already
        tree_node n;
        n.left = children.back()[0];
        n.right = children.back()[1];
        n.label = labels.back();
        t.nodes.push_back(n);
      } else if (!word.back()) {
        throw std::runtime_error("a node with other than two children");
      }
      labels.pop_back();
      children.pop_back();
      word.pop_back();
      if (!children.empty())
        children.back().push_back(int(t.nodes.size()) - 1);
      else if (line.find_first_not_of(" \t\r", at + 1) != std::string::npos)
        throw std::runtime_error("more than one tree on the line");
      at++;
    } else {
      const size_t end = std::min(line.find_first_of(" ()", at), line.size());
      if (!children.back().empty())
        throw std::runtime_error("a word next to another child");
      tree_node n;
      n.word = line.substr(at, end - at);
      n.label = labels.back();
      t.nodes.push_back(n);
      children.back().push_back(int(t.nodes.size()) - 1);
      word.back() = true;
      at = end;
    }
  }
  if (!labels.empty() || t.nodes.empty())
    throw std::runtime_error("a bracket is not closed");
  return t;
}

inline std::vector<tree> read_trees(const std::string &path) {
  std::ifstream in(path.c_str());
  if (!in)
    throw std::runtime_error(path + ": cannot be opened: name a file with one tree a line");
  std::vector<tree> trees;
  std::string line;
  for (size_t number = 1; std::getline(in, line); number++) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    try {
      trees.push_back(parse_tree(line));
    } catch (const std::runtime_error &e) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + e.what() +
                               ": write (label (label word) (label word))");
    }
  }
  if (trees.empty())
    throw std::runtime_error(path + ": holds no trees: name a file with one tree a line");
  return trees;
}

// The dictionary of the words that occur at least min_count times; the others, and those
// never seen, are <unk>.
inline void count_words(const std::vector<tree> &trees, unsigned min_count, dynet::Dict &dict) {
  std::map<std::string, unsigned> counts;
  for (const tree &t : trees)
    for (const tree_node &n : t.nodes)
      if (n.is_word())
        counts[n.word]++;
  for (const auto &c : counts)
    if (c.second >= min_count)
      dict.convert(c.first);
  dict.freeze();
  dict.set_unk("<unk>");
}

inline void number_words(std::vector<tree> &trees, dynet::Dict &dict) {
  for (tree &t : trees)
    for (tree_node &n : t.nodes)
      if (n.is_word())
        n.word_id = unsigned(dict.convert(n.word));
}

// Words alone, as the tree that branches to the right: (a (b (c d))). At least one.
inline tree right_branching(const std::string &line) {
  tree t;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    t.nodes.emplace_back();
    t.nodes.back().word = word;
  }
  for (int left = int(t.nodes.size()) - 2; left >= 0; left--) {
    tree_node n;
    n.left = left;
    n.right = int(t.nodes.size()) - 1; // the last word, then the node before
    t.nodes.push_back(n);
  }
  return t;
}

// A tree without labels, as ((the film) (is good)), in the treebank's format, all of it neutral.
inline std::string with_labels(const std::string &line) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    size_t end = std::min(line.find_first_of(" \t\r()", at), line.size());
    if (end > at)
      text += "(2 " + line.substr(at, end - at) + ")";
    else
      text += line[end++] == '(' ? "(2 " : line.substr(at, 1);
    at = end;
  }
  return text;
}

// A line to be answered: a tree with labels or without, or words alone.
inline tree parse_line(const std::string &line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (line[first] != '(')
    return right_branching(line);
  const bool labels = line.find_first_of("0123456789", first) == first + 1;
  return parse_tree(labels ? line : with_labels(line));
}

// The trees of two files, their words numbered by those that occur twice in the first.
struct tree_corpus {
  typedef tree sentence;
  std::vector<tree> train, dev;
  dynet::Dict words;

  // Without a path, dev stays empty.
  void read(const std::string &train_path, const std::string &dev_path) {
    train = read_trees(train_path);
    count_words(train, 2, words);
    number_words(train, words);
    if (!dev_path.empty())
      read_held_out(dev_path);
  }

  void read_held_out(const std::string &path) {
    dev = read_trees(path);
    number_words(dev, words);
  }

  // A line to be answered.
  tree parse(const std::string &line) {
    std::vector<tree> one = {parse_line(line)};
    number_words(one, words);
    return one[0];
  }

  // What numbers words, by its name in a model's file.
  std::vector<std::pair<const char *, dynet::Dict *>> vocabulary() { return {{"words", &words}}; }
};

#endif
