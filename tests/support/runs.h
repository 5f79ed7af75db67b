// Small training runs for tests of checkpoints and of the loop.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "data/dataset.h"
#include "train/trainer.h"

namespace thimble {

struct RunSetup {
  ModelOptions model;
  std::string optimizer = "nesterov";
  bool augment = false;
  double rate = 0.02;
  uint64_t seed = 5;
  int64_t microbatch = 0;
  bool fold = false;
  std::string planner = "keep_all";
  std::optional<Bytes> memory = {};
  int state_bits = 32;
  double clip_norm = 0;
  bool clip_two_pass = false;
  CodecSpec codec = {};
  SparsitySpec sparsity = {};
  Rounding rounding = Rounding::nearest;
  LossScaling scaling = {};
  std::string device = "cpu";
  bool tf32 = true;
};

inline RunSetup mlp_run() {
  return {.model = {.name = "mlp", .batch = 64, .dropout = 0.3, .hidden = 32}};
}
inline RunSetup wrn_run() {
  return {.model = {.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, .augment = true};
}
inline RunSetup lstm_run() {
  return {.model = {.name = "lstm", .batch = 16, .layers = 1, .hidden = 16, .length = 6},
          .rate = 0.2};
}
// The same net, several time steps to a node.
inline RunSetup lstm_runs_run() {
  RunSetup run = lstm_run();
  run.model.steps_at_once = 4;
  return run;
}
inline RunSetup adam_run() {
  RunSetup run = mlp_run();
  run.optimizer = "adam";
  run.rate = 0.002;
  return run;
}

// Everything a Trainer needs, held together.
class TrainingRun {
 public:
  explicit TrainingRun(const RunSetup& run, TrainOptions options = {}) {
    Recipe recipe;
    recipe.model = run.model;
    recipe.optimizer = parse_optimizer(run.optimizer);
    recipe.optimizer.fold = run.fold;
    recipe.optimizer.state_bits = run.state_bits;
    recipe.optimizer.clip_norm = run.clip_norm;
    recipe.optimizer.clip_two_pass = run.clip_two_pass;
    recipe.codec = run.codec;
    recipe.optimizer.rounding = run.rounding;
    recipe.optimizer.scaling = run.scaling;
    recipe.microbatch = run.microbatch;
    recipe.planner = run.planner;
    recipe.memory = run.memory;
    recipe.sparsity = run.sparsity;
    recipe.device = run.device;
    recipe.on.tf32 = run.tf32;
    recipe.on.threads = 1;  // quick on a busy machine, too; tests/cli trains with more
    planned_ = std::make_unique<PlannedTraining>(std::get<PlannedTraining>(plan_training(recipe)));
    const FeedOptions feed = {.seed = run.seed, .augment = run.augment, .crop_pad = 1};
    const Model& model = planned_->full().model;
    const bool sequences = run.model.name == "lstm";
    data_ = open_dataset(
        sequences ? "sequences" : "digits",
        {.wanted = fields_read(model), .train_count = 320, .test_count = 50, .seed = run.seed});
    feeder_ = std::make_unique<Feeder>(*data_, feed);
    options.recipe = recipe;
    options.seed = run.seed;
    options.rate.base = run.rate;
    options.data = {{"augment", run.augment}};
    trainer_ = std::make_unique<Trainer>(*planned_, *feeder_, std::move(options));
  }

  TrainResult run() { return trainer_->run({}); }
  Trainer& trainer() { return *trainer_; }
  Program& program() { return trainer_->program(); }
  TrainingStep& step() { return trainer_->training_step(); }
  const PlannedTraining& planned() const { return *planned_; }
  const Feeder& feeder() { return *feeder_; }

 private:
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<PlannedTraining> planned_;
  std::unique_ptr<Feeder> feeder_;
  std::unique_ptr<Trainer> trainer_;
};

// Of all persistent values: weights, statistics, optimizer state.
inline std::string persistent_bytes(Program& program) {
  std::string bytes;
  const Graph& graph = program.graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer.valid() || !is_persistent(graph.values[v].role)) continue;
    const Loan part = program.borrow(make_id<ValueId>(v), Loan::Use::read);
    bytes.append(reinterpret_cast<const char*>(part.bytes().data()), part.bytes().size());
  }
  return bytes;
}

}  // namespace thimble
