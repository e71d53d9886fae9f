// Word vectors in text files; orthonormal_random.
#include "dynet/pretrain.h"

#include <cstdlib>
#include <fstream>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "dynet/saxe-init.h"
#include "print.h"
#include "vpps/c_numbers.hpp"

namespace dynet {

namespace {
[[noreturn]] void not_read(const std::string &file, unsigned line, const std::string &reason) {
  throw std::runtime_error(file + ", line " + std::to_string(line) + ": " + reason);
}
} // namespace

void save_pretrained_embeddings(const std::string &fname, const Dict &d,
                                const LookupParameter &lp) {
  const LookupParameterStorage &table = *lp.p.unexposed();
  const unsigned rows = table.all_dim[table.all_dim.nd - 1], size = table.dim.size();
  if (d.size() > rows)
    throw std::invalid_argument("save_pretrained_embeddings: " + std::to_string(d.size()) +
                                " words, but the table has " + std::to_string(rows) + " rows");
  std::ofstream out(fname.c_str());
  out.imbue(std::locale::classic());
  const std::vector<float> values = table.read(VPPS_VALUES);
  for (unsigned i = 0; out && i < d.size(); ++i) {
    out << d.convert(static_cast<int>(i)) << ' ';
    print_matrix(out, values.data() + static_cast<size_t>(i) * size, 1, size);
    out << '\n';
  }
  if (!out.flush())
    throw std::invalid_argument("save_pretrained_embeddings: cannot write " + fname);
}

void read_pretrained_embeddings(const std::string &fname, Dict &d,
                                std::unordered_map<int, std::vector<float>> &vectors) {
  const vpps::c_numbers in_c;
  std::ifstream in(fname.c_str());
  if (!in)
    throw std::invalid_argument("read_pretrained_embeddings: cannot read " + fname);
  const int unknown = d.is_frozen() ? d.get_unk_id() : -1;
  size_t size = 0;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string word, text;
    words >> word;
    std::vector<float> v;
    while (words >> text) {
      char *end = nullptr;
      v.push_back(std::strtof(text.c_str(), &end));
      if (*end != 0)
        not_read(fname, number, "'" + text + "' is no number");
    }
    if (number == 1)
      size = v.size();
    if (word.empty() || v.size() != size)
      not_read(fname, number,
               "needs a word and as many numbers as line 1 has, " + std::to_string(size));
    if (d.is_frozen() && unknown < 0 && !d.contains(word))
      continue;
    const int id = d.convert(word);
    if (id != unknown)
      vectors[id] = v;
  }
}

void orthonormal_random(unsigned dim, float g, Tensor &x) {
  if (x.d.rows() != dim)
    throw std::runtime_error("orthonormal_random: a matrix of " + std::to_string(x.d.rows()) +
                             " rows, not " + std::to_string(dim));
  TensorTools::randomize_orthonormal(x, g);
}

} // namespace dynet
