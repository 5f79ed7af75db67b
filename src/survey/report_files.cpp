#include "survey/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/attempt.h"
#include "execute/costs.h"
#include "recipe/settings.h"
#include "report/curves_svg.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/plan_svg.h"
#include "survey/curves.h"
#include "survey/sweep.h"

namespace thimble {
namespace {

// REQUIRES: it is not negative.
std::string grouped(int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// The device that the plan was made for, or, where it is not at hand, none.
std::shared_ptr<Machine> machine_of(const Recipe& recipe, std::vector<std::string>& notes) {
  auto opened = attempt([&] { return Machine::open(recipe); });
  if (const auto* const refused = std::get_if<Refused>(&opened)) {
    notes.push_back(fmt::format("no {} here, so no frontier ({})", recipe.device, refused->why));
    return nullptr;
  }
  return std::get<0>(std::move(opened));
}

// The time of each node: as the run predicted it, else as this machine would.
Costs node_costs(const ReportRequest& request, const Graph& graph, Machine* machine) {
  const Plan& plan = request.plan.plans.front().plan;
  if (request.run != nullptr && request.run->trace) {
    Costs costs = {.nodes = std::vector<NodeCost>(graph.nodes.size()),
                   .source = request.run->trace->costs};
    for (size_t s = 0; s < plan.calls.size(); ++s) {
      const NodeId node = plan.calls[s].node;
      const int runs = graph[node].phase == Phase::per_microbatch ? plan.microbatches : 1;
      costs.nodes[node.at()].seconds = request.run->trace->planned_seconds[s] / runs;
    }
    return costs;
  }
  if (machine != nullptr) return machine->price(request.plan.recipe, graph);
  const auto none = make_backend(planning_device(), DeviceOptions());
  return gather_costs(graph, *none);
}

std::vector<double> call_seconds(const Graph& graph, const Plan& plan, const Costs& costs) {
  std::vector<double> seconds;
  for (const PlannedCall& call : plan.calls) {
    const int runs = graph[call.node].phase == Phase::per_microbatch ? plan.microbatches : 1;
    seconds.push_back(runs * costs.nodes[call.node.at()].seconds);
  }
  return seconds;
}

std::vector<KeptAs> encoded_in(const Graph& graph) {
  std::vector<KeptAs> all;
  for (const Encoded& encoded : find_encoded(graph)) {
    all.push_back({encoded.value, std::string(name_of(encoded.codec)), encoded.code});
  }
  return all;
}

std::vector<RecipeLine> recipe_lines(Recipe recipe, const std::optional<SelectionRecord>& choices) {
  const Settings chosen = settings_of(recipe);
  std::vector<RecipeLine> lines;
  for_each_field(recipe, [&](const Field& field) {
    if (field.get().is_null() || !field.about().unused_reason.empty()) return;
    lines.push_back({std::string(field.group()), field.name(),
                     as_asked(choices, field.name()).value_or(field.text()),
                     chosen.contains(field.name())});
  });
  return lines;
}

const FrontierPoint* point_of(const std::vector<FrontierPoint>& points, std::string_view policy) {
  const auto found = std::ranges::find(points, policy, &FrontierPoint::policy);
  return found == points.end() ? nullptr : &*found;
}

FrontierPoint point_at(const Plan& plan) {
  return {.policy = {}, .arena = plan.arena, .milliseconds = 1e3 * plan.predicted_seconds};
}

std::string batch_of(const Recipe& recipe) {
  const Microbatches m = microbatches_of(recipe);
  const std::string batch = recipe.tokens > 0 ? fmt::format("batches of {} tokens", recipe.tokens)
                                              : fmt::format("batch {}", m.batch);
  if (recipe.tokens > 0 && recipe.microbatch_tokens > 0) {
    return fmt::format("{} in microbatches of {} at most", batch, recipe.microbatch_tokens);
  }
  return m.count() > 1 ? fmt::format("{} in microbatches of {}", batch, m.rows) : batch;
}

std::vector<Headline> headlines_of(const ReportData& data, const Recipe& recipe) {
  const Plan& plan = data.plan;
  std::vector<Headline> all;
  const std::string of_budget =
      data.budget.count > 0 ? ", of a budget of " + to_string(data.budget) : "";
  all.push_back(
      {"Arena", to_string(plan.arena), grouped(plan.arena.count) + " bytes, exact" + of_budget});

  const std::string predicted = fmt::format("{:.4g} ms", 1e3 * plan.predicted_seconds);
  const double measured = 1e3 * data.measured_step_seconds;
  all.push_back({"A step takes", measured > 0 ? fmt::format("{:.4g} ms", measured) : predicted,
                 fmt::format("{}predicted ({})", measured > 0 ? predicted + " " : "", plan.costs)});

  const FrontierPoint* const kept = point_of(data.frontier, keep_all_policy());
  if (kept != nullptr && kept->arena > plan.arena) {
    all.push_back({"Below keeping everything",
                   fmt::format("{:.1f}×", static_cast<double>(kept->arena.count) /
                                              static_cast<double>(plan.arena.count)),
                   fmt::format("{} at {:.3g}× its time", to_string(kept->arena),
                               1e3 * plan.predicted_seconds / kept->milliseconds)});
  }

  const auto again = std::ranges::count_if(plan.calls, &PlannedCall::recompute);
  const double once = plan.flops - plan.extra_flops;
  all.push_back({"Computed again", grouped(again) + (again == 1 ? " call" : " calls"),
                 fmt::format("of {}; {:.3g} % more FLOPs", grouped(std::ssize(plan.calls)),
                             once > 0 ? 100 * plan.extra_flops / once : 0)});

  const NumericsTier tier = tier_of(data.graph, most_microbatches(recipe), recipe.optimizer);
  all.push_back({"The numbers are", std::string(name_of(tier)), batch_of(recipe)});

  for (const Curve& curve : data.curves) {
    if (curve.name != "test" || curve.chart == "loss") continue;
    const double last = curve.values.back();
    all.push_back(
        {"Test " + curve.chart,
         curve.share ? fmt::format("{:.2f} %", 100 * last) : fmt::format("{:.4g}", last),
         fmt::format("after {} steps", grouped(static_cast<int64_t>(curve.steps.back())))});
  }
  return all;
}

std::vector<DrawnPicture> pictures_of(const ReportData& data) {
  std::vector<DrawnPicture> pictures = {{"memory", memory_svg(data.graph, data.plan, data.budget)},
                                        {"addresses", plan_svg(data.graph, data.plan)}};
  if (!data.frontier.empty()) {
    pictures.push_back(
        {"frontier", frontier_svg(fmt::format("{}: memory against predicted time ({})",
                                              data.graph.name, data.frontier_costs),
                                  data.frontier, point_at(data.plan))});
  }
  std::set<std::string> drawn;
  for (const Curve& curve : data.curves) {
    if (!drawn.insert(curve.chart).second) continue;
    std::vector<Curve> together;
    std::ranges::copy_if(data.curves, std::back_inserter(together),
                         [&](const Curve& c) { return c.chart == curve.chart; });
    std::string name = curve.chart;
    std::ranges::replace(name, ' ', '-');
    pictures.push_back({name, curves_svg(data.graph.name + ": " + curve.chart, together)});
  }
  return pictures;
}

}  // namespace

ReportFiles make_report(const ReportRequest& request) {
  const Recipe& recipe = request.plan.recipe;
  const ShapedPlan& shaped = request.plan.plans.front();
  const TrainingGraph training = make_graph(recipe, shaped.shape);
  const Graph& graph = training.model.graph;
  const Plan& plan = shaped.plan;
  ReportFiles report;
  const auto machine = machine_of(recipe, report.notes);
  const Costs costs = node_costs(request, graph, machine.get());
  ReportData data = {.title = recipe.model.name, .graph = graph, .plan = plan};
  data.budget = recipe.memory.value_or(Bytes());
  data.choices = request.plan.choices;
  if (request.frontier && machine != nullptr) {
    Frontier frontier = sweep(recipe, *machine);
    data.frontier = std::move(frontier.points);
    data.frontier_costs = frontier.costs;
  }
  data.why = explain_values({.graph = graph,
                             .costs = costs,
                             .plan = plan,
                             .encoded = encoded_in(graph),
                             .price = price_of_memory(data.frontier, point_at(plan)) / 1e3});
  data.planned_seconds = call_seconds(graph, plan, costs);
  if (request.run != nullptr) {
    if (request.run->trace) data.measured.call_seconds = request.run->trace->measured_seconds;
    data.curves = curves_of(request.run->metrics, training.model.metrics);
    data.measured_step_seconds = median_step_seconds(request.run->metrics);
    std::ranges::copy(request.run->missing, std::back_inserter(report.notes));
  }
  data.recipe = recipe_lines(recipe, request.plan.choices);
  data.headlines = headlines_of(data, recipe);
  data.subtitle = fmt::format("{} parameters on {}, planner {}", grouped(parameter_count(graph)),
                              recipe.device, plan.policy);
  data.notes = report.notes;
  report.page =
      make_page("report", recipe.model.name + " in " + to_string(plan.arena), report_json(data));
  report.pictures = pictures_of(data);
  return report;
}

}  // namespace thimble
