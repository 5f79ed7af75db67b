#include "plan/plan_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/json_object.h"

namespace thimble {
namespace {

std::vector<int64_t> counts(const std::vector<Bytes>& bytes) {
  std::vector<int64_t> result;
  for (const Bytes b : bytes) result.push_back(b.count);
  return result;
}

std::vector<Bytes> bytes_in(const JsonObject& object, const char* key) {
  std::vector<Bytes> result;
  for (const int64_t count : object.wholes(key)) result.emplace_back(count);
  return result;
}

PlannedCall call_from(const nlohmann::json& record) {
  static const std::vector<std::string> kKeys = {"node", "in", "out", "recompute", "scratch"};
  const JsonObject entry(record, "a call of its plan", kKeys);
  PlannedCall call;
  call.node =
      NodeId{static_cast<int32_t>(entry.whole("node", {.least = INT32_MIN, .most = INT32_MAX}))};
  call.inputs = bytes_in(entry, "in");
  call.outputs = bytes_in(entry, "out");
  call.recompute = entry.has("recompute") && entry.toggle("recompute");
  if (entry.has("scratch")) {
    const std::vector<Bytes> scratch = bytes_in(entry, "scratch");
    user_check(scratch.size() == 2, "'scratch' of a call of its plan is a place and a size, not {}",
               record["scratch"].dump());
    call.workspace_at = scratch[0];
    call.workspace_size = scratch[1];
  }
  return call;
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
  static const std::vector<std::string> kKeys = {
      "policy",      "packer",       "microbatches", "arena_bytes",       "peak_live_bytes",
      "peak_call",   "peak_by_role", "costs",        "predicted_seconds", "flops",
      "extra_flops", "sources",      "calls"};
  constexpr WholeLimits kInt = {.least = INT32_MIN, .most = INT32_MAX};
  const JsonObject record(json, "its plan", kKeys);
  Plan plan;
  plan.policy = record.text("policy");
  plan.packer = record.text("packer");
  plan.microbatches = static_cast<int>(record.whole("microbatches", kInt));
  plan.arena = Bytes(record.whole("arena_bytes"));
  plan.peak_live = Bytes(record.whole("peak_live_bytes"));
  plan.peak_call = static_cast<int>(record.whole("peak_call", kInt));
  const std::vector<Bytes> roles = bytes_in(record, "peak_by_role");
  user_check(roles.size() == kRoles, "'peak_by_role' of its plan has {} numbers, not {}",
             roles.size(), kRoles);
  std::ranges::copy(roles, plan.peak_by_role.begin());
  plan.costs = record.text("costs");
  plan.predicted_seconds = record.real("predicted_seconds");
  plan.flops = record.real("flops");
  plan.extra_flops = record.real("extra_flops");
  plan.sources = bytes_in(record, "sources");
  for (const nlohmann::json& call : record.list("calls")) plan.calls.push_back(call_from(call));
  return plan;
}

}  // namespace thimble
