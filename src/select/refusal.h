// The answer if nothing fits a budget: why, and what would fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace thimble {

// The smallest plan of a tier.
struct TierFloor {
  NumericsTier tier = NumericsTier::exact;
  Bytes least;
  std::string flags;  // the flags that give it, without --memory
};

struct Refusal {
  Infeasible least;      // the smallest plan, and its largest tensors
  std::string sentence;  // why there is no plan, and what to change
  // The highest tier of the candidates, where techniques were chosen.
  std::optional<NumericsTier> allow = {};
  Bytes bound;          // lower bound on all plans of all candidates
  bool proved = false;  // the budget is below the bound
  std::vector<TierFloor> floors = {};
  std::vector<std::string> unlock = {};  // flags that would allow smaller plans
};

// For a recipe that was planned as typed.
Refusal refusal_of(const Recipe& recipe, Infeasible infeasible);

}  // namespace thimble
