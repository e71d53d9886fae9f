/// \file
/// Dict: words and their numbers, in order of first appearance.
#ifndef DYNET_DICT_H_
#define DYNET_DICT_H_

#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace dynet {

/// A vocabulary: numbers words from 0 on.
class Dict {
public:
  /// An empty vocabulary that takes new words.
  Dict() : frozen(false), map_unk(false), unk_id(-1) {}
  /// How many words there are.
  unsigned size() const { return static_cast<unsigned>(words_.size()); }
  /// Whether the word has a number.
  bool contains(const std::string &word) const { return d_.count(word) != 0; }
  /// From now on no word is added.
  void freeze() { frozen = true; }
  /// Whether freeze() was called.
  bool is_frozen() const { return frozen; }
  /// The number of a word. A new word is added. When frozen, a new word has the number of the
  /// unknown word; without an unknown word: std::runtime_error.
  int convert(const std::string &word);
  /// The word of a number. Out of range: std::invalid_argument.
  const std::string &convert(const int &id) const;
  /// Names the unknown word, once, after freeze(); else std::runtime_error.
  void set_unk(const std::string &word);
  /// The number of the unknown word, -1 if there is none.
  int get_unk_id() const { return unk_id; }
  /// The words, by number.
  const std::vector<std::string> &get_words() const { return words_; }
  /// Forgets the words. A frozen vocabulary stays frozen.
  void clear();

private:
  bool frozen, map_unk;
  int unk_id;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int> d_;
};

/// The numbers of a line's words, which white space separates. Fails as Dict::convert does.
std::vector<int> read_sentence(const std::string &line, Dict &sd);
/// Appends to s and t the numbers of the words of a line "source ||| target". Fails as
/// Dict::convert does.
void read_sentence_pair(const std::string &line, std::vector<int> &s, Dict &sd, std::vector<int> &t,
                        Dict &td);

} // namespace dynet
#endif
