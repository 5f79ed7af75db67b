// The whole path, in order: model -> graph -> autodiff -> updates -> costs -> plan -> verified plan.
// A newcomer reads this first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "backend/backend.h"
#include "model/model.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace thimble {

// A training step as a graph: forward, backward and update. Over several microbatches, of
// `options.batch` rows each, gradients and results are sums that grow with every one.
struct TrainingGraph {
  Model model;  // its graph is the whole step
  OptimizerInputs scalars;
  SparsitySpec sparsity;
};
TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks = {}, int microbatches = 1,
                                  const SparsitySpec& sparsity = {}, const CodecSpec& codec = {});

// The graphs of a recipe's step: one for its full microbatches, one for a last that is smaller.
struct StepGraphs {
  Microbatches microbatches;
  TrainingGraph full;
  std::optional<TrainingGraph> rest;
};
StepGraphs make_step_graphs(const Recipe& recipe);

// The last, smaller microbatch of a step, planned into the arena of the others: persistent values and
// the sums that grow over the microbatches are where those keep them. Only its `each` phase runs.
struct RestPlan {
  TrainingGraph training;
  Costs costs;
  Plan plan;
};

// What each node of the graph, some form of the recipe's step, costs on the recipe's device: see
// gather_costs. Where the recipe's step was measured as a whole, times are scaled by what that was of
// its kernels' sum: kernels of a step overlap, and find in caches what those before them wrote.
Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend);

// The name of the recipe's step in a table of measured times, whatever its plan and its codec:
// `seconds` are the step's, `modelled` its kernels' together.
std::string whole_step_key(const Recipe& recipe, const Backend& backend);

// The tier of the recipe's step, of that graph and with that codec. UserError above what it allows.
Tier allowed_tier(const Recipe& recipe, const Graph& graph, const CodecSpec& codec);

// The encodings of activations that an automatic codec chooses from, each with the step it makes.
struct EncodedStep {
  CodecSpec codec;
  double harm = 0;  // see transform/codec_ladder.h
  std::unique_ptr<TrainingGraph> training;
  Costs costs;
};
std::vector<EncodedStep> encoded_steps(const Recipe& recipe, Backend& backend);

// A step ready to run, every decision made. Movable: holds its parts by pointer.
struct PlannedStepProgram {
  Recipe recipe;  // completed; an automatic codec has been chosen
  std::unique_ptr<Backend> backend;
  std::unique_ptr<TrainingGraph> training;
  Costs costs;
  Plan plan;                       // its predicted cost is the whole step's
  std::unique_ptr<RestPlan> rest;  // null: all microbatches are of one size
  Microbatches microbatches;
  Tier tier = Tier::exact;
  double plan_seconds = 0;  // graph, costs, plan and verification
};
std::variant<PlannedStepProgram, Infeasible> plan_training(const Recipe& recipe);
// The plan, with time and FLOPs of the whole step: by itself it takes the last microbatch to be as large
// as the others.
Plan priced_as_a_whole(const PlannedStepProgram& step);

// The forward pass with running statistics, planned into the arena of a training plan: weights and
// statistics are where training keeps them, everything else lies above the persistent values. The
// batch is the largest, halving from the rows of a microbatch, that fits.
struct EvaluationPlan {
  Model model;
  Costs costs;
  Plan plan;
};
std::unique_ptr<EvaluationPlan> plan_evaluation(const PlannedStepProgram& training);

}  // namespace thimble
