// Dict and the reading of sentences.
#include "dynet/dict.h"

#include <locale>
#include <sstream>
#include <stdexcept>

namespace dynet {

int Dict::convert(const std::string &word) {
  auto it = d_.find(word);
  if (it != d_.end())
    return it->second;
  if (frozen) {
    if (map_unk)
      return unk_id;
    throw std::runtime_error("Unknown word encountered in frozen dictionary: " + word);
  }
  int id = static_cast<int>(words_.size());
  words_.push_back(word);
  d_[word] = id;
  return id;
}

const std::string &Dict::convert(const int &id) const {
  if (id < 0 || id >= static_cast<int>(words_.size()))
    throw std::invalid_argument("Dict: no word has the number " + std::to_string(id) +
                                ", there are " + std::to_string(words_.size()));
  return words_[static_cast<size_t>(id)];
}

void Dict::set_unk(const std::string &word) {
  if (!frozen)
    throw std::runtime_error("Dict::set_unk: call freeze() first");
  if (map_unk)
    throw std::runtime_error("Dict::set_unk: the unknown word is set already");
  // The unknown word itself may be new.
  frozen = false;
  unk_id = convert(word);
  frozen = true;
  map_unk = true;
}

void Dict::clear() {
  words_.clear();
  d_.clear();
}

std::vector<int> read_sentence(const std::string &line, Dict &sd) {
  std::istringstream in(line);
  in.imbue(std::locale::classic());
  std::vector<int> ids;
  for (std::string word; in >> word;)
    ids.push_back(sd.convert(word));
  return ids;
}

void read_sentence_pair(const std::string &line, std::vector<int> &s, Dict &sd, std::vector<int> &t,
                        Dict &td) {
  std::istringstream in(line);
  in.imbue(std::locale::classic());
  bool target = false;
  for (std::string word; in >> word;) {
    if (word == "|||" && !target)
      target = true;
    else if (target)
      t.push_back(td.convert(word));
    else
      s.push_back(sd.convert(word));
  }
}

} // namespace dynet
