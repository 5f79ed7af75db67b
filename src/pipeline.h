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
#include "transform/marks.h"
#include "transform/optimizer.h"

namespace thimble {

// What to train and on what.
struct Recipe {
  ModelOptions model;
  OptimizerSpec optimizer;
  std::string device = "cpu";
  int threads = 0;                  // 0: one per core
  std::string planner = "keep_all";
  std::optional<Bytes> memory;      // budget on the arena
  Marks marks;                      // what every planner must keep or compute again
  std::string costs;                // file of measured kernel times; empty: modelled ones
};

// A training step as a graph: forward, backward and update.
struct TrainingGraph {
  Model model;                      // its graph is the whole step
  OptimizerInputs scalars;
};
TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks = {});

// What each node of the graph costs on the recipe's device: see gather_costs.
Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend);

// A step ready to run, every decision made. Movable: holds its parts by pointer.
struct PlannedStepProgram {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<TrainingGraph> training;
  Costs costs;
  Plan plan;
  double plan_seconds = 0;          // graph, costs, plan and verification
};
std::variant<PlannedStepProgram, Infeasible> plan_training(const Recipe& recipe);

// The forward pass with running statistics, planned into the arena of a training plan: weights and
// statistics are where training keeps them, everything else lies above the persistent values. The
// batch is the largest, halving from the training batch, that fits.
struct EvaluationPlan {
  Model model;
  Costs costs;
  Plan plan;
};
std::unique_ptr<EvaluationPlan> plan_evaluation(const PlannedStepProgram& training);

}  // namespace thimble
