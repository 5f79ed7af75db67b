// The training loop: feed, step, watch, evaluate, save.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "execute/program.h"
#include "pipeline/pipeline.h"
#include "recipe/schedule.h"
#include "runs/metric_accumulator.h"
#include "runs/run_log.h"
#include "sparse/reallocate_nonzeros.h"
#include "train/feed/feeder.h"
#include "train/loss_scaler.h"
#include "train/training_step.h"
#include "weights/weights_file.h"

namespace thimble {

// Where a run leaves its traces and begins; everything else is in its recipe.
struct TrainOptions {
  std::string out = {};  // folder of checkpoints; empty: none
  // Continue from out's latest checkpoint, if there is one. Another number of ranks may have to
  // divide the batch into other microbatches than it was begun with.
  bool resume = false;
  std::string weights = {};      // a safetensors file to start from; empty: the model's own start
  GiveValues first_values = {};  // in place of those that came with a net from outside
  // That the optimizer had made before this run, whose state is set next (bias corrections count
  // them).
  int64_t optimizer_steps = 0;
  nlohmann::json fingerprint = {};  // of the data (data/fingerprint.h); null: not known
  // Asked after every step and while testing; once true, the run saves a checkpoint and ends.
  std::function<bool()> stop = {};
  // The learning rate of a step, by its number and what the schedule has for it; none: the
  // schedule.
  std::function<double(int64_t step, double scheduled)> rate = {};
  // Called with every microbatch before it is trained on; for tools that look at the data.
  TrainingStep::Look on_microbatch = {};
  std::string tensorboard = {};  // folder for TensorBoard's event files; empty: none
  // Called with the folder of a checkpoint that the run can go on from, from now on.
  std::function<void(const std::string& folder)> saved = {};
};

// The state of training in progress, for display.
struct Progress {
  int64_t step = 0;  // done
  int64_t steps = 0;
  int64_t steps_per_epoch = 1;
  Figures train;          // since the last epoch began
  double rate = 0;        // learning rate
  double loss_scale = 0;  // 0: not dynamic
  int64_t skipped = 0;    // steps in all, because gradients overflowed
  double rows_per_second = 0;
  double tokens_per_second = 0;  // padding counts; 0: rows are no sequences
  double seconds_left = 0;
  Bytes arena;
  Bytes budget;            // of it; 0: none
  int64_t microbatch = 0;  // rows computed at once; 0: the whole batch
  NumericsTier tier = NumericsTier::exact;
  bool stopped = false;    // this was the last step, though not of those asked for
  bool evaluated = false;  // an evaluation has just been made:
  Figures test;
};

struct TrainResult {
  int64_t steps = 0;
  double epochs = 0;
  Figures train;  // over the last epoch (or over the run, when shorter)
  Figures test;
  int64_t test_count = 0;
  Bytes measured_arena;
  // Shapes of microbatches that were planned, and of which this process had none: where one of them
  // takes most, less of the arena was touched than was planned.
  std::vector<StepShape> not_met;
  std::vector<Bytes> arena_of_ranks;  // the same, of every rank
  std::string ranks_over;             // what joins them: "mpi", "nccl"; empty: there are none
  double communication = 0;           // share of the steps' time spent with other ranks
  std::optional<Bytes> beside_arena;  // on a device with memory of its own: in use there beside it
  Bytes evaluation_arena;
  double step_ms = 0;            // median
  double tokens_per_second = 0;  // of all steps of this process; 0: rows are no sequences
  std::vector<double> losses;    // of every step of this process
  std::vector<double> seconds;   // likewise, feeding included
  double loss_scale = 0;         // at the end; 0: not dynamic
  int64_t skipped = 0;           // steps in all, because gradients overflowed
  std::string weights_sha256;
  std::string checkpoint;     // folder; empty: none
  int64_t reallocations = 0;  // of nonzeros, in this process
  double threshold = 0;       // that the next one would prune below; 0: none would
  int64_t resumed_at = 0;
  bool stopped = false;  // ended because it was asked to (TrainOptions::stop)
};

class Trainer {
 public:
  // REQUIRES: `planned`, which carries the recipe, outlives the trainer, as does the source.
  Trainer(PlannedTraining& planned, const BatchSource& source, TrainOptions options = {});
  ~Trainer();

