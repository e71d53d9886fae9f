// Training by several workers: what does not depend on the data's type.
#include "dynet/mp.h"

namespace dynet {
namespace mp {

bool stop_requested = false;

real sum_values(const std::vector<real> &values) {
  double sum = 0;
  for (real x : values)
    sum += static_cast<double>(x);
  return static_cast<real>(sum);
}

real mean(const std::vector<real> &values) {
  if (values.empty())
    throw std::invalid_argument("mean: there are no values");
  return sum_values(values) / static_cast<real>(values.size());
}

std::string elapsed_time_string(const timespec &start, const timespec &end) {
  return std::to_string(end.tv_sec - start.tv_sec) + " seconds and " +
         std::to_string(end.tv_nsec - start.tv_nsec) + "nseconds";
}

namespace inside {

std::vector<unsigned> indices(size_t count) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

void shuffle(std::vector<unsigned> &order) {
  if (rndeng == nullptr)
    throw std::invalid_argument("training before dynet::initialize");
  std::shuffle(order.begin(), order.end(), *rndeng);
}

void needs_workers(unsigned num_children) {
  if (num_children == 0)
    throw std::invalid_argument("training needs one worker or more, not 0");
}

} // namespace inside
} // namespace mp
} // namespace dynet
