// A training step as src/pipeline/training_graph.cpp makes it of a model, of a random graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "execute/costs.h"
#include "graph/order.h"
#include "plan/policy.h"
#include "support/check_transforms.h"
#include "support/interpreter.h"
#include "support/numeric_gradient.h"
#include "support/plan_cases.h"
#include "support/planned_run.h"
#include "transform/accumulate.h"
#include "transform/clip.h"
#include "transform/fuse_loss_into_backward.h"
#include "transform/optimizer.h"
#include "transform/peak_reducing_order.h"

namespace thimble {
namespace {

constexpr double kRate = 0.0625, kLossScale = 4;  // powers of two: f32 holds them as they are

struct Choices {
  OptimizerSpec optimizer;
  int microbatches = 1;
  bool lean = false;
};

Choices choose(uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5eed);
  const auto one_in = [&](uint64_t count) { return random() % count == 0; };
  Choices c;
  OptimizerSpec& o = c.optimizer;
  o = parse_optimizer(one_in(2) ? "sgd" : "nesterov");
  o.weight_decay = one_in(2) ? 0.125 : 0;
  o.fold = o.name == "sgd" && one_in(2);
  c.microbatches = one_in(2) ? 3 : 1;
  if (one_in(3)) {
    o.clip_two_pass = c.microbatches == 1 && (o.fold || one_in(2));
    o.clip_norm = o.clip_two_pass || !o.fold ? 0.25 : 0;
  }
  if (one_in(3)) {
    const bool fixed = o.fold || one_in(2);
    o.scaling.kind = fixed ? LossScaling::Kind::fixed : LossScaling::Kind::dynamic;
    o.scaling.start = kLossScale;
  }
  c.lean = one_in(2);
  return c;
}

std::string describe(const Choices& c) {
  const OptimizerSpec& o = c.optimizer;
  return fmt::format("{}, decay {}{}{}{}, loss scale {}, {} microbatches{}", o.name, o.weight_decay,
                     o.fold ? ", folded" : "", o.clip_norm > 0 ? ", clipped" : "",
                     o.clip_two_pass ? " in two passes" : "", name_of(o.scaling), c.microbatches,
                     c.lean ? ", in lean order" : "");
}

struct CheckedStep {
  Graph graph;
  OptimizerInputs scalars;
  ValueId loss_scale;
};

CheckedStep make_step(const RandomGraph& random, const Choices& c) {
  CheckedStep step = {random.graph, {}, {}};
  Graph& graph = step.graph;
  const ValueId loss = graph.results.front();
  // The scale is f32, and so is what clips; the loss is not.
  const auto in_double = [&](ValueId scalar, bool backward) {
    Builder b(graph);
    b.set_backward(backward);
    return b.op("cast", {scalar}, {{"dtype", std::string("f64")}});
  };
  const std::vector<ValueId> wanted = differentiated(graph, random.weights);
  step.loss_scale = add_loss_scale(graph, c.optimizer.scaling);
  const GradientRoot root = {loss, in_double(step.loss_scale, false)};
  std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, wanted);
  if (c.optimizer.clip_two_pass) {
    const ValueId factor = add_early_clip_factor(graph, gradients, c.optimizer.clip_norm,
                                                 step.loss_scale, c.optimizer.scaling);
    const GradientRoot clipped = {loss, in_double(factor, true)};
    gradients = add_gradients(graph, {&clipped, 1}, wanted);
  }
  fuse_loss_into_backward(graph);
  step.scalars = add_updates(graph, random.weights, gradients, c.optimizer, c.microbatches > 1,
                             step.loss_scale);
  if (c.microbatches > 1) accumulate_results(graph);
  sort_by_phase(graph);
  if (c.lean) put_in_order(graph, peak_reducing_order(graph));
  verify_graph(graph);
  return step;
}

Tensor filled(const TensorType& type, double value) {
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, value);
  return tensor;
}

// The contents of the step's leaves: of the random graph, scalars, and a momentum.
Tensor content(const RandomGraph& random, const CheckedStep& step, ValueId value, uint64_t point,
               int microbatch) {
  if (value.at() < random.graph.values.size()) return leaf(random, value, point, microbatch);
  const Value& of = step.graph[value];
  if (value == step.scalars.learning_rate) return filled(of.type, kRate);
  if (of.role == Role::constant) return filled(of.type, of.init.scale);
  if (value == step.loss_scale) return filled(of.type, kLossScale);
  Tensor tensor(of.type);
  fill_tensor(tensor, {}, random.seed + value.at());
  return tensor;
}

// The gradients of the weights over all microbatches; all zeros where the loss has none.
std::vector<Tensor> total_gradients(const RandomGraph& random, const Choices& c) {
  Graph graph = random.graph;
  const std::vector<ValueId> gradients =
      add_gradients(graph, {random.roots.data(), 1}, random.weights);
  std::vector<Tensor> totals;
  for (const ValueId w : random.weights) totals.push_back(filled(graph[w].type, 0));
  for (int m = 0; m < c.microbatches; ++m) {
    const std::vector<Tensor> run = run_once(random, graph, 0, m);
    for (size_t i = 0; i < totals.size(); ++i) {
      if (!gradients[i].valid()) continue;
      const Tensor& share = run[gradients[i].at()];
      for (int64_t e = 0; e < share.elements(); ++e) {
        totals[i].set(e, totals[i].get(e) + share.get(e));
      }
    }
  }
  return totals;
}

