#include "pipeline/pricing.h"

#include "execute/costs.h"
#include "execute/costs_path.h"
#include "plan/make_plan.h"

namespace thimble {

namespace {

Costs costs_of_kernels(const Recipe& recipe, const Graph& graph, Backend& backend,
                       const CostTable& table) {
  Costs costs = gather_costs(graph, backend, table);
  const auto step = table.lower_bound(kWholeStep);
  if (step == table.end() || op_of_key(step->first) != kWholeStep) return costs;
  const auto whole = table.find(whole_step_key(recipe, backend));
  if (whole != table.end() && whole->second.modelled > 0) {
    costs.share = whole->second.seconds / whole->second.modelled;
    for (NodeCost& node : costs.nodes) node.seconds *= costs.share;
  }
  return costs;
}

// What measured times say of this machine; nothing, where there are none.
CostTable measured_here(const Recipe& recipe, const Backend& backend) {
  const std::string path = costs_to_read(recipe.costs, recipe.device);
  if (path.empty()) return {};
  const CostFile file = read_costs(path);
  const auto machine = file.find(backend.machine());
  return machine == file.end() ? CostTable() : machine->second;
}

Interconnect interconnect_of(const Recipe& recipe, const CostTable& table) {
  if (!recipe.interconnect.empty()) return parse_interconnect(recipe.interconnect);
  const auto latency = table.find(link_key(kLinkLatency, recipe.ranks.count));
  const auto byte = table.find(link_key(kLinkByte, recipe.ranks.count));
  if (latency == table.end() || byte == table.end()) return parse_interconnect("memory");
  return {"measured", latency->second.seconds, 1 / byte->second.seconds};
}

}  // namespace

Interconnect interconnect_of(const Recipe& recipe, const Backend& backend) {
  return interconnect_of(recipe, measured_here(recipe, backend));
}

Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend) {
  const CostTable table = measured_here(recipe, backend);
  Costs costs = table.empty() ? gather_costs(graph, backend)
                              : costs_of_kernels(recipe, graph, backend, table);
  if (!recipe.ranks.several()) return costs;
  const Interconnect link = interconnect_of(recipe, table);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Traffic traffic = traffic_of(graph, make_id<NodeId>(n));
    costs.nodes[n].seconds += link.seconds(traffic.messages, traffic.bytes);
  }
  costs.source += fmt::format(", {} ranks over {}", recipe.ranks.count, link.name);
  return costs;
}

Communication communication_of(const Recipe& recipe, const Graph& graph, const Plan& plan,
                               const Backend& backend) {
  Communication all;
  all.link = interconnect_of(recipe, backend);
  for (const PlannedCall& call : plan.calls) {
    const Traffic traffic = traffic_of(graph, call.node);
    const int times = graph[call.node].phase == Phase::each ? plan.microbatches : 1;
    all.seconds += times * all.link.seconds(traffic.messages, traffic.bytes);
    all.sent += Bytes(static_cast<int64_t>(times * traffic.bytes));
    if (traffic.messages > 0) all.collectives += times;
  }
  return all;
}

std::string whole_step_key(const Recipe& recipe, const Backend& backend) {
  return fmt::format("{}({}) by {} streams", kWholeStep, timed_text(completed(recipe, backend)),
                     backend.streams());
}

Plan priced_as_a_whole(const Variant& full, const Variant* rest) {
  Plan plan = full.plan;
  if (rest == nullptr) return plan;
  const PhaseCost of_full = cost_of(full.model.graph, full.costs, plan, Phase::each);
  const PhaseCost of_rest = cost_of(rest->model.graph, rest->costs, rest->plan, Phase::each);
  plan.predicted_seconds += of_rest.seconds - of_full.seconds;
  plan.flops += of_rest.flops - of_full.flops;
  plan.extra_flops += of_rest.extra_flops - of_full.extra_flops;
  return plan;
}

}  // namespace thimble
