// Dict: words and their numbers, in order of first appearance.
#ifndef DYNET_DICT_H
#define DYNET_DICT_H

#include <string>
#include <unordered_map>
#include <vector>

namespace dynet {

class Dict {
public:
  Dict() : frozen(false), map_unk(false), unk_id(-1) {}
  unsigned size() const { return static_cast<unsigned>(words_.size()); }
  bool contains(const std::string &word) const { return d_.count(word) != 0; }
  void freeze() { frozen = true; }
  bool is_frozen() const { return frozen; }
  // The number of a word. A new word is added, or, when frozen, has the number of the
  // unknown word; without one: std::runtime_error.
  int convert(const std::string &word);
  // The word of a number; out of range: std::invalid_argument.
  const std::string &convert(const int &id) const;
  // Names the unknown word, once, after freeze(): std::runtime_error otherwise.
  void set_unk(const std::string &word);
  int get_unk_id() const { return unk_id; }
  const std::vector<std::string> &get_words() const { return words_; }
  void clear(); // forgets the words; stays frozen if it is

private:
  bool frozen, map_unk;
  int unk_id;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int> d_;
};

// Numbers of the words of a line, separated by white space.
std::vector<int> read_sentence(const std::string &line, Dict &sd);
// "source ||| target"
void read_sentence_pair(const std::string &line, std::vector<int> &s, Dict &sd, std::vector<int> &t,
                        Dict &td);

} // namespace dynet
#endif
