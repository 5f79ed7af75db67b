#include "fit/step.h"

#include <algorithm>
#include <set>

#include "plan/make_plan.h"
#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

TrainingGraph graph_of(const Recipe& recipe) {
  return make_graph(recipe, step_shapes(recipe).front());
}

Costs scaled_costs(const Recipe& recipe, const Graph& graph, Backend& backend, double share) {
  Costs costs = costs_of(recipe, graph, backend);
  if (costs.share != 1) return costs;
  for (NodeCost& node : costs.nodes) node.seconds *= share;
  return costs;
}

PlanRequest without_budget(PlanRequest request) {
  request.budget = {};
  return request;
}

// What records of all lengths take in one arena, everything computed once; 0 where the step's own are known
// to take most. Of batches by tokens any may.
Bytes arena_of_lengths(Recipe recipe) {
  if (recipe.tokens == 0 || token_batches(recipe).size() == 1) return {};
  recipe.planner = "keep_all";
  recipe.memory.reset();
  recipe.allow = Tier::approximate;  // whose choice it is, is not asked here
  return std::get<PlannedTraining>(plan_training(recipe)).plan().arena;
}

// Of a microbatch, everything computed once.
double each_seconds(const Graph& graph, const Costs& costs) {
  double seconds = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].phase == Phase::each) seconds += costs.nodes[n].seconds;
  }
  return seconds;
}

// By value: the one whose bytes it lies in, through views and next versions.
std::vector<ValueId> bytes_owners(const Graph& graph) {
  const std::vector<ValueId> previous = previous_versions(graph);
  std::vector<ValueId> owner(graph.values.size());
  for (size_t v = 0; v < owner.size(); ++v) {
    if (!graph.values[v].producer.valid()) owner[v] = make_id<ValueId>(v);
  }
  for (const Node& node : graph.nodes) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      const ValueId before = node.op->view && k == 0 ? node.inputs[0] : previous[output.at()];
      owner[output.at()] = before.valid() ? owner[before.at()] : output;
    }
  }
  return owner;
}

// Of no rows: it is as large as the others.
VariantShape last_shape(const Recipe& recipe) {
  VariantShape shape = step_shapes(recipe).front();
  shape.rows = microbatches_of(recipe, shape.length).rest;
  return shape;
}

PlanRequest once_a_step(PlanRequest request) {
  request.microbatches = 1;
  return request;
}

}  // namespace

FitStep::Built::Built(const Recipe& recipe, Backend& backend, double share)
    : training(graph_of(recipe)),
      costs(scaled_costs(recipe, training.model.graph, backend, share)),
      request(without_budget(
          request_for(recipe, step_shapes(recipe).front(), training.model.graph, costs))) {}

FitStep::FitStep(Candidate candidate, Backend& backend, double share)
    : candidate_(std::move(candidate)),
      backend_(backend),
      share_(share),
      nodes_(graph().nodes.size()),
      is_optimal_(request().policy == "optimal"),
      once_cost_(cost_of(request(), schedule_once(request()))),
      last_saves_(find_last_saves()) {
  if (!is_optimal_) let_recompute();  // a policy by name does as it does
  find_bounds();
}

struct FitStep::Last {
  TrainingGraph training;
  Costs costs;
  PlanRequest request;
  ScheduleCost once;
  std::unique_ptr<OptimalPlanner> planner;

  Last(const Recipe& recipe, Backend& backend, double share)
      : training(make_graph(recipe, last_shape(recipe))),
        costs(scaled_costs(recipe, training.model.graph, backend, share)),
        request(once_a_step(
            without_budget(request_for(recipe, last_shape(recipe), training.model.graph, costs)))),
        once(cost_of(request, schedule_once(request))) {}

  double seconds_within(Bytes arena) {
    if (once.live_peak <= arena) return once.seconds;
    if (!planner) planner = std::make_unique<OptimalPlanner>(request);
    return planner->choose(arena).seconds;
  }
};

FitStep::~FitStep() = default;

double FitStep::with_last(double seconds, const Schedule& schedule, Bytes arena) {
  if (last_saves_ == 0) return seconds;
  if (!last_) last_ = std::make_unique<Last>(candidate_.recipe, backend_, share_);
  return seconds - predicted_seconds(once_a_step(request()), schedule) +
         last_->seconds_within(arena);
}

double FitStep::find_last_saves() const {
  const Recipe& recipe = candidate_.recipe;
  const VariantShape shape = last_shape(recipe);
  if (shape.rows == 0) return 0;
  const TrainingGraph last = make_graph(recipe, shape);
  const Costs its = scaled_costs(recipe, last.model.graph, backend_, share_);
  return each_seconds(graph(), costs()) - each_seconds(last.model.graph, its);
}

const FitStep::Built& FitStep::built() const {
  if (!built_) built_ = std::make_unique<Built>(candidate_.recipe, backend_, share_);
  return *built_;
}

void FitStep::let_go() const {
  if (!planner_) built_.reset();
}

const FitStep::Pick& FitStep::first_once() const {
  if (!first_once_) {
    const bool was_there = built_ != nullptr;
    const Plan plan = lay_out(request(), schedule_once(request()));
    first_once_ = {plan.predicted_seconds - last_saves_, plan.arena};
    if (!was_there) let_go();
  }
  return *first_once_;
}

const FitStep::Pick& FitStep::once() const {
  if (!once_) {
    const Bytes all = arena_of_lengths(candidate_.recipe);
    once_ = {first_once().seconds, std::max(first_once().arena, all)};
  }
  return *once_;
}

