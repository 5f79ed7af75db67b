// The whole path, in order: model -> graph -> autodiff -> updates -> costs -> plan -> verified
// plan. A newcomer reads this first.
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

// A run with every decision made, ready for the trainer. Movable: holds its parts by pointer.
struct PlannedTraining {
  Recipe recipe;  // completed; an automatic codec has been chosen
  std::shared_ptr<Machine> machine;
  Microbatches microbatches;
  std::vector<std::unique_ptr<PlannedStep>> steps;  // of all shapes
  NumericsTier tier = NumericsTier::exact;
  double plan_seconds = 0;                     // graph, costs, plan and verification
  std::optional<SelectionReport> report = {};  // none: the recipe was planned as typed

  Backend& backend() const { return machine->backend(); }
  // The step of full micro-batches of the longest records. Its arena is the run's, and its predicted
  // cost is that of a step.
  const PlannedStep& full() const { return *steps.front(); }
  const Graph& graph() const { return full().model.graph; }
  const Plan& plan() const { return full().plan; }
  // The step of a smaller last micro-batch, of equally long records. Null: all are of one size.
  const PlannedStep* rest_of(const PlannedStep& step) const;
  const PlannedStep* rest() const { return rest_of(full()); }
};

// The error when no policy fits another shape of the step into the arena of the first.
struct Misfit {
  std::string why;
};

// The step that is planned first: with that schedule, or else by its recipe's policy.
struct Selection {
  Step step;
  std::optional<Schedule> schedule = {};
};
// Selects a plan for the shape that is planned first. For batches by tokens, each shape may be
// tried as the first.
using Select = std::function<Selection(const StepShape& shape)>;

// REQUIRES: the recipe was checked; the machine was opened for it.
std::variant<PlannedTraining, Infeasible, Misfit> plan_training(const Recipe& recipe,
                                                                std::shared_ptr<Machine> machine,
                                                                const Select& select);

// The plan, with time and FLOPs of the whole step. For batches by tokens these are of the length
// with most tokens, even if another takes more memory, so that plans of different recipes can be
// compared.
Plan priced_as_a_whole(const PlannedTraining& training);

// Evaluation: the forward pass with running statistics, planned into the arena of training, for
// every length of records, the longest first. The number of rows is halved from a micro-batch's
// until it fits.
std::vector<std::unique_ptr<PlannedStep>> plan_evaluation(const PlannedTraining& training);

// The same for generation by beam search: rows are a multiple of `beam`, one for each beginning of
// a sentence. UserError where not one sentence fits.
std::vector<std::unique_ptr<PlannedStep>> plan_generation(const PlannedTraining& training,
                                                          int64_t beam);

// The same for sampling: one row that is continued, for lengths that double up to the model's.
std::vector<std::unique_ptr<PlannedStep>> plan_sampling(const PlannedTraining& training);

}  // namespace thimble
