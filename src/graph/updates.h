// Which output of a node is the next version of which input, at the same bytes. An op lists them
// for the most outputs that it can have, in their order (OpDef::updates); a node with fewer has the
// first of them.
#pragma once

#include <span>

#include "graph/graph.h"

namespace thimble {

inline std::span<const Alias> updates_of(const OpDef& op, size_t outputs) {
  size_t count = 0;
  while (count < op.updates.size() && op.updates[count].output < static_cast<int>(outputs)) ++count;
  return std::span(op.updates).first(count);
}

inline std::span<const Alias> updates_of(const Node& node) {
  return updates_of(*node.op, node.outputs.size());
}

}  // namespace thimble
