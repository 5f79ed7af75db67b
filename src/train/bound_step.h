// A variant of a run bound to the run's arena.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "execute/program.h"
#include "pipeline/step.h"

namespace thimble {

class BoundStep {
 public:
  // `first` is the variant whose arena it is. REQUIRES: all of them outlive it.
  BoundStep(const PlannedStep& variant, const PlannedStep& first, Backend& backend, Memory& arena);

  const PlannedStep& variant() const { return *variant_; }
  const Model& model() const { return variant_->model; }
  const Plan& plan() const { return variant_->plan; }
  Program& program() const { return *program_; }

  // Constants that only it has (an LSTM's first state of so many rows): others reuse their bytes,
  // so they are set before it runs. Allocates nothing.
  void set_own_constants(uint64_t seed);
  // The seed and position of random numbers, where there are any.
  void feed_rng(uint64_t seed, int64_t step, int64_t microbatch);
  // That the first `records` rows are records, and the others count for nothing.
  void feed_row_counts(int64_t records);

 private:
  const PlannedStep* variant_;
  std::unique_ptr<Program> program_;
  // Null: it has none.
  std::unique_ptr<std::vector<bool>> own_;  // by value
  std::function<bool(ValueId)> is_own_;
};

}  // namespace thimble
