#include "report/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace thimble {
namespace {

struct Row {
  std::string_view key;    // in JSON
  std::string_view label;  // in tables
  std::vector<Role> roles;
};

// The literature's terms: model = weights, optimizer = gradients + state, activation = the rest.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"weights", "weights", {Role::weight}},
      {"frozen", "frozen weights", {Role::frozen}},
      {"gradients", "weight gradients", {Role::gradient}},
      {"optimizer", "optimizer state", {Role::optimizer_state}},
      {"activations", "activations", {Role::activation}},
      {"workspace", "kernel scratch", {Role::workspace}},
      {"data", "data batch, constants", {Role::input, Role::constant}},
      {"statistics", "running statistics", {Role::statistic}},
  };
  return all;
}

Bytes sum_of(const std::array<Bytes, kRoles>& by_role, const Row& row) {
  Bytes sum;
  for (const Role role : row.roles) sum += by_role[static_cast<size_t>(role)];
  return sum;
}

Bytes total_of(const std::array<Bytes, kRoles>& by_role) {
  Bytes sum;
  for (const Bytes b : by_role) sum += b;
  return sum;
}

// Few nets have frozen weights.
bool is_shown(const Row& row, Bytes bytes) { return row.key != "frozen" || bytes.count > 0; }

std::string bar(double share) {
  return std::string(static_cast<size_t>(std::clamp(share, 0.0, 1.0) * 30 + 0.5), '#');
}

}  // namespace

nlohmann::json plan_summary(const StepFacts& facts, const Graph& graph, const Plan& plan) {
  nlohmann::json bytes;
  for (const Row& row : rows()) bytes[std::string(row.key)] = sum_of(plan.peak_by_role, row).count;
  const auto recomputed = std::count_if(plan.calls.begin(), plan.calls.end(),
                                        [](const PlannedCall& s) { return s.recompute; });
  const double once = plan.flops - plan.extra_flops;
  return {{"model", graph.name},
          {"device", facts.device},
          {"batch", facts.batch},
          {"microbatch", facts.microbatch},
          {"microbatches", plan.microbatches},
          {"planner", plan.policy},
          {"packer", plan.packer},
          {"tier", facts.tier},
          {"parameters", parameter_count(graph)},
          {"arena_bytes", plan.arena.count},
          {"peak_live_bytes", plan.peak_live.count},
          {"bytes", bytes},
          {"nodes", graph.nodes.size()},
          {"calls", plan.calls.size()},
          {"recomputed_calls", recomputed},
          {"flops", plan.flops},
          {"extra_flops_ratio", once > 0 ? plan.extra_flops / once : 0.0},
          {"predicted_step_ms", plan.predicted_seconds * 1000},
          {"costs", plan.costs},
          {"plan_seconds", facts.plan_seconds}};
}

std::string memory_table(const Plan& plan) {
  const Bytes total = total_of(plan.peak_by_role);
  std::string text =
      fmt::format("  {:<24}{:>14}{:>12}{:>7}\n", "at the peak", "bytes", "", "share");
  const auto line = [&](std::string_view label, Bytes bytes) {
    const double share =
        total.count == 0 ? 0 : static_cast<double>(bytes.count) / static_cast<double>(total.count);
    const std::string drawn = bar(share);
    text += fmt::format("  {:<24}{:>14}{:>12}{:>6.1f}%{}{}\n", label, bytes.count, to_string(bytes),
                        100 * share, drawn.empty() ? "" : "  ", drawn);
  };
  for (const Row& row : rows()) {
    const Bytes bytes = sum_of(plan.peak_by_role, row);
    if (is_shown(row, bytes)) line(row.label, bytes);
  }
  line("total live", total);
  text += fmt::format("  {:<24}{:>14}{:>12}   exact; {:.2f}% above the live peak\n", "arena",
                      plan.arena.count, to_string(plan.arena),
                      100.0 * static_cast<double>((plan.arena - plan.peak_live).count) /
                          static_cast<double>(std::max<int64_t>(1, plan.peak_live.count)));
  const auto at = [&](Role role) { return plan.peak_by_role[static_cast<size_t>(role)]; };
  const Bytes model = at(Role::weight) + at(Role::frozen);
  const Bytes optimizer = at(Role::gradient) + at(Role::optimizer_state);
  text += fmt::format("  model {}, optimizer {}, activation and the rest {}\n", to_string(model),
                      to_string(optimizer), to_string(total - model - optimizer));
  return text;
}

std::string comparison_table(const Plan& plan, const std::array<Bytes, kRoles>& measured,
                             Bytes measured_arena) {
  std::string text =
      fmt::format("  {:<24}{:>16}{:>16}\n", "at the peak", "predicted bytes", "measured bytes");
  const auto line = [&](std::string_view label, Bytes predicted, Bytes seen) {
    text += fmt::format("  {:<24}{:>16}{:>16}{}\n", label, predicted.count, seen.count,
                        predicted == seen ? "" : "   differs");
  };
  for (const Row& row : rows()) {
    const Bytes predicted = sum_of(plan.peak_by_role, row), seen = sum_of(measured, row);
    if (is_shown(row, predicted + seen)) line(row.label, predicted, seen);
  }
  line("total live", plan.peak_live, total_of(measured));
  line("arena", plan.arena, measured_arena);
  return text;
}

}  // namespace thimble
