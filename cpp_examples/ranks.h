// Several processes that train one model: mpirun -n 2 treelstm --demo. Each trains its part of
// every batch. A process that no launcher has started is the only rank.
#ifndef VPPS_EXAMPLES_RANKS_H
#define VPPS_EXAMPLES_RANKS_H

#include <dynet/dynet.h>
#include <vpps/vpps.hpp> // libvpps

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#ifdef VPPS_BUNDLED_DYNET
typedef vpps::data_parallel rank_of_all; // libvpps
inline unsigned this_rank() { return vpps::rank(); }
inline unsigned all_ranks() { return vpps::ranks(); }
template <class T> void take_from_rank_0(T &x) { vpps::broadcast(x); }
#else // an installed DyNet trains in one process
struct rank_of_all {
  explicit rank_of_all(dynet::ParameterCollection &) {}
  unsigned rank() const { return 0; }
  unsigned size() const { return 1; }
};
inline unsigned this_rank() { return 0; }
inline unsigned all_ranks() { return 1; }
template <class T> void take_from_rank_0(T &) {}
#endif

// Only rank 0 prints. All say what goes wrong.
inline void print_on_rank_0() {
  if (this_rank() > 0 && !std::freopen("/dev/null", "w", stdout))
    throw std::runtime_error("/dev/null cannot be opened");
}

// This rank's part of the places [first, last): the parts of all ranks make up the whole.
struct part {
  size_t first, last;
  part(size_t first, size_t last, const rank_of_all &r)
      : first(first + (last - first) * r.rank() / r.size()),
        last(first + (last - first) * (r.rank() + 1) / r.size()) {}
};

// The bits of all parameters, in one number.
inline uint64_t checksum(const dynet::ParameterCollection &m) {
  uint64_t sum = 0xcbf29ce484222325; // FNV-1a
  const auto add = [&sum](dynet::Tensor *values) {
    for (float x : dynet::as_vector(*values)) {
      uint32_t word;
      std::memcpy(&word, &x, sizeof word);
      sum = (sum ^ word) * 0x100000001b3;
    }
  };
  for (const auto &p : m.parameters_list())
    add(&p->values);
  for (const auto &p : m.lookup_parameters_list())
    add(&p->all_values);
  return sum;
}

// All ranks have the same parameters after training, to the bit.
inline void compare_ranks(const dynet::ParameterCollection &m) {
  if (all_ranks() == 1)
    return;
  const uint64_t mine = checksum(m);
  uint64_t first = mine;
  take_from_rank_0(first);
  if (first != mine)
    throw std::runtime_error("rank " + std::to_string(this_rank()) + " of " +
                             std::to_string(all_ranks()) + " has other parameters than rank 0");
  std::printf("%u ranks have the same parameters, checksum %016llx\n", all_ranks(),
              static_cast<unsigned long long>(mine));
}

#endif
