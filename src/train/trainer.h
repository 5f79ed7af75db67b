// The training loop: feed, step, watch, evaluate, save.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "execute/program.h"
#include "pipeline.h"
#include "train/feeder.h"
#include "train/loss_scaler.h"
#include "train/reallocate.h"
#include "train/schedule.h"
#include "train/step.h"

namespace thimble {

struct TrainOptions {
  Recipe recipe;
  RateSchedule rate;  // total_steps is filled in by the trainer
  uint64_t seed = 1;
  int64_t steps = 0;             // total; counts from the start of the run, resumed or not
  int64_t save_every = 0;        // steps; 0: only at the end
  int64_t evaluate_every = 0;    // steps; 0: only at the end
  int64_t reallocate_every = 0;  // steps between moves of nonzeros; 0: reallocation_schedule's own
  bool evaluate = true;          // false: never
  std::string out;               // empty: no checkpoints
  bool resume = false;           // continue from out's latest checkpoint, if there is one
  std::string weights;           // a safetensors file to start from; empty: the model's own start
  nlohmann::json data;           // how the data was chosen, for the checkpoint
  nlohmann::json fingerprint;    // of the data themselves (data/fingerprint.h); null: not known
  // Asked after every step and while testing; once true, the run saves a checkpoint and ends.
  std::function<bool()> stop;
  // Called with every microbatch before it is trained on; for tools that look at the data.
  TrainingStep::Look on_microbatch;
};

// What the caller shows while training runs.
struct Progress {
  int64_t step = 0;  // done
  int64_t steps = 0;
  int64_t steps_per_epoch = 1;
  double loss = 0;        // mean since the last epoch began
  double accuracy = 0;    // likewise, on training data
  double rate = 0;        // learning rate
  double loss_scale = 0;  // 0: not dynamic
  int64_t skipped = 0;    // steps in all, because gradients overflowed
  double rows_per_second = 0;
  double seconds_left = 0;
  Bytes arena;
  bool stopped = false;    // this was the last step, though not of those asked for
  bool evaluated = false;  // an evaluation has just been made:
  double test_loss = 0;
  double test_accuracy = 0;
};

struct TrainResult {
  int64_t steps = 0;
  double epochs = 0;
  double train_loss = 0;  // mean over the last epoch (or over the run, when shorter)
  double train_accuracy = 0;
  double test_loss = 0;
  double test_accuracy = 0;
  int64_t test_count = 0;
  Bytes measured_arena;
  std::optional<Bytes> beside_arena;  // on a device with memory of its own: in use there beside it
  Bytes evaluation_arena;
  double step_ms = 0;           // median
  std::vector<double> losses;   // of every step of this process
  std::vector<double> seconds;  // likewise, feeding included
  double loss_scale = 0;        // at the end; 0: not dynamic
  int64_t skipped = 0;          // steps in all, because gradients overflowed
  std::string weights_sha256;
  std::string checkpoint;     // folder; empty: none
  int64_t reallocations = 0;  // of nonzeros, in this process
  double threshold = 0;       // that the next one would prune below; 0: none would
  int64_t resumed_at = 0;
  bool stopped = false;  // ended because it was asked to (TrainOptions::stop)
};

class Trainer {
 public:
  // REQUIRES: `planned` is for options.recipe and outlives the trainer, as does the feeder.
  Trainer(PlannedStepProgram& planned, Feeder& feeder, TrainOptions options);
  ~Trainer();

  // Where the device fails, its DeviceError also says which checkpoint there is to go on from.
  TrainResult run(const std::function<void(const Progress&)>& show);

  // Writes the weights as they are now, for other programs.
  void export_weights(const std::string& path);
  // What was done to the weights that the run starts from (train/weights_file.h); empty: nothing.
  const std::string& weights_note() const { return weights_note_; }
  Program& program() { return step_->program(); }
  TrainingStep& training_step() { return *step_; }

 private:
  struct Meter;

  void start();
  TrainResult run_steps(const std::function<void(const Progress&)>& show);
  void step(int64_t step);
  int64_t steps_per_epoch() const;
  bool asked_to_stop() const { return options_.stop && options_.stop(); }
  bool evaluate();  // false: asked to stop meanwhile, and nothing is known
  void save();
  std::string kept() const;  // which checkpoint there is, for messages
  // The name of a persistent value that is not finite; empty: all are.
  std::string non_finite_value(const std::function<bool(Role)>& looked_at) const;
  void explain_non_finite();
  nlohmann::json recipe_json() const;
  nlohmann::json settings_json() const;  // of it, all but codecs

  PlannedStepProgram& planned_;
  Feeder& feeder_;
  TrainOptions options_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<TrainingStep> step_;
  std::unique_ptr<EvaluationPlan> evaluation_;
  std::unique_ptr<Program> evaluator_;
  std::unique_ptr<Reallocator> reallocator_;  // null: weights are dense, or their nonzeros stay
  ReallocationSchedule reallocations_;
  std::unique_ptr<Meter> meter_;
  LossScaler scaler_;
  std::string weights_note_;
  TrainResult result_;
};

}  // namespace thimble