  // Where the device fails, its DeviceError also says which checkpoint there is to go on from.
  TrainResult run(const std::function<void(const Progress&)>& show);

  // The same piece by piece, for a caller with a loop of its own. One step, beyond those of the
  // run, too; its figures are its own.
  Figures advance();
  // Over the test records of `source`, which need not be the run's. Empty: asked to stop meanwhile.
  std::optional<Figures> evaluate(const BatchSource& source, int64_t* count = nullptr);
  // The forward pass in evaluation, of the longest records.
  BoundStep& evaluator() { return evaluators_.front(); }
  // A checkpoint of what is there now; its folder. UserError where a step was left in its middle.
  // REQUIRES: the run has a folder.
  std::string save();

  // Writes the weights as they are now, for other programs.
  void export_weights(const std::string& path);
  // The adapters alone, as a folder of PEFT. REQUIRES: the recipe has them.
  void export_adapters(const std::string& folder);
  int64_t steps() const { return steps_; }  // of the whole run
  int64_t done() const { return result_.steps; }
  double rate() const { return last_rate_; }  // of the last step
  // What was done to the weights that the run starts from (weights/weights_file.h); empty: nothing.
  const std::string& weights_note() const { return weights_note_; }
  Program& program() { return step_->program(); }
  TrainingStep& training_step() { return *step_; }

 private:
  void start();
  // A run's speed in this process.
  struct Pace {
    int64_t first = 0;  // step
    int64_t rows = 0;   // since then
    int64_t tokens = 0;
    double seconds = 0;
  };

  TrainResult run_steps(const std::function<void(const Progress&)>& show);
  void timed_step(int64_t step, Pace& pace);
  Progress progress_at(const Pace& pace, bool evaluated) const;
  // Fills the result of the run as far as it went.
  void summarize();
  void summarize_ranks();
  void step(int64_t step);
  // Whether the step's calls are timed one by one, for trace.json.
  bool is_traced(int64_t step) const;
  double rate_of(int64_t step) const;
  const Recipe& recipe() const { return planned_.recipe; }
  Communicator* ranks() const { return planned_.backend().ranks(); }
  bool first_rank() const;
  // Of several ranks all ask at the same time, and hear the same.
  bool asked_to_stop() const;
  // Of the step just done, to the run's log; `save` follows.
  void record(const LoggedStep& done, bool tested, bool saving);
  bool test();  // false: asked to stop meanwhile, and nothing is known
  // The shortest that holds the test records from `first` on.
  BoundStep& evaluator_of(const BatchSource& source, int64_t first);
  std::string kept() const;  // which checkpoint there is, for messages
  // The name of what training changes and is not finite; empty: all is.
  std::string non_finite_value(bool with_statistics) const;
  void explain_non_finite();

  PlannedTraining& planned_;
  const BatchSource& source_;
  const TrainOptions options_;
  const int64_t steps_per_epoch_;
  const int64_t steps_;  // total; counts from the start of the run, resumed or not
  const RateSchedule rate_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<TrainingStep> step_;
  std::vector<std::unique_ptr<PlannedStep>> evaluations_;  // the longest first
  std::vector<BoundStep> evaluators_;
  std::unique_ptr<Reallocator> reallocator_;  // null: weights are dense, or their nonzeros stay
  ReallocationSchedule reallocations_;
  MetricAccumulator accumulated_;  // of the current epoch
  LossScaler scaler_;
  double last_rate_ = 0;
  int64_t optimizer_steps_ = 0;  // before the run's first
  std::string weights_note_;
  nlohmann::json base_ = {};  // of frozen weights, once it was asked for (weights/base_weights.h)
  std::unique_ptr<RunLog> log_;
  double fastest_trace_ = 0;  // seconds of the step in trace.json; 0: there is none
  double traced_ = 0, traced_with_ranks_ = 0;  // seconds of all steps that were traced
  TrainResult result_;
};

}  // namespace thimble
