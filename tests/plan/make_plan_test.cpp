#include "plan/make_plan.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "plan/plan_json.h"
#include "plan/policy.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

TEST(MakePlan, TheBudgetIsOnTheArenaToTheByte) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_lstm()}) {
    SCOPED_TRACE(options.name);
    const Case c = planned_model(options);
    const auto with = [&](Bytes budget) {
      return make_plan({.graph = c.graph, .costs = c.costs, .budget = budget});
    };
    const PlanResult exact = with(c.plan.arena);
    ASSERT_TRUE(std::holds_alternative<Plan>(exact));
    EXPECT_EQ(std::get<Plan>(exact), c.plan);
    const PlanResult less = with(c.plan.arena - Bytes(1));
    ASSERT_TRUE(std::holds_alternative<Infeasible>(less));
    EXPECT_EQ(std::get<Infeasible>(less).min_bytes, c.plan.arena);
    EXPECT_FALSE(std::get<Infeasible>(less).why.empty());
    EXPECT_TRUE(std::holds_alternative<Infeasible>(with(Bytes(1))));
  }
}

// A planner meets the smallest budget that it names. A plan for a budget is inside the budget, and
// sound.
TEST(MakePlan, EveryPlannerKeepsItsWord) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_lstm()}) {
    const Case c = planned_model(options);
    for (const Policy* policy : all_policies()) {
      SCOPED_TRACE(fmt::format("{}, {}", options.name, policy->name));
      const auto with = [&](std::optional<Bytes> budget) {
        return make_plan({.graph = c.graph,
                          .costs = c.costs,
                          .budget = budget,
                          .policy = std::string(policy->name)});
      };
      const auto expect_sound = [&](const PlanResult& result, Bytes budget) {
        ASSERT_TRUE(std::holds_alternative<Plan>(result));
        EXPECT_EQ(find_fault(c.graph, c.costs, std::get<Plan>(result)), std::nullopt);
        EXPECT_LE(std::get<Plan>(result).arena, budget);
      };
      const Bytes most = c.plan.arena;
      for (const int64_t percent : {100, 95, 80, 60, 1}) {
        const Bytes budget(most.count * percent / 100);
        const PlanResult result = with(budget);
        if (const auto* infeasible = std::get_if<Infeasible>(&result)) {
          EXPECT_GT(infeasible->min_bytes, budget);
          EXPECT_FALSE(infeasible->why.empty());
          expect_sound(with(infeasible->min_bytes), infeasible->min_bytes);
        } else {
          expect_sound(result, budget);
        }
      }
    }
  }
}

TEST(MakePlan, PeaksByRoleAddUp) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_resnet(), small_lstm()}) {
    const Plan plan = planned_model(options).plan;
    const Bytes sum = std::accumulate(plan.peak_by_role.begin(), plan.peak_by_role.end(), Bytes());
    EXPECT_EQ(sum, plan.peak_live) << options.name;
    EXPECT_GE(plan.arena, plan.peak_live) << options.name;
  }
}

// Bytes of a plan counted by hand.
TEST(MakePlan, BytesOfASmallStep) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);       // 256
  const ValueId w = b.weight("w", kSquare, {});  // 256, persistent
  const ValueId y = b.op("matmul", {x, w});      // 256; 100 scratch
  graph.results = {b.op("relu", {y})};           // in place
  Costs costs = flat_costs(graph);
  costs.nodes[0].workspace = Bytes(100);  // takes 128
  const auto plan = [&](Sharing sharing) {
    return std::get<Plan>(make_plan({.graph = graph, .costs = costs, .sharing = sharing}));
  };
  EXPECT_EQ(plan(Sharing::sharing).arena, Bytes(256 + 256 + 256 + 128));
  EXPECT_EQ(plan(Sharing::sharing).peak_live, Bytes(256 + 256 + 256 + 128));
  EXPECT_EQ(plan(Sharing::sharing).peak_call, 0);
  EXPECT_EQ(plan(Sharing::in_place).arena, Bytes(256 + 256 + 256 + 128));
  EXPECT_EQ(plan(Sharing::none).arena, Bytes(256 + 256 + 256 + 256 + 128));
  const Plan shared = plan(Sharing::sharing);
  const auto role = [&](Role r) { return shared.peak_by_role[static_cast<size_t>(r)]; };
  EXPECT_EQ(role(Role::input), Bytes(256));
  EXPECT_EQ(role(Role::weight), Bytes(256));
  EXPECT_EQ(role(Role::activation), Bytes(256));
  EXPECT_EQ(role(Role::workspace), Bytes(128));
  EXPECT_EQ(shared.predicted_seconds, 2);
  EXPECT_EQ(shared.flops, 2);
  EXPECT_EQ(shared.extra_flops, 0);
}

