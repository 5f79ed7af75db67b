#include "train/training_step.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "comm/communicator.h"

namespace thimble {
namespace {

// Whether a variant of that shape suits records of that length better: the shortest that holds them,
// else the longest.
bool is_nearer(const StepShape& shape, const TrainingStep::Part& than, int64_t length) {
  const int64_t other = than.variant().shape.length;
  if (shape.length < length) return other < shape.length;
  return other < length || shape.length <= other;
}

}  // namespace

TrainingStep::TrainingStep(const PlannedTraining& planned, const BatchSource& source, Memory& arena,
                           uint64_t seed)
    : planned_(planned),
      source_(source),
      seed_(seed),
      adds_up_(most_microbatches(planned.recipe) > planned.microbatches.ranks) {
  for (const auto& variant : planned.steps) {
    source.check(variant->model);
    parts_.emplace_back(*variant, planned.full(), planned.backend(), arena);
  }
  result_ = &first();
}

void TrainingStep::watch_loss(const std::function<void()>& check) {
  for (Part& part : parts_) part.program().watch(part.model().loss, check);
}

TrainingRows TrainingStep::rows_of(MicrobatchId which) const {
  const Microbatches all = microbatches_of(which.step);
  return {.step = which.step, .batch = all.batch, .first = all.first_of(which.number)};
}

Microbatches TrainingStep::microbatches_of(int64_t step) const {
  const Bucket* const bucket = source_.bucket(step);
  return bucket == nullptr ? planned_.microbatches
                           : thimble::microbatches_of(planned_.recipe, bucket->length);
}

MicrobatchId TrainingStep::own(int64_t step, int turn) const {
  const Communicator* const ranks = planned_.backend().ranks();
  return {step, turn * planned_.microbatches.ranks + (ranks == nullptr ? 0 : ranks->rank())};
}

int64_t TrainingStep::longest_of_turn(MicrobatchId which, int64_t rows) const {
  const int ranks = planned_.microbatches.ranks;
  int64_t longest = 0;
  for (int k = 0; k < ranks; ++k) {
    const MicrobatchId other = {which.step, which.number / ranks * ranks + k};
    longest = std::max(longest, source_.longest(rows_of(other), rows));
  }
  return longest;
}

TrainingStep::Part& TrainingStep::part_of(MicrobatchId which) {
  const Bucket* const bucket = source_.bucket(which.step);
  const int64_t rows = microbatches_of(which.step).rows_of(which.number);
  const int64_t length = bucket != nullptr ? bucket->length : longest_of_turn(which, rows);
  Part* fitting = nullptr;
  for (Part& part : parts_) {
    const StepShape& shape = part.variant().shape;
    if (shape.rows != rows || (fitting != nullptr && !is_nearer(shape, *fitting, length))) continue;
    fitting = &part;
  }
  internal_check(fitting != nullptr, "a microbatch of rows that nothing was planned for");
  return *fitting;
}

Bytes TrainingStep::touched() const {
  Bytes highest;
  for (const Part& part : parts_) highest = std::max(highest, part.program().touched());
  return highest;
}

std::vector<StepShape> TrainingStep::not_met() const {
  std::vector<StepShape> shapes;
  for (const Part& part : parts_) {
    if (!part.met) shapes.push_back(part.variant().shape);
  }
  return shapes;
}

void TrainingStep::feed_scalars(Part& part, int64_t step, double rate) {
  const OptimizerInputs& scalars = part.variant().scalars;
  Program& program = part.program();
  program.view<float>(scalars.learning_rate)[0] = static_cast<float>(rate);
  if (scalars.step.valid()) {
    program.view<float>(scalars.step)[0] = static_cast<float>(steps_before_ + step + 1 - skipped_);
  }
  if (scalars.loss_scale.valid()) program.view<float>(scalars.loss_scale)[0] = loss_scale_;
  if (scalars.rounding_key.valid()) {
    const std::span<int64_t> key = program.view<int64_t>(scalars.rounding_key);
    key[0] = static_cast<int64_t>(seed_);
    const Communicator* const ranks = planned_.backend().ranks();
    key[1] = step + (ranks == nullptr ? 0 : int64_t{ranks->rank()} << 32);
  }
}

bool TrainingStep::overflowed() const {
  const ValueId overflow = result_->variant().scalars.overflow;
  return overflow.valid() && result_->program().view<float>(overflow)[0] > 0;
}

void TrainingStep::fill_rows(MicrobatchId which, Part& part) {
  TrainingRows rows = rows_of(which);
  if (which.step == filled_step_) rows.counted = filled_;
  filled_ = source_.fill_training(part.program(), part.model(), rows);
  filled_step_ = which.step;
}

void TrainingStep::feed_rows(MicrobatchId which, Part& part) {
  if (which != ahead_) fill_rows(which, part);
  ahead_ = {-1, 0};
  part.set_own_constants(seed_);
  // A microbatch may overwrite what it has read: inputs that every one reads are set again for each.
  const ValueId loss_scale = part.variant().scalars.loss_scale;
  if (loss_scale.valid()) part.program().view<float>(loss_scale)[0] = loss_scale_;
  part.feed_rng(seed_, which.step, which.number);
}

void TrainingStep::feed(MicrobatchId which, double rate) {
  Part& part = part_of(which);
  feed_scalars(part, which.step, rate);
  feed_rows(which, part);
}

void TrainingStep::run_microbatch(MicrobatchId which, Part& part, double rate, bool traced) {
  current_ = which;
  if (&part != result_) feed_scalars(part, which.step, rate);
  feed_rows(which, part);
  if (look_) look_(which, part);
  part.program().run_phase(Phase::per_microbatch, traced ? &part.trace : nullptr);
  ++part.runs;
  part.met = true;
}

// The rows of a step while the device is busy with the one before, which any failure leaves alone.
void TrainingStep::fill_ahead(int64_t step) {
  const MicrobatchId next = own(step, 0);
  try {
    source_.prepare(step);
    fill_rows(next, part_of(next));
    ahead_ = next;
  } catch (...) {
    ahead_failed_ = std::current_exception();
  }
}

void TrainingStep::run(int64_t step, double rate, bool traced) {
  if (ahead_failed_) std::rethrow_exception(std::exchange(ahead_failed_, nullptr));
  if (ahead_ != own(step, 0)) source_.prepare(step);
  for (Part& part : parts_) part.runs = 0;
  // A step of one microbatch is all its own; the sums of several begin and end with the first variant.
  const int turns = microbatches_of(step).turns();
  result_ = adds_up_ ? &first() : &part_of(own(step, 0));
  Trace* trace = traced ? &result_->trace : nullptr;
  feed_scalars(*result_, step, rate);
  spoiled_ = adds_up_;
  result_->program().run_phase(Phase::prologue, trace);
  bool others = false;
  for (int turn = 0; turn < turns; ++turn) {
    const MicrobatchId which = own(step, turn);
    Part& part = part_of(which);
    others = others || &part != result_;
    run_microbatch(which, part, rate, traced);
  }
  counted_ = filled_;
  // Its own microbatches leave them alone; those of other variants do not know where they are.
  if (others) feed_scalars(*result_, step, rate);
  result_->program().run_phase(Phase::epilogue, trace);
  if (planned_.backend().has_device_memory() && step + 1 < last_) fill_ahead(step + 1);
  result_->program().finish();
  spoiled_ = false;
}

}  // namespace thimble
