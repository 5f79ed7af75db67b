// The whole path, in order: model -> graph -> autodiff -> updates -> costs -> plan -> verified plan.
// A newcomer reads this first.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "pipeline/encodings.h"
#include "pipeline/pricing.h"
#include "pipeline/training_graph.h"
#include "pipeline/variant.h"
#include "recipe/budget_choices.h"
#include "recipe/recipe.h"

namespace thimble {

// A run with every decision made, ready to go. Movable: holds its parts by pointer.
struct PlannedTraining {
  Recipe recipe;  // completed; an automatic codec has been chosen
  std::unique_ptr<Backend> backend;
  Microbatches microbatches;
  std::vector<std::unique_ptr<Variant>> variants;  // of a step, as step_shapes() has them
  Tier tier = Tier::exact;
  double plan_seconds = 0;                    // graph, costs, plan and verification
  std::optional<BudgetChoices> choices = {};  // none: no budget chose

  // Of full microbatches, the longest: its arena is the run's, its predicted cost that of a step.
  const Variant& full() const { return *variants.front(); }
  const Graph& graph() const { return full().model.graph; }
  const Plan& plan() const { return full().plan; }
  // Of the last microbatch, of records as long; null: it is of the same size as the others.
  const Variant* rest_of(const Variant& variant) const;
  const Variant* rest() const { return rest_of(full()); }
};
// `first`: where it is known already, what the recipe's planner chooses for the first variant.
std::variant<PlannedTraining, Infeasible> plan_training(const Recipe& recipe,
                                                        const Schedule* first = nullptr);
// The plan, with time and FLOPs of the whole step. Of batches by tokens those of the length that has most
// of them, whichever takes most memory: so that plans of different recipes can be compared.
Plan priced_as_a_whole(const PlannedTraining& training);

// The forward pass with running statistics, planned into the arena of training, for every length of
// records, the longest first. Rows are the most, halving from those of a microbatch, that fit.
std::vector<std::unique_ptr<Variant>> plan_evaluation(const PlannedTraining& training);

// The same of what generates: rows are a multiple of `beam`, that many sentences' beginnings each.
// UserError where not one sentence fits.
std::vector<std::unique_ptr<Variant>> plan_generation(const PlannedTraining& training,
                                                      int64_t beam);

// One row that is gone on with, planned likewise, for lengths that double up to the model's.
std::vector<std::unique_ptr<Variant>> plan_sampling(const PlannedTraining& training);

}  // namespace thimble
