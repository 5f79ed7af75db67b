// The answer if nothing fits a budget: why, and what would fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/step.h"

namespace thimble {

// The smallest plan of a tier.
struct TierFloor {
  NumericsTier tier = NumericsTier::exact;
  Bytes least;
  std::string flags;  // the flags that give it, without --memory
};

struct Refusal {
  // The smallest plan, and its largest tensors. Where it was not searched for: bytes that would do,
  // and why less would not.
  Infeasible least;
  std::string sentence;  // why there is no plan, and what to change
  // The highest tier of the candidates, where techniques were chosen.
  std::optional<NumericsTier> allow = {};
  Bytes bound;           // lower bound on all plans of all candidates
  bool proved = false;   // the budget is below the bound
  bool searched = true;  // for the smallest plan: where the bound proves it, only what is quick
  std::vector<TierFloor> floors = {};    // of tiers that were searched
  std::vector<std::string> unlock = {};  // flags that would allow smaller plans
};

// For a recipe that was planned as typed.
Refusal refusal_of(const Recipe& recipe, Infeasible infeasible);

// Of a large step, a budget below its weights and optimizer state alone: no technique of the tier
// makes these smaller, so none is built. None: the budget has room for them, the step is small, or
// the tier is approximate.
std::optional<Refusal> refused_by_weights(const Step& requested, NumericsTier allow, Bytes budget);

// The sentence of a proved refusal without a search.
std::string proved_sentence(const Refusal& refusal, Bytes budget);
// That a tier which was not searched may have smaller plans.
std::string may_go_further(NumericsTier tier);
// Settings that would allow smaller plans, beside tiers.
void add_unlocks(Refusal& refusal, const Recipe& recipe, const Graph& graph);

}  // namespace thimble
