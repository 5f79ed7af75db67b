#include "transform/fuse.h"

#include <algorithm>

#include "transform/fusing.h"

namespace thimble {

Fused fuse(Graph& graph, std::span<const ValueId> read) {
  Fused fused;
  Fusing fusing(graph, read);
  const size_t written = graph.nodes.size();
  for (size_t n = 0; n < written; ++n) {
    const NodeId node = make_id<NodeId>(n);
    fusing.stand_at(node);
    for (const PatternDef* pattern : all_patterns()) {
      if (!fusing.is_alive(node)) break;
      if (std::ranges::find(pattern->roots, graph[node].op->name) == pattern->roots.end()) continue;
      if (pattern->fuse(fusing, node)) ++fused.counts[pattern->name];
    }
  }
  if (!fused.counts.empty()) fused.now = fusing.finish();
  return fused;
}

}  // namespace thimble
