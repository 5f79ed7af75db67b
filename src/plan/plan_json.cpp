#include "plan/plan_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace thimble {
namespace {

std::vector<int64_t> counts(const std::vector<Bytes>& bytes) {
  std::vector<int64_t> result;
  for (const Bytes b : bytes) result.push_back(b.count);
  return result;
}

std::vector<Bytes> bytes_from(const nlohmann::json& json) {
  std::vector<Bytes> result;
  for (const int64_t count : json.get<std::vector<int64_t>>()) result.emplace_back(count);
  return result;
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json calls = nlohmann::json::array();
  for (const PlannedCall& call : plan.calls) {
    nlohmann::json entry = {
        {"node", call.node.index}, {"in", counts(call.inputs)}, {"out", counts(call.outputs)}};
    if (call.recompute) entry["recompute"] = true;
    if (call.workspace_size.count > 0) {
      entry["scratch"] = {call.workspace_at.count, call.workspace_size.count};
    }
    calls.push_back(std::move(entry));
  }
  std::vector<int64_t> roles;
  for (const Bytes b : plan.peak_by_role) roles.push_back(b.count);
  return {{"policy", plan.policy},
          {"packer", plan.packer},
          {"microbatches", plan.microbatches},
          {"arena_bytes", plan.arena.count},
          {"peak_live_bytes", plan.peak_live.count},
          {"peak_call", plan.peak_call},
          {"peak_by_role", roles},
          {"costs", plan.costs},
          {"predicted_seconds", plan.predicted_seconds},
          {"flops", plan.flops},
          {"extra_flops", plan.extra_flops},
          {"sources", counts(plan.sources)},
          {"calls", std::move(calls)}};
}

Plan plan_from_json(const nlohmann::json& json) {
  try {
    Plan plan;
    plan.policy = json.at("policy").get<std::string>();
    plan.packer = json.at("packer").get<std::string>();
    plan.microbatches = json.at("microbatches").get<int>();
    plan.arena = Bytes(json.at("arena_bytes").get<int64_t>());
    plan.peak_live = Bytes(json.at("peak_live_bytes").get<int64_t>());
    plan.peak_call = json.at("peak_call").get<int>();
    const auto roles = json.at("peak_by_role").get<std::array<int64_t, kRoles>>();
    for (size_t r = 0; r < roles.size(); ++r) plan.peak_by_role[r] = Bytes(roles[r]);
    plan.costs = json.at("costs").get<std::string>();
    plan.predicted_seconds = json.at("predicted_seconds").get<double>();
    plan.flops = json.at("flops").get<double>();
    plan.extra_flops = json.at("extra_flops").get<double>();
    plan.sources = bytes_from(json.at("sources"));
    for (const nlohmann::json& entry : json.at("calls")) {
      PlannedCall call;
      call.node = NodeId{entry.at("node").get<int32_t>()};
      call.inputs = bytes_from(entry.at("in"));
      call.outputs = bytes_from(entry.at("out"));
      call.recompute = entry.value("recompute", false);
      if (entry.contains("scratch")) {
        const auto scratch = entry.at("scratch").get<std::array<int64_t, 2>>();
        call.workspace_at = Bytes(scratch[0]);
        call.workspace_size = Bytes(scratch[1]);
      }
      plan.calls.push_back(std::move(call));
    }
    return plan;
  } catch (const nlohmann::json::exception& error) {
    user_error("it is not a plan: {}", why_refused(error));
  }
}

}  // namespace thimble
