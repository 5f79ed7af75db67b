#include "pipeline.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "autodiff/autodiff.h"
#include "base/error.h"
#include "execute/costs.h"
#include "graph/order.h"
#include "plan/bytes/spread.h"
#include "plan/make_plan.h"
#include "plan/schedule/chain.h"
#include "plan/schedule/recompute.h"
#include "plan/search/recompute_groups.h"
#include "plan/search/rewrite_choice.h"
#include "plan/verify/verify_plan.h"
#include "plan/verify/verify_shared_step.h"
#include "transform/accumulate.h"
#include "transform/clip.h"
#include "transform/codec_ladder.h"
#include "transform/lean_order.h"

namespace thimble {
namespace {

// What a plan leaves for others in the same arena: where its values are, by name, and the first byte
// above them.
struct Residents {
  std::unordered_map<std::string, Bytes> home;
  Bytes reserved;

  void add(const Value& value, Bytes at) {
    home[value.name] = at;
    reserved = std::max(reserved, align_up(at + value.type.bytes()));
  }
};

Residents persistent_residents(const Graph& graph, const Plan& plan) {
  Residents residents;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (!value.producer.valid() && is_persistent(value.role)) residents.add(value, plan.sources[v]);
  }
  return residents;
}

// Those, and what is carried from microbatch to microbatch.
Residents step_residents(const Graph& graph, const Plan& plan) {
  Residents residents = persistent_residents(graph, plan);
  for (const PlannedCall& step : plan.calls) {
    const Node& node = graph[step.node];
    if (node.phase != Phase::begin) continue;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      residents.add(graph[node.outputs[k]], step.outputs[k]);
    }
  }
  return residents;
}

// A request whose persistent values and `begin` results are where the residents of that name are.
// Constants of the forward pass (an LSTM's first state) may have other rows, and so another name.
PlanRequest request_above(const Residents& residents, const Graph& graph, const Costs& costs,
                          Bytes arena) {
  PlanRequest request = {.graph = graph, .costs = costs, .budget = arena};
  request.reserved = residents.reserved;
  request.fixed.assign(graph.values.size(), Bytes(-1));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool begun = value.producer.valid() && graph[value.producer].phase == Phase::begin;
    const bool kept = !value.producer.valid() && is_persistent(value.role);
    const auto at = residents.home.find(value.name);
    if ((begun || kept) && at != residents.home.end()) request.fixed[v] = at->second;
  }
  return request;
}

// Plans the last microbatch into the arena of the others. Recomputing more changes no bit, so where
// the planner asked for does not fit, the one that goes by a budget may.
std::unique_ptr<RestPlan> plan_rest(TrainingGraph training, const Recipe& recipe,
                                    const PlannedStepProgram& step) {
  auto rest = std::make_unique<RestPlan>();
  rest->training = std::move(training);
  const Graph& graph = rest->training.model.graph;
  rest->costs = costs_of(recipe, graph, *step.backend);
  const Graph& full = step.training->model.graph;
  PlanRequest request =
      request_above(step_residents(full, step.plan), graph, rest->costs, step.plan.arena);
  request.microbatches = step.microbatches.count();  // its sums do not begin and end with it
  for (const std::string& policy : {step.plan.policy, std::string("optimal")}) {
    request.policy = policy;
    PlanResult planned = make_plan(request);
    if (auto* plan = std::get_if<Plan>(&planned)) {
      rest->plan = std::move(*plan);
      verify_plan(graph, rest->costs, rest->plan);
      const auto fault = find_disagreement(full, step.plan, graph, rest->plan);
      internal_check(!fault,
                     "the last microbatch does not go with the others: " + fault.value_or(""));
      return rest;
    }
  }
  user_error(
      "the last microbatch, of {} rows, does not fit where those of {} rows do; choose a "
      "--microbatch that divides the batch of {}",
      step.microbatches.rest, step.microbatches.rows, step.microbatches.batch);
}

// On a GPU, one time step is too little work for the launches that it takes.
constexpr int64_t kGpuStepsAtOnce = 16;

