// drop_cheap: keeps the results of costly ops (convolution, product) and computes cheap ones
// (normalisation, activation, pooling, cast) again, wherever what they are made from is at hand.
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
    "drop_cheap", "keep convolutions and products, compute cheap ops again", schedule};

}  // namespace thimble
