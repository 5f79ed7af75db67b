#include "survey/ranks.h"

#include "base/attempt.h"
#include "report/memory_terms.h"
#include "select/choose.h"

namespace thimble {

std::vector<RanksPoint> sweep_ranks(const Recipe& recipe, const std::shared_ptr<Machine>& machine) {
  std::vector<RanksPoint> points;
  const auto add = [&](int count, Shard shard) {
    Recipe one = recipe;
    one.ranks = {count, shard};
    if (count == 1) one.interconnect.clear();
    // A batch may not divide, and a technique may not go with parts.
    const auto planned = if_allowed([&] { return plan_training(one, machine); });
    const auto* ready = planned ? std::get_if<PlannedTraining>(&*planned) : nullptr;
    if (ready == nullptr) return;
    const Graph& graph = ready->graph();
    points.push_back({one.ranks, ready->plan().arena, persistent_bytes(graph, Role::weight),
                      persistent_bytes(graph, Role::optimizer_state),
                      ready->plan().predicted_seconds,
                      communication_of(one, graph, ready->plan(), *ready->machine)});
  };
  for (int64_t count = 1; count <= recipe.ranks.count; count *= 2) {
    for (int shard = 0; shard < (count == 1 ? 1 : 4); ++shard) {
      add(static_cast<int>(count), static_cast<Shard>(shard));
    }
  }
  return points;
}

}  // namespace thimble
