// The whole path, in order: model -> graph -> autodiff -> updates -> costs -> plan -> verified plan.
// A newcomer reads this first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "pipeline/pricing.h"
#include "pipeline/step.h"
#include "recipe/selection_report.h"

namespace thimble {

// A run with every decision made, ready to go. Movable: holds its parts by pointer.
struct PlannedTraining {
  Recipe recipe;  // completed; an automatic codec has been chosen
  std::shared_ptr<Machine> machine;
  Microbatches microbatches;
  std::vector<std::unique_ptr<PlannedStep>> steps;  // of all shapes
  NumericsTier tier = NumericsTier::exact;
  double plan_seconds = 0;                     // graph, costs, plan and verification
  std::optional<SelectionReport> report = {};  // none: no budget chose

  Backend& backend() const { return machine->backend(); }
  // Of full microbatches, the longest: its arena is the run's, its predicted cost that of a step.
  const PlannedStep& full() const { return *steps.front(); }
  const Graph& graph() const { return full().model.graph; }
  const Plan& plan() const { return full().plan; }
  // Of the last microbatch, of records as long; null: it is of the same size as the others.
  const PlannedStep* rest_of(const PlannedStep& step) const;
  const PlannedStep* rest() const { return rest_of(full()); }
};

// A shape of a recipe's step does not fit the arena of the first, and no planner brings it in.
struct Misfit {
  std::string why;
};

// The step that is planned first, by that schedule or else by its recipe's planner.
struct Selection {
  Step step;
  std::optional<Schedule> schedule = {};
};
// Selects a plan for the shape that is planned first. Of batches by tokens, each shape may be in turn.
using Select = std::function<Selection(const StepShape& shape)>;

// REQUIRES: the recipe was checked; the machine is its own.
std::variant<PlannedTraining, Infeasible, Misfit> plan_training(const Recipe& recipe,
                                                                std::shared_ptr<Machine> machine,
                                                                const Select& select);

// The plan, with time and FLOPs of the whole step. Of batches by tokens those of the length that has most
// of them, whichever takes most memory: so that plans of different recipes can be compared.
Plan priced_as_a_whole(const PlannedTraining& training);

// The forward pass with running statistics, planned into the arena of training, for every length of
// records, the longest first. Rows are the most, halving from those of a microbatch, that fit.
std::vector<std::unique_ptr<PlannedStep>> plan_evaluation(const PlannedTraining& training);

// The same of what generates: rows are a multiple of `beam`, that many sentences' beginnings each.
// UserError where not one sentence fits.
std::vector<std::unique_ptr<PlannedStep>> plan_generation(const PlannedTraining& training,
                                                          int64_t beam);

// One row that is gone on with, planned likewise, for lengths that double up to the model's.
std::vector<std::unique_ptr<PlannedStep>> plan_sampling(const PlannedTraining& training);

}  // namespace thimble
