// Small training runs for tests of checkpoints and of the loop.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "data/dataset.h"
#include "select/choose.h"
#include "train/trainer.h"

namespace thimble {

// How a run of a test goes, in steps.
struct RunOptions {
  RateSchedule rate;
  int64_t steps = 0;
  int64_t save_every = 0;      // 0: only at the end
  int64_t evaluate_every = 0;  // 0: only at the end
  int64_t reallocate_every = 0;
  bool evaluate = true;
  std::string out = {};
  bool resume = false;
  std::string weights = {};
  std::function<bool()> stop = {};
  nlohmann::json fingerprint = {};
  TrainingStep::Look on_microbatch = {};

  void put_into(Recipe& recipe) const {
    ScheduleSpec& schedule = recipe.schedule;
    schedule.steps = steps;
    schedule.kind = rate.kind;
    schedule.factor = rate.factor;
    schedule.warmup = steps_span(rate.warmup_steps);
    for (const int64_t at : rate.milestones) schedule.milestones.push_back(steps_span(at));
    recipe.save_every = steps_span(save_every);
    recipe.evaluate_every = steps_span(evaluate_every);
    recipe.reallocate_every = reallocate_every;
    recipe.evaluate = evaluate;
  }
};

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
  RanksSpec ranks = {};
  Communicator* comm = nullptr;  // of several ranks: this one's
};

inline RunSetup mlp_run() {
  return {.model = {.name = "mlp:hidden=32", .batch = 64, .dropout = 0.3}};
}
inline RunSetup wrn_run() {
  return {.model = {.name = "wrn-10-1", .batch = 16, .image = {8, 8, 1}}, .augment = true};
}
inline RunSetup lstm_run() {
  return {.model = {.name = "lstm:layers=1,hidden=16,length=6", .batch = 16}, .rate = 0.2};
}
// The same net, several time steps to a node.
inline RunSetup lstm_runs_run() {
  RunSetup run = lstm_run();
  run.model.name += ",steps-at-once=4";
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
  explicit TrainingRun(const RunSetup& run, RunOptions options = {}) {
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
    recipe.ranks = run.ranks;
    recipe.on.threads = 1;  // quick on a busy machine, too; tests/cli trains with more
    recipe.data.augment = run.augment;
    recipe.seed = run.seed;
    options.put_into(recipe);
    recipe.schedule.rate = run.rate;
    planned_ = std::make_unique<PlannedTraining>(std::get<PlannedTraining>(plan_training(recipe)));
    if (run.comm != nullptr) planned_->backend().join(*run.comm);
    const FeedOptions feed = {.seed = run.seed, .augment = run.augment, .crop_pad = 1};
    const bool sequences = run.model.name.starts_with("lstm");
    data_ = open_dataset(sequences ? "sequences" : "digits",
                         {.wanted = fields_read(planned_->full().model),
                          .train_count = 320,
                          .test_count = 50,
                          .seed = run.seed});
    feeder_ = std::make_unique<Feeder>(*data_, feed);
    trainer_ = std::make_unique<Trainer>(*planned_, *feeder_,
                                         TrainOptions{.out = options.out,
                                                      .resume = options.resume,
                                                      .weights = options.weights,
                                                      .fingerprint = options.fingerprint,
                                                      .stop = options.stop,
                                                      .on_microbatch = options.on_microbatch});
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
    const HostMapping part = program.map_to_host(make_id<ValueId>(v), HostMapping::Use::read);
    bytes.append(reinterpret_cast<const char*>(part.bytes().data()), part.bytes().size());
  }
  return bytes;
}

}  // namespace thimble
