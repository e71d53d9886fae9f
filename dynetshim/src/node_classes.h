// Objects of the classes of nodes.
#ifndef DYNETSHIM_NODE_CLASSES_H
#define DYNETSHIM_NODE_CLASSES_H

#include <cstdint>
#include <memory>

#include "dynet/nodes.h"

namespace dynet {

// A node of the class that DyNet has for an operation; plainly RecordedNode where it has none.
std::unique_ptr<RecordedNode> make_node(uint32_t op);

} // namespace dynet
#endif
