// One budget. The candidates are recipes that differ from the requested one in techniques that the user left
// open: micro-batches, precision, state bits, folding, codecs, sparsity, as far as the tier allows. The
// selector takes the candidate with the fastest plan within the budget, and of near ties (kNearTie) the more
// faithful. Its result is a completed recipe and a verified plan, as if the user had typed that recipe with
// --fit off.
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

  // `explicit_settings` are the fields that were typed, in whatever way: they stay. The tier is the recipe's where
  // that was said, else equivalent; what was said may go beyond it. REQUIRES: the recipe was checked;
  // the machine is its own.
  TechniqueSelector(const Recipe& requested, const Settings& explicit_settings,
                    std::shared_ptr<Machine> machine, const SearchLimits& limits = {});

  NumericsTier allow() const { return allow_; }
  // As typed, less its budget; and the option of its step, the first of all.
  const Recipe& recipe() const { return requested_; }
  StepOption& requested() { return *options(allow_).front(); }

  // `budget` may be kLeastMemory.
  std::variant<PlannedTraining, Refusal> plan(Bytes budget);
  // The choice alone, without a plan of all shapes.
  std::optional<Pick> choose(Bytes budget) { return selector(allow_).within(budget); }
  // Whether anything fits at all.
  bool has_room(Bytes budget) { return selector(allow_).has_room(budget); }
  // The least of a tier, with room for all shapes of the step.
  Pick smallest(NumericsTier tier);

  const Options& options(NumericsTier tier) { return choice(tier).options; }
  ParetoSelector& selector(NumericsTier tier) { return *choice(tier).selector; }
  StepOption& option(const Pick& pick, NumericsTier tier) { return *options(tier)[pick.option]; }
  // The step as typed is there already. REQUIRES: nothing was asked yet.
  void use(Step requested) { step_ = std::move(requested); }
  // From here on, choices go by what is now known of times.
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
  Refusal refuse(Bytes budget);

  Recipe requested_;
  const Settings explicit_settings_;
  const NumericsTier allow_;
  const std::shared_ptr<Machine> machine_;
  const SearchLimits limits_;
  std::optional<Step> step_;            // as typed; none: not there yet, or given to a choice
  OptionFactsByFlags facts_;            // of candidates
  std::array<Choice, 3> choices_ = {};  // by tier
};

// Whether the recipe's budget chooses: not where an automatic codec does. UserError where that is said to
// be both.
bool selects_techniques(const Recipe& recipe, const Settings& explicit_settings);

}  // namespace thimble
