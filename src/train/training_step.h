// One training step after another: the variants of a planned run bound to its arena, fed and run,
// microbatch by microbatch. Allocates nothing once it is made.
#pragma once

#include <exception>
#include <functional>
#include <limits>
#include <vector>

#include "pipeline/pipeline.h"
#include "train/bound_step.h"
#include "train/feed/batch_source.h"

namespace thimble {

// A microbatch of a step, of all that its ranks have together.
struct MicrobatchId {
  int64_t step = 0;
  int number = 0;

  bool operator==(const MicrobatchId&) const = default;
};

class TrainingStep {
 public:
  // A variant of the step; the first is the longest of the full microbatches.
  struct Part : BoundStep {
    using BoundStep::BoundStep;
    int runs = 0;      // microbatches of the last step that it ran
    bool met = false;  // whether any step had a microbatch of its shape
    Trace trace;       // of traced steps
  };

  // REQUIRES: `planned`, `source` and `arena` outlive it; the arena is the plan's.
  TrainingStep(const PlannedTraining& planned, const BatchSource& source, Memory& arena,
               uint64_t seed);

  // Called before every microbatch runs, its inputs in place.
  using Look = std::function<void(MicrobatchId which, Part& part)>;
  void on_microbatch(Look look) { look_ = std::move(look); }
  // Called in every microbatch right behind its loss, as Program::watch.
  void watch_loss(const std::function<void()>& check);

  // The factor of the loss from now on, where that is dynamic, and how many steps have been skipped
  // so far: they do not count as steps of the optimizer.
  void set_loss_scale(double scale, int64_t skipped) {
    loss_scale_ = static_cast<float>(scale);
    skipped_ = skipped;
  }

  // How many steps the optimizer had made before the run's first.
  void set_steps_before(int64_t steps) { steps_before_ = steps; }

  // No step from this one on is coming: what follows the one before it is not fetched ahead.
  void end_before(int64_t step) { last_ = step; }

  // Feeds and runs a step at learning rate `rate`; timing every kernel, when `traced`. Where the
  // source fails, nothing was done yet, or spoiled() says so.
  void run(int64_t step, double rate, bool traced = false);

  // Of the last step: its results are those of this model, in its program.
  const Part& result() const { return *result_; }
  float loss() const { return result_->program().view<float>(result_->model().loss)[0]; }
  // The number of records or tokens that the loss is a mean over.
  double counted() const { return counted_; }

  // Whether gradients overflowed, so that the last step changed no weight.
  bool overflowed() const;

  // Whether a step was left in its middle: what it was to change is partly changed.
  bool spoiled() const { return spoiled_; }

  // Puts everything in place that the microbatch reads and the step has not made.
  void feed(MicrobatchId which, double rate);
  // The one that runs now, or ran last.
  MicrobatchId current() const { return current_; }
  // The shortest variant of its rows that holds its records.
  Part& part_of(MicrobatchId which);

  std::vector<Part>& parts() { return parts_; }
  // Finds persistent values, and scalars of the step.
  Program& program() { return first().program(); }
  // The highest byte that any kernel was handed so far.
  Bytes touched() const;
  // Shapes that no microbatch had so far: the plan has room for them, and nothing touched it.
  std::vector<StepShape> not_met() const;

 private:
  Part& first() { return parts_.front(); }
  // This rank's microbatch of a turn in which every rank computes one.
  MicrobatchId own(int64_t step, int turn) const;
  TrainingRows rows_of(MicrobatchId which) const;
  Microbatches microbatches_of(int64_t step) const;
  // The longest record that any rank has in the turn: all of them run the same variant.
  int64_t longest_of_turn(MicrobatchId which, int64_t rows) const;
  void feed_scalars(Part& part, int64_t step, double rate);
  void feed_rows(MicrobatchId which, Part& part);
  void fill_rows(MicrobatchId which, Part& part);
  void fill_ahead(int64_t step);
  void run_microbatch(MicrobatchId which, Part& part, double rate, bool traced);

  const PlannedTraining& planned_;
  const BatchSource& source_;
  const uint64_t seed_;
  const bool adds_up_;  // several microbatches, in steps of some records at least
  std::vector<Part> parts_;
  Part* result_ = nullptr;
  double counted_ = 0;  // in the last step
  double filled_ = 0;   // likewise, in that of the rows in place, which is
  int64_t filled_step_ = -1;
  Look look_;
  MicrobatchId current_;
  MicrobatchId ahead_ = {-1, 0};  // whose rows are in place already
  int64_t last_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr ahead_failed_;  // fetching for the step to come, which gets it
  bool spoiled_ = false;
  float loss_scale_ = 1;
  int64_t skipped_ = 0;
  int64_t steps_before_ = 0;
};

}  // namespace thimble
