#include "plan/make_plan.h"

#include <algorithm>

#include "base/error.h"
#include "plan/bytes/live_bytes.h"
#include "plan/bytes/liveness.h"
#include "plan/bytes/peak.h"
#include "plan/packer.h"
#include "plan/policy.h"

namespace thimble {
namespace {

constexpr Bytes kNowhere{-1};

struct Addresses {
  std::vector<Bytes> offsets;  // by buffer
  Bytes arena;
  std::string packer;
};

// Puts buffers where another plan of the same arena has them.
void place_fixed(const PlanRequest& request, const Schedule& schedule, const Buffers& buffers,
                 std::vector<Bytes>& offsets) {
  const auto fix = [&](ValueId value, int buffer) {
    const Bytes at = request.fixed[value.at()];
    if (at != kNowhere) offsets[static_cast<size_t>(buffer)] = at;
  };
  for (size_t v = 0; v < buffers.sources.size(); ++v) {
    if (buffers.sources[v] >= 0) fix(make_id<ValueId>(v), buffers.sources[v]);
  }
  for (size_t s = 0; s < schedule.calls.size(); ++s) {
    const Node& node = request.graph[schedule.calls[s].node];
    if (node.phase != Phase::prologue) break;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      fix(node.outputs[k], buffers.calls[s].outputs[k]);
    }
  }
}

// Addresses. Persistent buffers lie at the bottom, one after another, and above them buffers
// carried from micro-batch to micro-batch. Both are live throughout, so this costs no memory, and
// weights have the same addresses in every plan of a graph. A packer places the rest.
Addresses addresses_of(const PlanRequest& request, const Schedule& schedule,
                       const Buffers& buffers) {
  Addresses addresses;
  addresses.offsets.assign(buffers.uses.size(), kNowhere);
  Bytes floor = request.reserved;
  if (!request.fixed.empty()) place_fixed(request, schedule, buffers, addresses.offsets);
  std::vector<size_t> to_pack;
  for (size_t b = 0; b < buffers.uses.size(); ++b) {
    if (addresses.offsets[b] != kNowhere) continue;
    if (buffers.persistent[b] || buffers.carried[b]) {
      addresses.offsets[b] = floor;
      floor += align_up(buffers.uses[b].size);
    } else {
      to_pack.push_back(b);
    }
  }
  addresses.arena = floor;
  const int last_call = static_cast<int>(buffers.calls.size()) - 1;
  std::vector<BufferUse> uses;
  for (const size_t b : to_pack) {
    const bool shares = request.sharing == Sharing::sharing || buffers.roles[b] == Role::workspace;
    uses.push_back(shares ? buffers.uses[b] : BufferUse{buffers.uses[b].size, 0, last_call});
  }
  const Packed packed = pack_smallest(uses);
  addresses.packer = packed.packer;
  for (size_t i = 0; i < to_pack.size(); ++i) {
    addresses.offsets[to_pack[i]] = floor + packed.layout.offsets[i];
  }
  addresses.arena = floor + packed.layout.arena;
  return addresses;
}

Buffers buffers_of(const PlanRequest& request, const Schedule& schedule) {
  return assign_buffers(request.graph, schedule, request.costs, request.sharing,
                        request.microbatches);
}

void measure_peak(const Buffers& buffers, Plan& plan) {
  const LivePeak peak = live_peak(buffers.uses);
  plan.peak_live = peak.bytes;
  plan.peak_call = peak.call;
  for (size_t b = 0; b < buffers.uses.size(); ++b) {
    const BufferUse& use = buffers.uses[b];
    const bool live = buffers.persistent[b] || (use.first <= peak.call && peak.call <= use.last);
    if (live) plan.peak_by_role[static_cast<size_t>(buffers.roles[b])] += align_up(use.size);
  }
}

// The cost of one run of a phase, of the calls of a plan or of a schedule.
template <class Calls>
PhaseCost cost_of_calls(const Graph& graph, const Costs& costs, const Calls& calls, Phase phase) {
  PhaseCost sum;
  for (const auto& call : calls) {
    if (graph[call.node].phase != phase) continue;
    const NodeCost& cost = costs.nodes[call.node.at()];
    sum.seconds += cost.seconds;
    sum.flops += cost.flops;
    if (call.recompute) sum.extra_flops += cost.flops;
  }
  return sum;
}

// The cost of a step with all its micro-batches.
template <class Calls>
PhaseCost cost_of_all(const PlanRequest& request, const Calls& calls) {
  PhaseCost sum;
  for (const Phase phase : {Phase::prologue, Phase::per_microbatch, Phase::epilogue}) {
    const double times = phase == Phase::per_microbatch ? request.microbatches : 1;
    const PhaseCost cost = cost_of_calls(request.graph, request.costs, calls, phase);
    sum.seconds += times * cost.seconds;
    sum.flops += times * cost.flops;
    sum.extra_flops += times * cost.extra_flops;
  }
  return sum;
}

// The contents of the arena at the peak: the largest roles, and the largest tensors that are not
// persistent.
std::string why_so_large(const Graph& graph, const Costs& costs, const Plan& plan) {
  std::vector<std::pair<Bytes, Role>> parts;
  for (int r = 0; r < kRoles; ++r) {
    parts.emplace_back(plan.peak_by_role[static_cast<size_t>(r)], static_cast<Role>(r));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t kShown = 3;
  std::vector<std::string> shown;
  for (size_t i = 0; i < kShown; ++i) {
    shown.push_back(fmt::format("{} {}", name_of(parts[i].second), to_string(parts[i].first)));
  }
  std::vector<std::string> tensors;
  for (const LiveValue& live : live_at_peak(graph, costs, plan)) {
    if (is_persistent(graph[live.value].role) || tensors.size() == kShown) continue;
    tensors.push_back(fmt::format("'{}' {}", graph[live.value].name, to_string(live.bytes)));
  }
  const NodeId fullest = plan.calls[static_cast<size_t>(plan.peak_call)].node;
  return fmt::format("memory peaks at call {} of {} ('{}'): {}; largest tensors at the peak: {}",
                     plan.peak_call + 1, plan.calls.size(), graph[fullest].name,
                     fmt::join(shown, ", "), fmt::join(tensors, ", "));
}

}  // namespace

Bytes arena_of(const PlanRequest& request, const Schedule& schedule) {
  return addresses_of(request, schedule, buffers_of(request, schedule)).arena;
}

Plan lay_out(const PlanRequest& request, const Schedule& schedule) {
  const Buffers buffers = buffers_of(request, schedule);
  const Addresses addresses = addresses_of(request, schedule, buffers);
  const auto address = [&](int buffer) { return addresses.offsets[static_cast<size_t>(buffer)]; };

  Plan plan;
  plan.policy = request.policy;
  plan.packer = addresses.packer;
  plan.microbatches = request.microbatches;
  plan.arena = addresses.arena;
  for (size_t s = 0; s < schedule.calls.size(); ++s) {
    PlannedCall call;
    call.node = schedule.calls[s].node;
    call.recompute = schedule.calls[s].recompute;
    for (const int buffer : buffers.calls[s].inputs) call.inputs.push_back(address(buffer));
    for (const int buffer : buffers.calls[s].outputs) call.outputs.push_back(address(buffer));
    if (buffers.calls[s].workspace >= 0) {
      call.workspace_at = address(buffers.calls[s].workspace);
      call.workspace_size = request.costs.nodes[call.node.at()].workspace;
    }
    plan.calls.push_back(std::move(call));
  }
  for (const int buffer : buffers.sources) {
    plan.sources.push_back(buffer < 0 ? kNowhere : address(buffer));
  }
  measure_peak(buffers, plan);
  const PhaseCost cost = cost_of_all(request, plan.calls);
  plan.costs = request.costs.source;
  plan.predicted_seconds = cost.seconds;
  plan.flops = cost.flops;
  plan.extra_flops = cost.extra_flops;
  return plan;
}

ScheduleCost cost_of(const PlanRequest& request, const Schedule& schedule) {
  const std::vector<BufferUse> uses =
      live_ranges(request.graph, schedule, request.costs, request.sharing, request.microbatches);
  return {most_live(uses), predicted_seconds(request, schedule)};
}

double predicted_seconds(const PlanRequest& request, const Schedule& schedule) {
  return cost_of_all(request, schedule.calls).seconds;
}

PlanResult make_plan(const PlanRequest& asked) {
  const auto [policy, number] = choose_policy(asked.policy);
  PlanRequest request = asked;
  request.number = number;
  request.sharing = std::min(asked.sharing, policy->sharing);
  return lay_out_within(request, policy->schedule(request));
}

PlanResult lay_out_within(const PlanRequest& request, const Schedule& schedule) {
  Plan plan = lay_out(request, schedule);
  const bool any = !request.budget || *request.budget == kLeastMemory;
  if (!any && plan.arena > *request.budget) return infeasible(request, plan);
  return plan;
}

Infeasible infeasible(const PlanRequest& request, const Plan& smallest) {
  return {smallest.arena, why_so_large(request.graph, request.costs, smallest)};
}

PhaseCost cost_of(const Graph& graph, const Costs& costs, const Plan& plan, Phase phase) {
  return cost_of_calls(graph, costs, plan.calls, phase);
}

Schedule schedule_of(const Plan& plan) {
  Schedule schedule;
  for (const PlannedCall& call : plan.calls) schedule.calls.push_back({call.node, call.recompute});
  return schedule;
}

}  // namespace thimble
