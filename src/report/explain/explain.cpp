// Makes what report/explain/explanation.h says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/pipeline.h"
#include "plan/bytes/peak.h"
#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"
#include "plan/search/optimal_planner.h"
#include "report/explain/explanation.h"

namespace thimble {
namespace {

constexpr double kMib = 1 << 20;

double mib(Bytes bytes) { return static_cast<double>(bytes.count) / kMib; }

void add_live(const PlannedTraining& training, Explanation& why) {
  const Graph& graph = training.graph();
  for (const LiveValue& live : live_at_peak(graph, training.full().costs, training.plan())) {
    const Value& value = graph[live.value];
    const double again = live.seconds_per_byte * static_cast<double>(live.bytes.count) * 1e3;
    why.live.push_back({.name = value.name,
                        .role = std::string(name_of(value.role)),
                        .type = to_string(value.type),
                        .bytes = live.bytes,
                        .made = live.made,
                        .last_read = live.last_read,
                        .again_ms = live.seconds_per_byte < 0 ? -1 : again});
  }
}

// The step's frontier: budgets from the plan that keeps everything down to the smallest.
void add_frontier(const PlannedTraining& training, Explanation& why) {
  const PlanRequest request = training.full().request();
  OptimalPlanner planner(request);
  const Plan& plan = training.plan();
  const SchedulePool::Pick most = planner.choose({});
  const SchedulePool::Pick least = planner.choose(kLeastMemory);
  const auto add = [&](const SchedulePool::Pick& pick) {
    why.frontier.push_back({.arena = pick.arena, .ms = pick.seconds * 1e3});
  };
  add(most);
  constexpr int kPoints = 14;
  const double ratio =
      static_cast<double>(least.arena.count) / static_cast<double>(most.arena.count);
  for (int i = 1; i < kPoints; ++i) {
    const double scale = std::pow(ratio, static_cast<double>(i) / kPoints);
    const auto budget = static_cast<int64_t>(static_cast<double>(most.arena.count) * scale);
    add(planner.choose(std::max(Bytes(budget), least.arena)));
  }
  add(least);
  why.frontier.push_back({.arena = plan.arena, .ms = plan.predicted_seconds * 1e3, .chosen = true});
  std::ranges::stable_sort(why.frontier, [](const PricePoint& a, const PricePoint& b) {
    return std::pair(b.arena, a.ms) < std::pair(a.arena, b.ms);
  });
  const auto same = [](const PricePoint& a, const PricePoint& b) {
    return a.arena == b.arena && !b.chosen;
  };
  why.frontier.erase(std::unique(why.frontier.begin(), why.frontier.end(), same),
                     why.frontier.end());
  for (size_t i = 1; i < why.frontier.size(); ++i) {
    const PricePoint& before = why.frontier[i - 1];
    PricePoint& point = why.frontier[i];
    const double less = mib(before.arena - point.arena);
    point.ms_per_mib = less > 0 ? (point.ms - before.ms) / less : 0;
  }
  if (plan.arena <= least.arena) return;
  // Layouts move in steps: the price is that of the first plan that is a MiB smaller, spread over it.
  const Bytes asked = std::max(least.arena, plan.arena - Bytes(int64_t{1} << 20));
  const SchedulePool::Pick next = planner.choose(asked);
  const double less = mib(plan.arena - next.arena);
  if (less > 0) {
    why.next_mib_ms = std::max(0.0, next.seconds - plan.predicted_seconds) * 1e3 / less;
  }
}

// The price of a MiB beside that of a tensor, `own`, in words.
std::string reason(const PlannedTraining& training, const ForwardPass& pass, ValueId value,
                   bool recomputed, int recomputed_readers, double own, double next) {
  const Node& maker = training.graph()[pass.maker(value)];
  if (maker.mark == Mark::keep) return "--keep says so";
  if (maker.mark == Mark::recompute) return "--recompute says so";
  if (maker.op->recompute == Recompute::never) {
    return fmt::format("{} may run only once a step", maker.op->name);
  }
  const std::string price = fmt::format("its op alone takes {:.3g} ms per MiB", own);
  if (recomputed) return price + ", and its bytes serve others meanwhile";
  if (recomputed_readers > 0) {
    return fmt::format(
        "{} recomputed from it",
        recomputed_readers == 1 ? "another is" : fmt::format("{} others are", recomputed_readers));
  }
  if (next <= 0) return price + " again, and there is room for it";
  return fmt::format("{} again, what it reads apart; the next MiB of the arena costs {:.3g}", price,
                     next);
}

void add_tensors(const PlannedTraining& training, Explanation& why) {
  const Graph& graph = training.graph();
  const ForwardPass pass(graph);
  const std::vector<ValueResidency> fates = residencies_of(graph, training.plan());
  const std::vector<int> readers = recomputed_readers(graph, training.plan());
  const auto again_ms = [&](ValueId value) {
    const NodeId maker = graph[value].producer;
    return training.full().costs.nodes[maker.at()].seconds * training.plan().microbatches * 1e3;
  };
  const auto add = [&](ValueId value, ValueId kept, Bytes bytes, const std::string& as) {
    const bool recomputed = fates[kept.at()] == ValueResidency::recomputed;
    TensorResidency fate = {.name = graph[value].name,
                            .fate = (recomputed ? "computed again" : "kept") + as,
                            .residency = recomputed   ? "recomputed"
                                         : as.empty() ? "kept"
                                                      : "compressed",
                            .bytes = graph[value].type.bytes(),
                            .kept = recomputed ? Bytes() : bytes,
                            .again_ms = again_ms(value)};
    fate.why = reason(training, pass, value, recomputed, readers[value.at()],
                      fate.again_ms / mib(fate.bytes), why.next_mib_ms);
    why.tensors.push_back(std::move(fate));
  };
  std::vector<bool> is_code(graph.values.size(), false);
  const std::vector<Encoded> all = find_encoded(graph);
  for (const Encoded& encoded : all) {
    for (const ValueId part : encoded.code) is_code[part.at()] = true;
  }
  CodecSpec any = training.recipe.codec;
  any.only.clear();
  for (const Encodable& whole : find_encodable(graph, any)) {
    if (is_code[whole.value.at()] || !graph[whole.value].producer.valid()) continue;
    add(whole.value, whole.value, graph[whole.value].type.bytes(), "");
  }
  for (const Encoded& encoded : all) {
    Bytes bytes;
    for (const ValueId part : encoded.code) bytes += graph[part].type.bytes();
    add(encoded.value, encoded.code[0], bytes, fmt::format(" as {}", name_of(encoded.codec)));
  }
}

}  // namespace

Explanation explain(const PlannedTraining& training) {
  const Plan& plan = training.plan();
  Explanation why = {
      .arena = plan.arena,
      .peak = plan.peak_live,
      .peak_call = plan.peak_call,
      .peak_node = training.graph()[plan.calls[static_cast<size_t>(plan.peak_call)].node].name};
  add_live(training, why);
  add_frontier(training, why);
  add_tensors(training, why);
  if (training.report) {
    why.gains = training.report->gains;
    why.plain_arena = training.report->plain_arena;
    why.plain_ms = training.report->plain_ms;
  }
  return why;
}

}  // namespace thimble