void FitStep::find_bounds() {
  const ForwardPass pass(graph());
  const std::vector<ValueId> owner = bytes_owners(graph());
  const auto size = [&](ValueId value) { return align_up(graph()[value].type.bytes()); };
  const auto is_carried = [&](ValueId value) {
    const Value& v = graph()[value];
    return v.producer.valid() && graph()[v.producer].phase == Phase::begin;
  };
  const auto stays = [&](ValueId value) {
    const Value& v = graph()[value];
    return (!v.producer.valid() && is_persistent(v.role)) || is_carried(value);
  };
  for (size_t v = 0; v < graph().values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (owner[v] != value || !stays(value)) continue;
    (is_carried(value) ? carried_ : persistent_) += size(value);
  }
  // The call that needs most by itself.
  Bytes most;
  for (size_t n = 0; n < graph().nodes.size(); ++n) {
    const Node& node = graph().nodes[n];
    if (node.op->view) continue;
    Bytes needs = align_up(costs().nodes[n].workspace);
    std::set<ValueId> read;
    for (const ValueId input : node.inputs) {
      const ValueId bytes = owner[input.at()];
      if (!stays(bytes) && read.insert(bytes).second) needs += size(bytes);
    }
    const bool apart = node.op->in_place.empty() && node.op->updates.empty();
    for (const ValueId output : node.outputs) {
      if (apart && owner[output.at()] == output && !stays(output)) needs += size(output);
    }
    most = std::max(most, needs);
  }
  largest_call_ = persistent_ + carried_ + most;
  // Between the passes, what the backward pass reads is there, or will be computed again: its node,
  // once a microbatch at least.
  const int alike = request().microbatches - (last_saves_ > 0 ? 1 : 0);
  for (const NodeId id : pass.nodes) {
    const Node& node = graph()[id];
    if (node.op->view || node.mark == Mark::recompute) continue;
    Kept kept = {costs().nodes[id.at()].seconds * alike, {}};
    bool again = true;
    for (const ValueId output : node.outputs) {
      if (!pass.read_backward[output.at()] || owner[output.at()] != output) continue;
      kept.bytes += size(output);
      again = again && can_recompute(pass, output);
    }
    if (kept.bytes == Bytes()) continue;
    if (again) {
      kept_.push_back(kept);
    } else {
      kept_always_ += kept.bytes;
    }
  }
  std::ranges::stable_sort(kept_, {}, [](const Kept& kept) {
    return kept.seconds / static_cast<double>(kept.bytes.count);
  });
}

double FitStep::least_seconds(Bytes budget) const {
  if (budget >= std::max(once_peak(), floor_)) return once_seconds();
  if (budget < least_arena() || !candidate_.recomputes) return kNever;
  Bytes all = persistent_ + carried_ + kept_always_;
  for (const Kept& kept : kept_) all += kept.bytes;
  double seconds = once_seconds();
  Bytes beyond = all > budget ? all - budget : Bytes();
  for (const Kept& kept : kept_) {
    if (beyond == Bytes()) return seconds;
    const Bytes dropped = std::min(beyond, kept.bytes);
    seconds +=
        kept.seconds * static_cast<double>(dropped.count) / static_cast<double>(kept.bytes.count);
    beyond -= dropped;
  }
  return beyond == Bytes() ? seconds : kNever;
}

OptimalPlanner& FitStep::planner() {
  if (!planner_) planner_ = std::make_unique<OptimalPlanner>(request());
  return *planner_;
}

std::optional<FitStep::Pick> FitStep::within(Bytes budget) {
  if (is_optimal_ && keeps_within(budget)) return once();
  if (is_optimal_ && budget >= std::max(once_peak(), floor_) && budget >= first_once().arena) {
    return Pick{first_once().seconds, std::max(first_once().arena, floor_)};
  }
  if (budget < least_arena() || (smallest_ && budget < smallest_->arena)) return std::nullopt;
  if (!candidate_.recomputes) return std::nullopt;
  if (!is_optimal_) {
    PlanRequest asked = request();
    asked.budget = budget;
    const PlanResult result = make_plan(asked);
    const auto* const plan = std::get_if<Plan>(&result);
    if (plan == nullptr) return std::nullopt;
    return Pick{plan->predicted_seconds - last_saves_, plan->arena};
  }
  const SchedulePool::Pick pick = planner().choose(budget);
  const Pick found = {with_last(pick.seconds, *pick.schedule, pick.arena), pick.arena};
  if (pick.arena <= budget) return found;
  smallest_ = found;
  return std::nullopt;
}

FitStep::Pick FitStep::smallest() {
  if (!smallest_) find_smallest();
  if (smallest_->arena >= floor_) return *smallest_;
  return {within(floor_)->seconds, floor_};
}

void FitStep::find_smallest() {
  if (!candidate_.recomputes) {
    smallest_ = first_once();
  } else if (is_optimal_) {
    const SchedulePool::Pick pick = planner().choose(kLeastMemory);
    smallest_ = {with_last(pick.seconds, *pick.schedule, pick.arena), pick.arena};
  } else {
    PlanRequest asked = request();
    asked.budget = kLeastMemory;
    const Plan plan = std::get<Plan>(make_plan(asked));
    smallest_ = {plan.predicted_seconds - last_saves_, plan.arena};
  }
}

Schedule FitStep::schedule_of(const Pick& pick) {
  if (!is_optimal_) {
    PlanRequest asked = request();
    asked.budget = pick.arena;
    return thimble::schedule_of(std::get<Plan>(make_plan(asked)));
  }
  if (pick.arena >= once_peak() && pick.arena >= first_once().arena) {
    return schedule_once(request());
  }
  return *planner().choose(pick.arena).schedule;
}

}  // namespace thimble
