// Chooses techniques for a budget. The candidates differ from the requested recipe in techniques
// that the user left open, as far as the tier allows: gradient accumulation over micro-batches,
// mixed precision, 8-bit optimizer state, folded gradients, activation compression, sparsity. The
// selector takes the candidate with the fastest plan within the budget, and of near ties (kNearTie)
// the one of lower risk. Its result is a completed recipe and a verified plan, as if the user had
// typed that recipe with --fit off.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "select/pareto_selector.h"
#include "select/refusal.h"
#include "select/step_option.h"

namespace thimble {

class TechniqueSelector {
 public:
  using Options = std::vector<std::unique_ptr<StepOption>>;
  using Pick = ParetoSelector::Pick;

  // `explicit_settings` are the fields that the user set, and stay as they are, even beyond the
  // tier (selected_tier()). REQUIRES: the recipe was checked, and the machine was opened for it.
  TechniqueSelector(const Recipe& requested, const Settings& explicit_settings,
                    std::shared_ptr<Machine> machine, const SearchLimits& limits = {});

  NumericsTier allow() const { return allow_; }
  // The recipe as typed, without its budget, and its option, the first of all.
  const Recipe& recipe() const { return requested_; }
  StepOption& requested() { return *options(allow_).front(); }

  // `budget` may be kLeastMemory.
  std::variant<PlannedTraining, Refusal> plan(Bytes budget);
  // The choice alone, without a plan of all shapes.
  std::optional<Pick> choose(Bytes budget) { return selector(allow_).within(budget); }
  // Whether anything fits.
  bool has_room(Bytes budget) { return selector(allow_).has_room(budget); }
  // The smallest plan of a tier, with room for all shapes of the step.
  Pick smallest(NumericsTier tier);

  const Options& options(NumericsTier tier) { return choice(tier).options; }
  ParetoSelector& selector(NumericsTier tier) { return *choice(tier).selector; }
  StepOption& option(const Pick& pick, NumericsTier tier) { return *options(tier)[pick.option]; }
  // Hands over the step as typed, so that it is not built again. REQUIRES: called before any other
  // function.
  void use(Step requested) { step_ = std::move(requested); }
  // From now on, choices go by the machine's current times.
  void price_again();

 private:
  struct Choice {
    Options options;
    std::unique_ptr<ParetoSelector> selector;
  };

  Choice& choice(NumericsTier tier);
  std::variant<PlannedTraining, Infeasible, Misfit> plan_shapes(StepOption& option,
                                                                const PlanPoint& plan,
                                                                Recipe& recipe);
  SelectionReport report_of(const PlannedTraining& training, StepOption& chosen, PlanPoint plan);
  std::vector<TechniqueGain> gains_of(StepOption& chosen, const PlanPoint& plan);
  // Within a second where a bound proves it: floors are searched for where that is quick by counts.
  Refusal refuse(Bytes budget);
  void add_floor(Refusal& refusal, NumericsTier tier);
  void add_other_tiers(Refusal& refusal);

  Recipe requested_;
  const Settings explicit_settings_;
  const NumericsTier allow_;
  const std::shared_ptr<Machine> machine_;
  const SearchLimits limits_;
  std::optional<Step> step_;            // as typed; none: not built yet, or moved to a choice
  OptionFactsByFlags facts_;            // of candidates
  std::array<Choice, 3> choices_ = {};  // by tier
};

// Whether techniques are chosen for the recipe's budget. False with `--codec auto`. UserError if
// the user asked for both.
bool selects_techniques(const Recipe& recipe, const Settings& explicit_settings);
// The tier that techniques are chosen from: the recipe's if the user set it, else equivalent.
NumericsTier selected_tier(const Recipe& recipe, const Settings& explicit_settings);

}  // namespace thimble
