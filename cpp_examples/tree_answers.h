// Answers about trees as text. A label's colour goes from red, negative, to green, positive.
#ifndef VPPS_EXAMPLES_TREE_ANSWERS_H
#define VPPS_EXAMPLES_TREE_ANSWERS_H

#include <string>
#include <vector>

#include "terminal.h"
#include "trees.h"

inline std::string in_label_colour(const std::string &text, unsigned label) {
  static const char *const colours[tree_labels] = {"1;31", "31", "", "32", "1;32"};
  return painted(text, colours[label]);
}

inline std::string words_below(const tree &t, int n) {
  const tree_node &node = t.nodes[size_t(n)];
  return node.is_word() ? node.word : words_below(t, node.left) + " " + words_below(t, node.right);
}

// In the treebank's format.
inline std::string bracketed(const tree &t, const std::vector<unsigned> &labels, int n) {
  const tree_node &node = t.nodes[size_t(n)];
  const unsigned label = labels[size_t(n)];
  const std::string inside =
      node.is_word() ? in_label_colour(node.word, label)
                     : bracketed(t, labels, node.left) + " " + bracketed(t, labels, node.right);
  return "(" + in_label_colour(std::to_string(label), label) + " " + inside + ")";
}

// A line for each node, indented by its depth.
inline std::string drawn(const tree_corpus &data, const tree &t,
                         const std::vector<unsigned> &labels, int n, size_t depth = 0) {
  const tree_node &node = t.nodes[size_t(n)];
  const unsigned label = labels[size_t(n)];
  std::string text = std::string(2 * depth, ' ') +
                     in_label_colour(std::to_string(label) + " " + words_below(t, n), label);
  if (node.is_word())
    return text + (int(node.word_id) == data.words.get_unk_id() ? " (unknown)" : "");
  for (int child : {node.left, node.right})
    text += "\n" + drawn(data, t, labels, child, depth + 1);
  return text;
}

// labels: of every node, or of the sentence alone. To look at, or on one line.
inline std::string text_of_answers(const tree_corpus &data, const tree &t,
                                   const std::vector<unsigned> &labels, bool to_look_at) {
  const int root = int(t.nodes.size()) - 1;
  if (labels.size() < t.nodes.size())
    return "(" + std::to_string(labels[0]) + " " +
           in_label_colour(words_below(t, root), labels[0]) + ")";
  return to_look_at ? drawn(data, t, labels, root) : bracketed(t, labels, root);
}

inline std::string what_to_type(const tree_corpus &) {
  return "a tree, ((the film) (is (not dull))), or words alone, which become a tree that branches "
         "to\nthe right. Labels: 0 very negative, 1 negative, 2 neutral, 3 positive, 4 very "
         "positive.";
}

#endif
