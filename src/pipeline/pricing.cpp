#include "pipeline/pricing.h"

#include "plan/make_plan.h"

namespace thimble {

Communication communication_of(const Recipe& recipe, const Graph& graph, const Plan& plan,
                               Machine& machine) {
  Communication all;
  all.link = machine.interconnect_of(recipe);
  for (const PlannedCall& call : plan.calls) {
    const Traffic traffic = traffic_of(graph, call.node);
    const int times = graph[call.node].phase == Phase::per_microbatch ? plan.microbatches : 1;
    all.seconds += times * all.link.seconds(traffic.messages, traffic.bytes);
    all.sent += Bytes(static_cast<int64_t>(times * traffic.bytes));
    if (traffic.messages > 0) all.collectives += times;
  }
  return all;
}

Plan priced_as_a_whole(const PlannedStep& full, const PlannedStep* rest) {
  Plan plan = full.plan;
  if (rest == nullptr) return plan;
  const PhaseCost of_full = cost_of(full.model.graph, full.costs, plan, Phase::per_microbatch);
  const PhaseCost of_rest =
      cost_of(rest->model.graph, rest->costs, rest->plan, Phase::per_microbatch);
  plan.predicted_seconds += of_rest.seconds - of_full.seconds;
  plan.flops += of_rest.flops - of_full.flops;
  plan.extra_flops += of_rest.extra_flops - of_full.extra_flops;
  return plan;
}

}  // namespace thimble