// The recipe's model with every default filled in.
ModelOptions complete_options(const Recipe& recipe) {
  ModelOptions options = recipe.model;
  if (options.steps_at_once == 0 && recipe.device == "cuda") {
    options.steps_at_once = kGpuStepsAtOnce;
  }
  if (options.build == nullptr) find_model_family(options.name).complete(options);
  return options;
}

Microbatches microbatches_of(const Recipe& recipe) {
  return split_batch(complete_options(recipe).batch, recipe.microbatch);
}

TrainingGraph make_graph(const Recipe& recipe, int64_t rows) {
  ModelOptions options = complete_options(recipe);
  options.batch = rows;
  return make_training_graph(options, recipe.optimizer, recipe.marks,
                             microbatches_of(recipe).count(), recipe.sparsity, recipe.codec);
}

// The recipe's step, everything decided but a smaller last microbatch, in `result`; or why there is none.
std::optional<Infeasible> plan_full(const Recipe& recipe, PlannedStepProgram& result) {
  const auto request = [&](const Graph& graph, const Costs& costs) {
    return PlanRequest{.graph = graph,
                       .costs = costs,
                       .budget = recipe.memory,
                       .policy = recipe.planner,
                       .microbatches = result.microbatches.count()};
  };
  PlanResult planned;
  if (recipe.codec.automatic && !recipe.codec.chosen) {
    std::vector<EncodedStep> steps = encoded_steps(recipe, *result.backend);
    allowed_tier(recipe, steps.front().training->model.graph, steps.front().codec);
    std::vector<RewriteChoice::Rewrite> rewrites;
    for (const EncodedStep& step : steps) {
      rewrites.push_back({request(step.training->model.graph, step.costs), step.harm});
    }
    RewriteChoice choice(rewrites);
    const RewriteChoice::Pick pick = choice.choose(recipe.memory);
    planned = choice.plan(pick, recipe.memory);
    result.codec = steps[pick.rewrite].codec;
    result.training = std::move(steps[pick.rewrite].training);
    result.costs = std::move(steps[pick.rewrite].costs);
  } else {
    result.codec = recipe.codec;
    result.training = std::make_unique<TrainingGraph>(make_graph(recipe, result.microbatches.rows));
    allowed_tier(recipe, result.training->model.graph, recipe.codec);
    result.costs = costs_of(recipe, result.training->model.graph, *result.backend);
    planned = make_plan(request(result.training->model.graph, result.costs));
  }
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
  result.plan = std::move(std::get<Plan>(planned));
  if (result.backend->streams() > 1) {
    result.plan = spread_apart(result.training->model.graph, result.costs, std::move(result.plan));
  }
  return {};
}

// Keeps the order of the nodes unless another holds less at its fullest, and no more on the way
// through the forward pass: what crosses from node to node is what segments have to keep. Scratch plays
// no part: the order must not depend on the device.
void order_for_memory(Graph& graph) {
  const auto measure = [](const Graph& g) {
    const Costs no_costs{.nodes = std::vector<NodeCost>(g.nodes.size()), .source = ""};
    const PlanRequest request = {.graph = g, .costs = no_costs};
    int64_t crossing = 0;
    for (const Bytes bytes : crossing_bytes(ForwardPass(g))) crossing += bytes.count;
    return std::pair(cost_of(request, schedule_once(request)).live_peak, crossing);
  };
  Graph other = graph;
  put_in_order(other, lean_order(graph));
  const auto [peak, crossing] = measure(graph);
  const auto [other_peak, other_crossing] = measure(other);
  if (other_peak < peak && other_crossing <= crossing) graph = std::move(other);
}

void check_state_can_move(const OptimizerSpec& optimizer, const SparsitySpec& sparsity) {
  const bool moves = sparsity.enabled() && sparsity.method != SparseMethod::fixed;
  user_check(!moves || optimizer.state_bits == 32,
             "optimizer state in {} bits shares its scales, so that it cannot move with sparse "
             "weights; choose --state-bits 32, or --sparsity static",
             optimizer.state_bits);
}

}  // namespace

TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks, int microbatches,
                                  const SparsitySpec& sparsity, const CodecSpec& codec) {
  TrainingGraph training;
  training.model = build_model(options);
  training.sparsity = sparsity;
  Graph& graph = training.model.graph;
  sparsify(graph, sparsity);

  std::vector<ValueId> weights;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].role == Role::weight) weights.push_back(make_id<ValueId>(v));
  }
  check_optimizer(optimizer, microbatches > 1);
  check_state_can_move(optimizer, sparsity);
  const std::vector<ValueId> wanted = differentiated(graph, weights);
  const GradientRoot root = {training.model.loss, add_loss_scale(graph, optimizer.scaling)};
  std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, wanted);
  if (optimizer.clip_two_pass) {  // those were for the norm; the same again, for the updates
    const GradientRoot clipped = {training.model.loss,
                                  add_early_clip_factor(graph, gradients, optimizer.clip_norm,
                                                        root.upstream, optimizer.scaling)};
    gradients = add_gradients(graph, {&clipped, 1}, wanted);
  }
  if (sparsity.enabled()) gather_early(graph);
  training.model.rng = encode_activations(graph, codec, training.model.rng);
  training.scalars = add_updates(graph, weights, gradients, optimizer, microbatches > 1,
                                 root.upstream, training.model.rng);
  training.model.rng = training.scalars.rng;
  if (microbatches > 1) {
    accumulate_results(graph);
    training.model.loss = graph.results[0];
    training.model.correct = graph.results[1];
  }
  if (training.scalars.overflow.valid()) graph.results.push_back(training.scalars.overflow);
  sort_by_phase(graph);
  order_for_memory(graph);
  apply_marks(graph, marks);
  verify_graph(graph);
  return training;
}