double clip_factor(const std::vector<Tensor>& gradients, double most) {
  double squares = 0;
  for (const Tensor& g : gradients) {
    for (int64_t e = 0; e < g.elements(); ++e) squares += g.get(e) * g.get(e);
  }
  return most > 0 ? std::min(1.0, most / std::sqrt(squares)) : 1;
}

// The weights after a step, against the rule by hand.
Fault check_weights(const RandomGraph& random, const CheckedStep& step, const Choices& c,
                    Tally& tally) {
  Interpreter run(step.graph);
  std::vector<ValueId> leaves;
  for (size_t v = 0; v < step.graph.values.size(); ++v) {
    if (!step.graph.values[v].producer.valid()) leaves.push_back(make_id<ValueId>(v));
  }
  for (int m = 0; m < c.microbatches; ++m) {
    for (const ValueId v : leaves) {
      if (m == 0 || step.graph[v].role == Role::input) run[v] = content(random, step, v, 0, m);
    }
    if (m == 0) run.run_phase(Phase::prologue);
    run.run_phase(Phase::per_microbatch);
  }
  run.run_phase(Phase::epilogue);
  run.commit();

  const std::vector<Tensor> gradients = total_gradients(random, c);
  const OptimizerSpec& o = c.optimizer;
  const double factor = clip_factor(gradients, o.clip_norm);
  // Where gradients of a scaled loss go into the momentum, it is scaled with them.
  const bool scaled = o.scaling.kind != LossScaling::Kind::none;
  const double held = o.fold && scaled ? kLossScale : 1;
  // The norm and what it makes of gradients are f32.
  const double tolerance = o.clip_norm > 0 ? 1e-5 : 1e-10;
  for (size_t i = 0; i < random.weights.size(); ++i) {
    const ValueId w = random.weights[i];
    const ValueId state = step.graph.find("update." + step.graph[w].name + ".momentum");
    if (!state.valid()) continue;  // the loss does not depend on it
    ++tally.happened["updated"];
    const Tensor before = content(random, step, w, 0, 0), m = content(random, step, state, 0, 0);
    const double bound = tolerance * (1 + before.largest() + gradients[i].largest());
    for (int64_t e = 0; e < before.elements(); ++e) {
      const double d = factor * gradients[i].get(e) + o.weight_decay * before.get(e);
      const double momentum = o.momentum * m.get(e) / held + d;
      const double along = o.name == "nesterov" ? d + o.momentum * momentum : momentum;
      const double expected = before.get(e) - kRate * along;
      if (std::abs(run[w].get(e) - expected) <= bound) continue;
      return fmt::format("element {} of '{}' is {:.12g} after a step, not {:.12g}", e,
                         step.graph[w].name, run[w].get(e), expected);
    }
  }
  return std::nullopt;
}

// A plan with random recomputation; now and then, since some take a second, the smallest of a policy.
Plan make_some_plan(const PlanRequest& request, std::mt19937& random) {
  if (random() % 16 != 0) {
    return lay_out(request, with_recomputation(request.graph, random, 0.3, 3));
  }
  const auto policies = all_policies();
  PlanRequest smallest = request;
  smallest.policy = std::string(policies[random() % policies.size()]->name);
  smallest.budget = Bytes(64);
  const PlanResult refused = make_plan(smallest);
  if (const Plan* plan = std::get_if<Plan>(&refused)) return *plan;
  smallest.budget = std::get<Infeasible>(refused).min_bytes;
  return std::get<Plan>(make_plan(smallest));
}

Fault check_plan(const RandomGraph& random, const CheckedStep& step, const Choices& c,
                 Backend& backend, Tally& tally) {
  const Costs costs = gather_costs(step.graph, backend);
  std::mt19937 chance(static_cast<uint32_t>(random.seed));
  const Plan plan =
      make_some_plan({.graph = step.graph, .costs = costs, .microbatches = c.microbatches}, chance);
  if (const auto fault = find_fault(step.graph, costs, plan)) return "unsound plan: " + *fault;
  tally.happened["recomputed"] +=
      std::ranges::count_if(plan.calls, [](const PlannedCall& call) { return call.recompute; });
  const auto fault =
      find_other_bits(step.graph, plan, backend, [&](ValueId value, int number, int microbatch) {
        return content(random, step, value, static_cast<uint64_t>(number), microbatch);
      });
  if (fault) return "other bits than the interpreter's: " + *fault;
  return std::nullopt;
}

}  // namespace

Fault check_training_step(const RandomGraph& random, Backend& backend, Tally& tally) {
  Graph loss = random.graph;
  const std::vector<ValueId> gradients =
      add_gradients(loss, {random.roots.data(), 1}, random.weights);
  if (std::ranges::none_of(gradients, &ValueId::valid)) return std::nullopt;  // nothing to train
  const Choices choices = choose(random.seed);
  const CheckedStep step = make_step(random, choices);
  tally.happened["folded"] += choices.optimizer.fold;
  tally.happened["clipped"] += choices.optimizer.clip_norm > 0;
  tally.happened["clipped in two passes"] += choices.optimizer.clip_two_pass;
  tally.happened["scaled"] += choices.optimizer.scaling.kind != LossScaling::Kind::none;
  tally.happened["in microbatches"] += choices.microbatches > 1;
  Fault fault = check_weights(random, step, choices, tally);
  if (!fault) fault = check_plan(random, step, choices, backend, tally);
  if (!fault) return std::nullopt;
  return fmt::format("{} ({})\n{}", *fault, describe(choices), print_graph(step.graph));
}

}  // namespace thimble