TEST(MakePlan, SharingSavesAndRecomputationCosts) {
  const Case c = planned_model(small_wrn());
  const auto arena = [&](Sharing sharing) {
    return lay_out({.graph = c.graph, .costs = c.costs, .sharing = sharing}, schedule_of(c.plan))
        .arena;
  };
  EXPECT_LT(arena(Sharing::in_place), arena(Sharing::none));
  EXPECT_LT(arena(Sharing::sharing), arena(Sharing::in_place));
  const Case again = recomputed(c, 3, 0.2);
  double extra = 0, all = 0;
  for (const PlannedCall& call : again.plan.calls) {
    const double flops = c.costs.nodes[call.node.at()].flops;
    all += flops;
    extra += call.recompute ? flops : 0;
  }
  EXPECT_GT(extra, 0);
  EXPECT_DOUBLE_EQ(again.plan.extra_flops, extra);
  EXPECT_DOUBLE_EQ(again.plan.flops, all);
  EXPECT_EQ(c.plan.extra_flops, 0);
}

TEST(MakePlan, DroppingEarlyAndRecomputingSavesBytes) {
  // Two long-lived squares that are cheap to make again.
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", {{1, 8}, DType::f32});
  const ValueId big = b.op("broadcast_to", {x}, {{"shape", std::vector<int64_t>{512, 8}}});  // 0
  const ValueId used = b.op("reduce", {big}, {{"axes", std::vector<int64_t>{0, 1}}});        // 1
  const TensorType wide = {{512, 8}, DType::f32};
  const ValueId other = b.op("broadcast_to", {b.op("scale", {x}, {{"factor", 2.0}})},
                             {{"shape", std::vector<int64_t>{512, 8}}});                // 2, 3
  const ValueId sum = b.op("reduce", {other}, {{"axes", std::vector<int64_t>{0, 1}}});  // 4
  graph.results = {used, sum, b.op("reduce", {big}, {{"axes", std::vector<int64_t>{0, 1}}})};  // 5
  const Costs costs = flat_costs(graph);
  const Plan kept = std::get<Plan>(make_plan({.graph = graph, .costs = costs}));
  Schedule schedule = schedule_of(kept);
  schedule.calls.insert(schedule.calls.end() - 1, {NodeId{0}, true});
  const Plan dropped = lay_out({.graph = graph, .costs = costs}, schedule);
  EXPECT_EQ(find_fault(graph, costs, dropped), std::nullopt);
  // One of the wide ones goes; x, a unit of 64 bytes, has to stay for it.
  EXPECT_EQ(kept.arena - dropped.arena, wide.bytes() - Bytes(64));
}

TEST(MakePlan, UnknownPlannersAreNamed) {
  Graph graph;
  const Costs costs = flat_costs(graph);
  try {
    make_plan({.graph = graph, .costs = costs, .policy = "clairvoyant"});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'clairvoyant'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("keep_all"), std::string::npos);
  }
}

TEST(MakePlan, FixedSourcesStayWhereTheyAre) {
  const Case c = planned_model(small_mlp());
  std::vector<Bytes> fixed(c.graph.values.size(), Bytes(-1));
  Bytes reserved;
  for (size_t v = 0; v < c.graph.values.size(); ++v) {
    const Value& value = c.graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    fixed[v] = Bytes(1 << 20) + c.plan.sources[v];
    reserved = std::max(reserved, align_up(fixed[v] + value.type.bytes()));
  }
  const Plan plan = std::get<Plan>(
      make_plan({.graph = c.graph, .costs = c.costs, .fixed = fixed, .reserved = reserved}));
  EXPECT_EQ(find_fault(c.graph, c.costs, plan), std::nullopt);
  EXPECT_EQ(plan.arena, c.plan.arena + Bytes(1 << 20));
  for (size_t v = 0; v < fixed.size(); ++v) {
    if (fixed[v].count < 0) continue;
    EXPECT_EQ(plan.sources[v], fixed[v]);
  }
}

TEST(PlanJson, ThereAndBack) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_lstm()}) {
    const Case c = planned_model(options);
    for (const Plan& plan : {c.plan, recomputed(c, 1, 0.2).plan}) {
      const std::string text = to_json(plan).dump();
      EXPECT_EQ(plan_from_json(nlohmann::json::parse(text)), plan) << options.name;
    }
  }
}

TEST(PlanJson, WhatIsNoPlanIsTheCallersMistake) {
  const nlohmann::json good = to_json(planned_model(small_mlp()).plan);
  EXPECT_THROW(plan_from_json(nlohmann::json::parse("[]")), UserError);
  EXPECT_THROW(plan_from_json(nlohmann::json::parse("{}")), UserError);
  for (const auto& [key, value] : good.items()) {
    nlohmann::json without = good;
    without.erase(key);
    EXPECT_THROW(plan_from_json(without), UserError) << key;
    nlohmann::json other = good;
    other[key] = nlohmann::json::object({{"x", "y"}});
    EXPECT_THROW(plan_from_json(other), UserError) << key;
  }
  nlohmann::json roles = good;
  roles["peak_by_role"].erase(0);
  EXPECT_THROW(plan_from_json(roles), UserError);
}

}  // namespace
}  // namespace thimble
