#include "plan/schedule/recursive_segments.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {

RecursiveSegments::RecursiveSegments(const ForwardPass& pass, const std::vector<Block>& blocks,
                                     size_t segments, size_t fanout)
    : blocks_(blocks),
      fanout_(fanout),
      block_of_(pass.size()),
      made_in_(pass.graph.values.size(), -1),
      stamp_(pass.graph.values.size(), 0),
      starts_(pass.graph.values.size(), false) {
  internal_check(fanout >= 1, "a run is cut at one place at least");
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (int p = blocks[b].begin; p < blocks[b].end; ++p) block_of_[static_cast<size_t>(p)] = b;
  }
  for (size_t v = 0; v < made_in_.size(); ++v) {
    if (!pass.is_forward[v]) continue;
    const int at = pass.made_at(make_id<ValueId>(v));
    made_in_[v] = static_cast<int>(block_of_[static_cast<size_t>(at)]);
  }
  size_t last_start = 0;
  for (size_t s = 1; s < segments; ++s) {
    last_start = blocks.size() * s / segments;
    for (const ValueId value : blocks[last_start].enters) starts_[value.at()] = true;
  }
  split(last_start, blocks.size());
}

void RecursiveSegments::replayed(const std::vector<int>& positions, NodeId) {
  split(block_of_[static_cast<size_t>(positions.front())],
        block_of_[static_cast<size_t>(positions.back())] + 1);
}

// Marks what stays of a run over blocks [begin, end): what enters the parts it is cut into, and
// everything in the last block, whose backward pass comes next.
void RecursiveSegments::split(size_t begin, size_t end) {
  ++now_;
  while (end - begin > 1) {
    const size_t length = end - begin;
    const size_t parts = std::min(fanout_ + 1, length);
    const size_t first = begin;
    for (size_t part = 1; part < parts; ++part) {
      begin = first + (length * part + parts - 1) / parts;
      for (const ValueId value : blocks_[begin].enters) stamp_[value.at()] = now_;
    }
  }
  leaf_ = static_cast<int>(begin);
}

bool RecursiveSegments::stays(ValueId value) const {
  return made_in_[value.at()] == leaf_ || stamp_[value.at()] == now_ || starts_[value.at()];
}

}  // namespace thimble
