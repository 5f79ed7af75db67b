#include "survey/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
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
  try {
    return Machine::open(recipe);
  } catch (const UserError& error) {
    notes.push_back(fmt::format("no {} here, so no frontier ({})", recipe.device, error.what()));
    return nullptr;
  }
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
  const auto none = make_backend("null", {});
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

class HeadlineWriter {
 public:
  HeadlineWriter(const ReportRequest& request, const ReportData& data)
      : recipe_(request.plan.recipe), data_(data), run_(request.run) {}

  std::vector<Headline> run() {
    arena();
    time();
    against_keeping_everything();
    recomputation();
    numbers();
    results();
    return std::move(all_);
  }

 private:
  void arena() {
    std::string note = grouped(data_.plan.arena.count) + " bytes, exact";
    if (data_.budget.count > 0) note += ", of a budget of " + to_string(data_.budget);
    all_.push_back({"Arena", to_string(data_.plan.arena), note});
  }

  void time() {
    const double predicted = 1e3 * data_.plan.predicted_seconds;
    const double measured = 1e3 * data_.measured_step_seconds;
    const std::string said = fmt::format("{:.4g} ms predicted ({})", predicted, data_.plan.costs);
    if (measured > 0) {
      all_.push_back({"A step takes", fmt::format("{:.4g} ms", measured), said});
    } else {
      all_.push_back({"A step takes", fmt::format("{:.4g} ms", predicted),
                      fmt::format("predicted ({})", data_.plan.costs)});
    }
  }

  void against_keeping_everything() {
    const FrontierPoint* all = point_of(data_.frontier, keep_all_policy());
    if (all == nullptr || all->arena.count <= data_.plan.arena.count) return;
    all_.push_back({"Below keeping everything",
                    fmt::format("{:.1f}×", static_cast<double>(all->arena.count) /
                                               static_cast<double>(data_.plan.arena.count)),
                    fmt::format("{} at {:.3g}× its time", to_string(all->arena),
                                1e3 * data_.plan.predicted_seconds / all->milliseconds)});
  }

  void recomputation() {
    const auto again = std::ranges::count_if(data_.plan.calls, &PlannedCall::recompute);
    const double once = data_.plan.flops - data_.plan.extra_flops;
    all_.push_back({"Computed again", grouped(again) + (again == 1 ? " call" : " calls"),
                    fmt::format("of {}; {:.3g} % more FLOPs", grouped(std::ssize(data_.plan.calls)),
                                once > 0 ? 100 * data_.plan.extra_flops / once : 0)});
  }

  void numbers() {
    const NumericsTier tier = tier_of(data_.graph, most_microbatches(recipe_), recipe_.optimizer);
    const Microbatches m = microbatches_of(recipe_);
    std::string batch = recipe_.tokens > 0 ? fmt::format("batches of {} tokens", recipe_.tokens)
                                           : fmt::format("batch {}", m.batch);
    if (recipe_.tokens > 0 && recipe_.microbatch_tokens > 0) {
      batch += fmt::format(" in microbatches of {} at most", recipe_.microbatch_tokens);
    } else if (m.count() > 1) {
      batch += fmt::format(" in microbatches of {}", m.rows);
    }
    all_.push_back({"The numbers are", std::string(name_of(tier)), batch});
  }

  void results() {
    for (const Curve& curve : data_.curves) {
      if (curve.name != "test" || curve.chart == "loss" || curve.values.empty()) continue;
      const double last = curve.values.back();
      all_.push_back(
          {"Test " + curve.chart,
           curve.share ? fmt::format("{:.2f} %", 100 * last) : fmt::format("{:.4g}", last),
           fmt::format("after {} steps", grouped(static_cast<int64_t>(curve.steps.back())))});
    }
  }

  const Recipe& recipe_;
  const ReportData& data_;
  const RunRecord* run_;
  std::vector<Headline> all_;
};

std::vector<Picture> pictures_of(const ReportData& data) {
  std::vector<Picture> pictures = {{"memory", memory_svg(data.graph, data.plan, data.budget)},
                                   {"addresses", plan_svg(data.graph, data.plan)}};
  if (!data.frontier.empty()) {
    FrontierPoint chosen;
    chosen.arena = data.plan.arena;
    chosen.milliseconds = 1e3 * data.plan.predicted_seconds;
    pictures.push_back(
        {"frontier", frontier_svg(fmt::format("{}: memory against predicted time ({})",
                                              data.graph.name, data.frontier_costs),
                                  data.frontier, chosen)});
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
  FrontierPoint here;
  here.arena = plan.arena;
  here.milliseconds = 1e3 * plan.predicted_seconds;
  data.why = explain_values({.graph = graph,
                             .costs = costs,
                             .plan = plan,
                             .encoded = encoded_in(graph),
                             .price = price_of_memory(data.frontier, here) / 1e3});
  data.planned_seconds = call_seconds(graph, plan, costs);
  if (request.run != nullptr) {
    if (request.run->trace) data.measured.call_seconds = request.run->trace->measured_seconds;
    data.curves = curves_of(request.run->metrics, training.model.metrics);
    data.measured_step_seconds = median_step_seconds(request.run->metrics);
    std::ranges::copy(request.run->missing, std::back_inserter(report.notes));
  }
  data.recipe = recipe_lines(recipe, request.plan.choices);
  data.headlines = HeadlineWriter(request, data).run();
  data.subtitle = fmt::format("{} parameters on {}, planner {}", grouped(parameter_count(graph)),
                              recipe.device, plan.policy);
  data.notes = report.notes;
  report.page =
      make_page("report", recipe.model.name + " in " + to_string(plan.arena), report_json(data));
  report.pictures = pictures_of(data);
  return report;
}

}  // namespace thimble
