// drop_cheap: keeps the results of costly ops (convolution, product) and recomputes cheap ones
// (normalisation, activation, pooling, cast) wherever their inputs are in memory.
#include "plan/policy.h"
#include "plan/schedule/mirror_counts.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  MirrorCounts counts(request.graph.values.size(), 0);
  mirror_cheap(pass, counts);
  return schedule_mirrored(pass, std::move(counts));
}

}  // namespace

extern const Policy policy_drop_cheap{
    "drop_cheap", "keep convolutions and products, recompute cheap ops", schedule};

}  // namespace thimble
