#include "weights/named_adapters.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::string_view kWeight = ".weight";

// Whether a node of the forward pass reads the weight otherwise than as a linear map.
bool is_shared(const Graph& graph, ValueId weight) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool maps = ((node.op->maps >> i) & 1u) != 0;
      if (node.inputs[i] == weight && !maps && !node.backward) return true;
    }
    return false;
  });
}

}  // namespace

std::vector<NamedAdapter> named_adapters(const Graph& graph,
                                         const std::optional<ForeignNames>& foreign) {
  std::map<std::string_view, const ForeignTensor*> theirs;
  if (foreign) {
    for (const ForeignTensor& tensor : foreign->tensors) theirs[tensor.own] = &tensor;
  }
  std::vector<NamedAdapter> all;
  for (Adapter& adapter : find_adapters(graph)) {
    const auto known = theirs.find(graph[adapter.weight].name);
    const bool outside = known != theirs.end();
    const bool turned = outside && !known->second->axes.empty();
    NamedAdapter named = {.weight = outside ? known->second->theirs : graph[adapter.weight].name,
                          .in_first = adapter.in_first != turned,
                          .shared = is_shared(graph, adapter.weight)};
    named.module = outside ? named.weight : adapter.module;
    if (named.module.ends_with(kWeight)) {
      named.module.resize(named.module.size() - kWeight.size());
    }
    named.adapter = std::move(adapter);
    all.push_back(std::move(named));
  }
  user_check(!all.empty(), "{} has no adapters; train it with --lora", graph.name);
  return all;
}

}  // namespace thimble
