// The gain of each technique in a selected plan.
#include <algorithm>

#include "base/attempt.h"
#include "select/technique_selector.h"

namespace thimble {

// The gains of a candidate's changes and of its recomputation, one after the other.
std::vector<TechniqueGain> TechniqueSelector::gains_of(StepOption& chosen, const PlanPoint& plan) {
  std::vector<TechniqueGain> gains;
  const std::vector<Change>& changes = chosen.candidate().changes;
  PlanPoint before = requested().without_recompute();
  const auto add = [&](TechniqueGain share, const PlanPoint& after) {
    share.saved = before.arena - after.arena;
    share.ms_paid = (after.seconds - before.seconds) * 1e3;
    before = after;
    gains.push_back(std::move(share));
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    TechniqueGain share = {.what = change.what,
                           .flags = flags_of(change.settings),
                           .tier = std::string(name_of(change.tier))};
    if (i + 1 == changes.size()) {
      add(std::move(share), chosen.without_recompute());
      break;
    }
    const auto so_far = changes.begin() + static_cast<ptrdiff_t>(i) + 1;
    const auto candidate = with_changes(requested_, {changes.begin(), so_far});
    const auto after =
        candidate
            ? if_allowed([&] { return StepOption(*candidate, *machine_).without_recompute(); })
            : std::nullopt;
    add(std::move(share), after.value_or(before));  // one may go only with what follows
  }
  if (plan.arena != before.arena || plan.seconds != before.seconds) {
    const std::string flags = "--planner " + chosen.candidate().recipe.planner;
    add({.what = "recomputation", .flags = flags, .tier = "exact"}, plan);
  }
  return gains;
}

}  // namespace thimble