Costs costs_of(const Recipe& recipe, const Graph& graph, Backend& backend) {
  if (recipe.costs.empty()) return gather_costs(graph, backend);
  const CostFile file = read_costs(recipe.costs);
  const auto machine = file.find(backend.machine());
  if (machine == file.end()) return gather_costs(graph, backend);
  const CostTable& table = machine->second;
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

namespace {

// All of an optimizer that decides what its updates do, rates apart.
std::string update_of(const OptimizerSpec& spec) {
  std::string text = fmt::format("{} {}", static_cast<int>(spec.kind), spec.state_bits);
  if (spec.fold) text += " folded";
  if (spec.clip_norm > 0) text += spec.clip_two_pass ? " clipped twice" : " clipped";
  return text;
}

}  // namespace

std::string whole_step_key(const Recipe& recipe, const Backend& backend) {
  const ModelOptions options = complete_options(recipe);
  const Microbatches parts = microbatches_of(recipe);
  std::string image;
  for (int axis = 0; axis < options.image.rank(); ++axis) {
    image += fmt::format("{}{}", axis > 0 ? "," : " image ", options.image[axis]);
  }
  return fmt::format(
      "{}({} batch {} by {}{} classes {} layers {} hidden {} length {} at once {} {}{} norm {} "
      "dropout {} density {} codec {} optimizer {}) by {} streams",
      kWholeStep, options.name, parts.batch, parts.rows, image, options.classes, options.layers,
      options.hidden, options.length, options.steps_at_once, name_of(options.storage),
      options.master ? " master" : "", name_of(options.norm), options.dropout,
      recipe.sparsity.density, recipe.codec.automatic ? "none" : to_string(recipe.codec),
      update_of(recipe.optimizer), backend.streams());
}

Tier allowed_tier(const Recipe& recipe, const Graph& graph, const CodecSpec& codec) {
  check_allowed(codec, recipe.allow);
  const int count = microbatches_of(recipe).count();
  const Tier tier = std::max(tier_of(graph, count, recipe.optimizer), tier_of(codec));
  check_allowed(graph, tier, recipe.allow, count, recipe.optimizer);
  return tier;
}

StepGraphs make_step_graphs(const Recipe& recipe) {
  StepGraphs graphs;
  graphs.microbatches = microbatches_of(recipe);
  graphs.full = make_graph(recipe, graphs.microbatches.rows);
  const int64_t rest = graphs.microbatches.rest;
  if (rest > 0) graphs.rest = make_graph(recipe, rest);
  return graphs;
}

std::vector<EncodedStep> encoded_steps(const Recipe& recipe, Backend& backend) {
  Recipe coded = recipe;
  coded.codec.chosen.reset();
  const int64_t rows = microbatches_of(recipe).rows;
  const auto make = [&] {
    EncodedStep step = {
        coded.codec, 0, std::make_unique<TrainingGraph>(make_graph(coded, rows)), {}};
    step.costs = costs_of(recipe, step.training->model.graph, backend);
    return step;
  };
  const EncodedStep plain = make();
  const Graph& graph = plain.training->model.graph;
  const std::vector<Encodable> encodable = find_encodable(graph, recipe.codec);
  std::vector<ValueId> values;
  for (const Encodable& entry : encodable) values.push_back(entry.value);

  constexpr size_t kNodes =
      3'000;  // in all graphs together, so that large ones are planned in time
  const size_t most = std::clamp<size_t>(kNodes / graph.nodes.size(), 6, 16);
  std::vector<EncodedStep> steps;
  for (Encoding& encoding :
       encodings_to_try(graph, recipe.codec, recipe.allow, encodable,
                        groups_by_recompute_time(graph, plain.costs, values), most)) {
    coded.codec.chosen = std::move(encoding.values);
    steps.push_back(make());
    steps.back().harm = encoding.harm;
  }
  return steps;
}

Plan priced_as_a_whole(const PlannedStepProgram& step) {
  Plan plan = step.plan;
  if (step.rest == nullptr) return plan;
  const PhaseCost full = cost_of(step.training->model.graph, step.costs, plan, Phase::each);
  const PhaseCost rest =
      cost_of(step.rest->training.model.graph, step.rest->costs, step.rest->plan, Phase::each);
  plan.predicted_seconds += rest.seconds - full.seconds;
  plan.flops += rest.flops - full.flops;
  plan.extra_flops += rest.extra_flops - full.extra_flops;
  return plan;
}

std::variant<PlannedStepProgram, Infeasible> plan_training(const Recipe& recipe) {
  const auto start = std::chrono::steady_clock::now();
  PlannedStepProgram result;
  result.backend = make_backend(recipe.device, recipe.on);
  result.microbatches = microbatches_of(recipe);
  const std::optional<Infeasible> infeasible = plan_full(recipe, result);
  const Graph& graph = result.training->model.graph;
  result.tier = allowed_tier(recipe, graph, result.codec);
  if (infeasible) return *infeasible;
  verify_plan(graph, result.costs, result.plan);
  if (result.microbatches.rest > 0) {
    Recipe rest = recipe;
    rest.codec = result.codec;
    result.rest = plan_rest(make_graph(rest, result.microbatches.rest), recipe, result);
  }
  result.plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::unique_ptr<EvaluationPlan> plan_evaluation(const PlannedStepProgram& training) {
  const Residents residents = persistent_residents(training.training->model.graph, training.plan);
  ModelOptions options = training.training->model.options;
  options.training = false;
  for (;; options.batch = (options.batch + 1) / 2) {
    auto evaluation = std::make_unique<EvaluationPlan>();
    evaluation->model = build_model(options);
    sparsify(evaluation->model.graph, training.training->sparsity);
    const Graph& graph = evaluation->model.graph;
    evaluation->costs = gather_costs(graph, *training.backend);
    PlanResult planned =
        make_plan(request_above(residents, graph, evaluation->costs, training.plan.arena));
    if (auto* plan = std::get_if<Plan>(&planned)) {
      evaluation->plan = std::move(*plan);
      verify_plan(graph, evaluation->costs, evaluation->plan);
      return evaluation;
    }
    internal_check(options.batch > 1, "evaluation does not fit where training does");
  }
}

}  // namespace thimble
