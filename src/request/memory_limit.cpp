#include "request/memory_limit.h"

#include <algorithm>

#include "base/host/available_memory.h"
#include "comm/small_collectives.h"
#include "pipeline/training_graph.h"

namespace thimble {
namespace {

// A budget of a whole number of KiB: what is free differs from run to run anyhow.
MemoryLimit less_margin(const AvailableMemory& available, Bytes beside) {
  constexpr int64_t kStaysFree = 16;
  constexpr int64_t kStep = 1024;
  const Bytes margin = beside + Bytes(available.bytes.count / kStaysFree);
  user_check(available.bytes > margin,
             "--memory auto: {} leaves {}, and {} are kept back for what is not the arena; close "
             "other programs, or say how much with --memory BYTES",
             available.from, to_string(available.bytes), to_string(margin));
  const Bytes budget((available.bytes - margin).count / kStep * kStep);
  return {budget, available.bytes, margin, available.from};
}

}  // namespace

Bytes beside_arena(const Recipe& recipe) {
  const auto shapes = std::ssize(step_shapes(recipe));
  if (shapes == 1) return kBesideArena;
  const Graph graph = make_graph(recipe, largest_shape(recipe)).model.graph;
  return beside_arena(shapes, std::ssize(graph.nodes));
}

MemoryLimit memory_limit(const Backend& backend, const Recipe& recipe, const std::string& root) {
  user_check(
      backend.runs(),
      "--memory auto: the {} device has no memory to go by; say how much with --memory BYTES",
      backend.name());
  if (const auto free = backend.free_memory()) {
    return less_margin({*free, "free memory of the GPU"}, kBesideArenaOnDevice);
  }
  user_check(
      !in_container_without_limit(root),
      "--memory auto: this container has no memory limit, so that what is free is shared with "
      "others outside of it; give it a limit, or say how much with --memory BYTES");
  const auto available = available_memory(root);
  user_check(available.has_value(),
             "--memory auto: the system does not say what is free; say how much with --memory "
             "BYTES");
  return less_margin(*available, beside_arena(recipe));
}

std::optional<MemoryLimit> resolve_budget(Request& request, const Backend& backend, World* world) {
  if (request.recipe.memory != kAutomaticMemory) return std::nullopt;
  MemoryLimit limit = memory_limit(backend, request.recipe);
  if (world != nullptr) {
    if (!backend.has_device_memory()) limit.budget = Bytes(limit.budget.count / world->here());
    const auto all = gathered(world->ranks(), static_cast<double>(limit.budget.count));
    limit.budget = Bytes(static_cast<int64_t>(std::ranges::min(all)));
  }
  request.recipe.memory = limit.budget;
  return limit;
}

}  // namespace thimble
