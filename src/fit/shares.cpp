// What each technique of a choice brings.
#include <algorithm>

#include "base/error.h"
#include "fit/fit.h"

namespace thimble {

std::vector<TechniqueShare> shares_of(const Recipe& typed, const FitSearch::Pick& pick,
                                      const FitStep& plain, Backend& backend) {
  std::vector<TechniqueShare> shares;
  const std::vector<Change>& changes = pick.step->candidate().changes;
  FitStep::Pick before = plain.once();
  const auto add = [&](TechniqueShare share, const FitStep::Pick& after) {
    share.saved = before.arena - after.arena;
    share.ms_paid = (after.seconds - before.seconds) * 1e3;
    before = after;
    shares.push_back(std::move(share));
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    TechniqueShare share = {.what = change.what,
                            .flags = flags_of(change.settings),
                            .tier = std::string(name_of(change.tier))};
    if (i + 1 == changes.size()) {
      add(std::move(share), pick.step->once());
      break;
    }
    try {
      const std::vector<Change> so_far(changes.begin(),
                                       changes.begin() + static_cast<ptrdiff_t>(i) + 1);
      const FitStep step(changed(typed, so_far), backend, plain.costs().share);
      add(std::move(share), step.once());
    } catch (const UserError&) {  // goes only with what follows
      add(std::move(share), before);
    }
  }
  if (pick.arena != before.arena || pick.seconds != before.seconds) {
    const std::string flags = "--planner " + pick.step->candidate().recipe.planner;
    add({.what = "recomputation", .flags = flags, .tier = "exact"}, pick);
  }
  return shares;
}

}  // namespace thimble
