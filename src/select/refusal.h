// Why nothing fits a budget, and what would.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace thimble {

// The least that a tier can do with.
struct TierFloor {
  NumericsTier tier = NumericsTier::exact;
  Bytes least;
  std::string flags;  // what it takes for it, beside --memory
};

struct Refusal {
  Infeasible least;      // the smallest plan, and what fills it
  std::string sentence;  // why there is no plan, and what to do about it
  // Where the budget chose: up to that tier.
  std::optional<NumericsTier> allow = {};
  Bytes bound;          // no plan of any candidate is below
  bool proved = false;  // the budget is
  std::vector<TierFloor> floors = {};
  std::vector<std::string> unlock =
      {};  // what would go further down: "--allow approximate: 4.4 MiB"
};

// Of a recipe as typed.
Refusal refusal_of(const Recipe& recipe, Infeasible infeasible);

}  // namespace thimble
