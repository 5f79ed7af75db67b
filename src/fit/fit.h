// One budget. Of all recipes that differ from what was asked for in techniques of which nothing was said
// (microbatches, precision, state bits, folding, codecs, sparsity), as far as the tier lets them, the one
// whose fastest plan within the budget is predicted to be the fastest; where it is close (kNearTie), the
// more faithful. What comes of it is a completed recipe and its verified plan: everything after it is as
// if the recipe had been typed with --fit off.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fit/search.h"

namespace thimble {

// What was chosen.
struct FitReport : BudgetChoices {
  Tier allow = Tier::equivalent;
  std::string flags;  // all that was chosen and the budget, to be typed
  double harm = 0;    // less is more faithful: Candidate
  int tried = 0;      // steps that were built
  int planned = 0;    // of which planned in full
  double seconds = 0;
};
struct Fitted {
  PlannedTraining training;
  FitReport report;
};

// The least that a tier can do with.
struct TierFloor {
  Tier tier = Tier::exact;
  Bytes least;
  std::string flags;  // what it takes for it, beside --memory
};

struct DoesNotFit {
  Bytes budget;
  Tier allow = Tier::equivalent;
  Bytes min_bytes;  // with what is allowed
  std::string why;  // what fills the smallest plan
  std::vector<TierFloor> floors;
  std::vector<std::string> unlock;  // what would go further down: "--allow approximate: 4.4 MiB"
};

class Fit {
 public:
  // `said` are the fields that were typed, in whatever way: they stay. The tier is the recipe's where
  // that was said, else equivalent; what was said may go beyond it. UserError where the recipe is none.
  Fit(const Recipe& typed, const Settings& said);
  // Of a recipe that was written by hand: said is what is not usual.
  explicit Fit(const Recipe& typed);

  Tier allow() const { return allow_; }
  // `budget` may be kLeastMemory.
  std::variant<Fitted, DoesNotFit> within(Bytes budget);
  // The choice alone, without a plan of all variants.
  std::optional<FitSearch::Pick> choose(Bytes budget) { return search(allow_).within(budget); }
  // Whether anything fits at all.
  bool has_room(Bytes budget) { return search(allow_).has_room(budget); }
  // The least of a tier, with room for all variants of the step.
  FitSearch::Pick smallest(Tier tier);
  // As typed, everything computed once.
  const FitStep& plain() { return *search(allow_).steps().front(); }
  FitSearch& search(Tier tier);
  Backend& backend() { return *backend_; }
  // From here on, choices go by what is now known of times.
  void forget_times() { searches_ = std::vector<std::unique_ptr<FitSearch>>(3); }

 private:
  DoesNotFit does_not_fit(Bytes budget);

  Recipe typed_;
  Settings said_;
  Tier allow_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<FitSearch>> searches_;  // by tier
};

// Whether the recipe's budget chooses: not where an automatic codec does. UserError where that is said to
// be both.
bool is_fitted(const Recipe& recipe, const Settings& said);

// What a candidate's changes and its recomputation come to, one upon the other.
std::vector<TechniqueShare> shares_of(const Recipe& typed, const FitSearch::Pick& pick,
                                      const FitStep& plain, Backend& backend);

}  // namespace thimble
