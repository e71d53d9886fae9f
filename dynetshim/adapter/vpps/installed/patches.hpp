// Input words that the program may change between calls: where they come from, and how they are
// read anew. Both front-ends include this.
#ifndef VPPS_INSTALLED_PATCHES_HPP
#define VPPS_INSTALLED_PATCHES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace vpps {
namespace installed {

struct patch {
  enum kind { one_float, floats, one_index, indices };
  const void *from;
  uint32_t kind, node, at, count;
};

// Reads what the pointers of nodes first..last point to. Patches are in order of their nodes; most
// graphs have none.
template <class Patches, class Words>
void read_patches(const Patches &patches, Words &inputs, uint32_t first, uint32_t last) {
  for (size_t k = patches.size(); k-- > 0 && patches[k].node >= first;) {
    const patch &p = patches[k];
    if (p.node > last)
      continue;
    const void *from = p.from;
    size_t size = p.count;
    if (p.kind == patch::floats) {
      const std::vector<float> &v = *static_cast<const std::vector<float> *>(p.from);
      from = v.data();
      size = v.size() < p.count ? v.size() : p.count; // longer ones are cut, as in DyNet
    } else if (p.kind == patch::indices) {
      const std::vector<unsigned> &v = *static_cast<const std::vector<unsigned> *>(p.from);
      from = v.data();
      size = v.size();
    }
    if (size != p.count)
      throw std::invalid_argument("node " + std::to_string(p.node) + " points to a vector of " +
                                  std::to_string(size) + " values where it needs " +
                                  std::to_string(p.count) + ": keep the vector's size");
    std::memcpy(inputs.data() + p.at, from, size * sizeof(uint32_t));
  }
}

} // namespace installed
} // namespace vpps
#endif
