// One training step after another: the programs of a planned step bound to an arena, fed and run,
// microbatch by microbatch. Allocates nothing once it is made.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "execute/program.h"
#include "pipeline.h"
#include "train/feeder.h"

namespace thimble {

// A microbatch of a step.
struct MicrobatchId {
  int64_t step = 0;
  int number = 0;

  bool operator==(const MicrobatchId&) const = default;
};

class TrainingStep {
 public:
  // One program of the step and what it was made from.
  struct Part {
    const TrainingGraph* training = nullptr;
    const Costs* costs = nullptr;
    const Plan* plan = nullptr;
    int runs = 0;  // microbatches of a step
    std::unique_ptr<Program> program;
    Trace trace;  // of traced steps
  };

  // REQUIRES: `planned`, `feeder` and `arena` outlive it; the arena is the plan's.
  TrainingStep(const PlannedStepProgram& planned, Feeder& feeder, Memory& arena, uint64_t seed);

  // Called before every microbatch runs, its inputs in place.
  using Look = std::function<void(MicrobatchId which, Part& part)>;
  void on_microbatch(Look look) { look_ = std::move(look); }
  // Called in every microbatch right behind its loss, as Program::watch.
  void watch_loss(const std::function<void()>& check);

  // What the loss is multiplied by from now on, where that is dynamic, and how many steps have been
  // skipped so far: they do not count as steps of the optimizer.
  void set_loss_scale(double scale, int64_t skipped) {
    loss_scale_ = static_cast<float>(scale);
    skipped_ = skipped;
  }

  // No step from this one on is coming: what follows the one before it is not fetched ahead.
  void end_before(int64_t step) { last_ = step; }

  // Feeds and runs a step at learning rate `rate`; timing every kernel, when `traced`.
  void run(int64_t step, double rate, bool traced = false);

  // Of the last step: means over the batch and rows that were right.
  float loss() { return program().view<float>(first().training->model.loss)[0]; }
  float correct() { return program().view<float>(first().training->model.correct)[0]; }

  // Whether gradients overflowed, so that the last step changed no weight.
  bool overflowed();

  // Puts everything in place that the microbatch reads and the step has not made.
  void feed(MicrobatchId which, double rate);
  // The one that runs now, or ran last.
  MicrobatchId current() const { return current_; }
  Part& part_of(int microbatch);

  // The full microbatches come first; where all are of one size, there is nothing else.
  std::vector<Part>& parts() { return parts_; }
  // Finds persistent values, and scalars of the step.
  Program& program() { return *first().program; }
  // The highest byte that any kernel was handed so far.
  Bytes touched() const;

 private:
  Part& first() { return parts_.front(); }
  void feed_scalars(int64_t step, double rate);
  void feed_rows(MicrobatchId which);
  void fill_rows(MicrobatchId which);
  void run_microbatch(MicrobatchId which, bool traced);

  const PlannedStepProgram& planned_;
  Feeder& feeder_;
  const uint64_t seed_;
  std::vector<Part> parts_;
  // Constants that only the last microbatch has (an LSTM's first state): the others reuse their
  // bytes, so they are set again before every use.
  std::vector<bool> own_constant_;  // by value
  std::function<bool(ValueId)> is_own_constant_;
  Look look_;
  MicrobatchId current_;
  MicrobatchId ahead_ = {-1, 0};  // whose rows are in place already
  int64_t last_ = std::numeric_limits<int64_t>::max();
  float loss_scale_ = 1;
  int64_t skipped_ = 0;
};

}  // namespace thimble
