#include "support/check_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "support/check_transforms.h"
#include "support/numeric_gradient.h"

namespace thimble {
namespace {

// The nodes that gradients flow through: behind a weight, and in front of a root.
void count_ops(const RandomGraph& random, Tally& tally) {
  const Graph& graph = random.graph;
  std::vector<bool> behind(graph.values.size(), false), before(graph.values.size(), false);
  for (const ValueId value : random.wrt) behind[value.at()] = true;
  for (const GradientRoot& root : random.roots) before[root.value.at()] = true;
  const auto any = [](const std::vector<ValueId>& values, const std::vector<bool>& marked) {
    return std::ranges::any_of(values, [&](ValueId v) { return marked[v.at()]; });
  };
  for (const Node& node : graph.nodes) {
    if (node.op->gradient == nullptr || !any(node.inputs, behind)) continue;
    for (const ValueId output : node.outputs) behind[output.at()] = true;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (node.op->gradient == nullptr || !any(node.outputs, before)) continue;
    for (const ValueId input : node.inputs) before[input.at()] = true;
    if (any(node.inputs, behind)) ++tally.ops[node.op->name];
  }
}

Fault check(const RandomGraph& random, Backend& backend, Tally& tally) {
  verify_graph(random.graph);
  DifferentiatedGraph step = {random.graph, {}};
  step.gradients = add_gradients(step.graph, random.roots, random.wrt);
  verify_graph(step.graph);
  tally.happened["summed in place"] += std::ranges::count_if(
      step.graph.nodes, [](const Node& node) { return !node.accumulate.empty(); });
  const Judgement judgement = judge_gradients(random, step.graph, step.gradients);
  if (judgement.verdict == Judgement::Verdict::wrong) {
    return fmt::format("{}\n{}", judgement.what, print_graph(step.graph));
  }
  tally.unsettled += judgement.verdict == Judgement::Verdict::unsettled;
  Fault fault = check_accumulation(random, step, tally);
  if (!fault) fault = check_taking_over(random, step, tally);
  if (!fault) fault = check_peak_reducing_order(random, step);
  if (!fault) fault = check_training_step(random, backend, tally);
  return fault;
}

}  // namespace

std::optional<std::string> find_fault_in_random_graph(uint64_t seed, Backend& backend,
                                                      Tally& tally) {
  Fault fault;
  std::string forward;
  try {
    const RandomGraph random = random_graph(seed);
    forward = print_graph(random.graph);
    ++tally.graphs;
    count_ops(random, tally);
    fault = check(random, backend, tally);
  } catch (const std::exception& error) {
    fault = fmt::format("{}\n{}", error.what(), forward);
  }
  if (!fault) return std::nullopt;
  return fmt::format("graph of seed {}: {}", seed, *fault);
}

}  // namespace thimble
