#include "train/bound_step.h"

#include <algorithm>

#include "weights/initialize.h"

namespace thimble {

BoundStep::BoundStep(const PlannedStep& variant, const PlannedStep& first, Backend& backend,
                     Memory& arena)
    : variant_(&variant),
      program_(std::make_unique<Program>(variant.model.graph, variant.plan, backend, arena)) {
  if (&variant == &first) return;
  std::vector<bool> own;
  for (const Value& value : variant.model.graph.values) {
    const bool constant = !value.producer.valid() && value.role == Role::constant;
    own.push_back(constant && !first.model.graph.find(value.name).valid());
  }
  if (std::ranges::find(own, true) == own.end()) return;
  own_ = std::make_unique<std::vector<bool>>(std::move(own));
  is_own_ = [flags = own_.get()](ValueId value) { return (*flags)[value.at()]; };
}

void BoundStep::set_own_constants(uint64_t seed) {
  if (own_ != nullptr) initialize(*program_, seed, is_own_);
}

void BoundStep::feed_rng(uint64_t seed, int64_t step, int64_t microbatch) {
  if (!model().rng.valid()) return;
  const std::span<int64_t> rng = program_->view<int64_t>(model().rng);
  rng[0] = static_cast<int64_t>(seed);
  rng[1] = step;
  rng[2] = microbatch;
}

void BoundStep::feed_row_counts(int64_t records) {
  if (!model().row_counts.valid()) return;
  const std::span<float> counts = program_->view<float>(model().row_counts);
  std::ranges::fill(counts, 0.0f);
  std::ranges::fill(counts.first(static_cast<size_t>(records)), 1.0f);
}

}  // namespace thimble
