#include "pipeline/pricing.h"

#include <algorithm>

#include "pipeline/pipeline.h"
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

const PlannedStep* PlannedTraining::rest_of(const PlannedStep& step) const {
  const StepShape last = {.rows = microbatches_of(recipe, step.shape.length).rest,
                          .length = step.shape.length};
  const auto found = std::ranges::find(steps, last, [](const auto& other) { return other->shape; });
  return found == steps.end() ? nullptr : found->get();
}

Plan priced_as_a_whole(const PlannedTraining& training) {
  Plan plan = training.plan();
  const StepShape most = largest_shape(training.recipe);
  for (const auto& step : training.steps) {
    if (step->shape != most) continue;
    const Plan whole = priced_as_a_whole(*step, training.rest_of(*step));
    plan.predicted_seconds = whole.predicted_seconds;
    plan.flops = whole.flops;
    plan.extra_flops = whole.extra_flops;
  }
  return plan;
}

}  // namespace thimble
