// The KV cache of a graph that continues rows: keys and values of every layer, kept from step to step,
// and the inputs that say where rows go on. Layers writes them by these names.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace thimble {

inline constexpr std::string_view kFirstPosition = "first_position";
inline constexpr std::string_view kPositions = "positions";
inline constexpr std::string_view kCachedKeys = "cache.keys", kCachedValues = "cache.values";

struct CachedGraph {
  ValueId first_position;  // i32 [rows]: tokens that are cached before these; invalid: no cache
  ValueId positions;       // i32 [rows x length]: of each token; invalid: not read
  Bytes bytes;             // of keys and values
};

inline CachedGraph find_kv_cache(const Graph& graph) {
  CachedGraph found = {graph.find(kFirstPosition), graph.find(kPositions), {}};
  for (const Value& value : graph.values) {
    const bool kept = !value.producer.valid() && value.role == Role::optimizer_state;
    const bool cached = value.name.ends_with(kCachedKeys) || value.name.ends_with(kCachedValues);
    if (kept && cached) found.bytes += value.type.bytes();
  }
  return found;
}

}  // namespace thimble
