// Adapters with the names and layouts of the program that the base comes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "transform/adapt.h"

namespace thimble {

struct NamedAdapter {
  Adapter adapter;
  std::string weight;     // "model.layers.0.self_attn.q_proj.weight"
  std::string module;     // the same without ".weight"
  bool in_first = false;  // the weight is [in,out] there
  bool shared = false;    // the weight is also something else: an embedding
};

// UserError where the graph has none.
std::vector<NamedAdapter> named_adapters(const Graph& graph,
                                         const std::optional<ForeignNames>& foreign);

}  // namespace thimble
