#include "train/step.h"

#include <algorithm>

#include "train/initialize.h"

namespace thimble {

TrainingStep::TrainingStep(const PlannedStepProgram& planned, Feeder& feeder, Memory& arena,
                           uint64_t seed)
    : planned_(planned), feeder_(feeder), seed_(seed) {
  const auto add = [&](const TrainingGraph& training, const Costs& costs, const Plan& plan,
                       int runs) {
    auto program = std::make_unique<Program>(training.model.graph, plan, *planned.backend, arena);
    parts_.push_back({&training, &costs, &plan, runs, std::move(program), {}});
  };
  add(*planned.training, planned.costs, planned.plan, planned.microbatches.full);
  if (planned.rest == nullptr) return;
  add(planned.rest->training, planned.rest->costs, planned.rest->plan, 1);
  const Graph& full = planned.training->model.graph;
  for (const Value& value : planned.rest->training.model.graph.values) {
    const bool constant = !value.producer.valid() && value.role == Role::constant;
    own_constant_.push_back(constant && !full.find(value.name).valid());
  }
  is_own_constant_ = [this](ValueId value) { return own_constant_[value.at()]; };
}

void TrainingStep::watch_loss(const std::function<void()>& check) {
  for (Part& part : parts_) part.program->watch(part.training->model.loss, check);
}

TrainingStep::Part& TrainingStep::part_of(int microbatch) {
  return microbatch < parts_.front().runs ? parts_.front() : parts_.back();
}

Bytes TrainingStep::touched() const {
  Bytes highest;
  for (const Part& part : parts_) highest = std::max(highest, part.program->touched());
  return highest;
}

void TrainingStep::feed_scalars(int64_t step, double rate) {
  const OptimizerInputs& scalars = first().training->scalars;
  program().view<float>(scalars.learning_rate)[0] = static_cast<float>(rate);
  if (scalars.step.valid()) {
    program().view<float>(scalars.step)[0] = static_cast<float>(step + 1 - skipped_);
  }
  if (scalars.loss_scale.valid()) program().view<float>(scalars.loss_scale)[0] = loss_scale_;
  if (scalars.rounding_key.valid()) {
    const std::span<int64_t> key = program().view<int64_t>(scalars.rounding_key);
    key[0] = static_cast<int64_t>(seed_);
    key[1] = step;
  }
}

bool TrainingStep::overflowed() {
  const ValueId overflow = first().training->scalars.overflow;
  return overflow.valid() && program().view<float>(overflow)[0] > 0;
}

void TrainingStep::fill_rows(MicrobatchId which) {
  Part& part = part_of(which.number);
  feeder_.fill_training(*part.program, part.training->model,
                        {.step = which.step,
                         .batch = planned_.microbatches.batch,
                         .first = which.number * planned_.microbatches.rows});
}

void TrainingStep::feed_rows(MicrobatchId which) {
  Part& part = part_of(which.number);
  const Model& model = part.training->model;
  Program& program = *part.program;
  if (which != ahead_) fill_rows(which);
  ahead_ = {-1, 0};
  if (&part != &parts_.front()) initialize(program, seed_, is_own_constant_);
  const ValueId loss_scale = part.training->scalars.loss_scale;
  if (loss_scale.valid()) program.view<float>(loss_scale)[0] = loss_scale_;
  if (!model.rng.valid()) return;
  const std::span<int64_t> rng = program.view<int64_t>(model.rng);
  rng[0] = static_cast<int64_t>(seed_);
  rng[1] = which.step;
  rng[2] = which.number;
}

void TrainingStep::feed(MicrobatchId which, double rate) {
  feed_scalars(which.step, rate);
  feed_rows(which);
}

void TrainingStep::run_microbatch(MicrobatchId which, bool traced) {
  Part& part = part_of(which.number);
  current_ = which;
  feed_rows(which);
  if (look_) look_(which, part);
  part.program->run_phase(Phase::each, traced ? &part.trace : nullptr);
}

void TrainingStep::run(int64_t step, double rate, bool traced) {
  Trace* trace = traced ? &first().trace : nullptr;
  feed_scalars(step, rate);
  program().run_phase(Phase::begin, trace);
  for (int number = 0; number < planned_.microbatches.count(); ++number) {
    run_microbatch({step, number}, traced);
  }
  // The full microbatches leave them alone; a smaller last one does not know where they are.
  if (parts_.size() > 1) feed_scalars(step, rate);
  program().run_phase(Phase::end, trace);
  if (planned_.backend->remote() && step + 1 < last_) {  // the next rows, while the device is busy
    fill_rows({step + 1, 0});
    ahead_ = {step + 1, 0};
  }
  program().finish();
}

}  // namespace thimble
