#include "support/check_transforms.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/order.h"
#include "support/interpreter.h"
#include "support/numeric_gradient.h"
#include "transform/accumulate.h"
#include "transform/fuse_loss_into_backward.h"
#include "transform/peak_reducing_order.h"

namespace thimble {
namespace {

constexpr int kMicrobatches = 3;
// Sums in double, in another order: some units of the last place of the largest summand.
constexpr double kReordered = 1e-10;

// The element that is further off than that of the largest.
Fault find_difference(std::string_view what, const Tensor& got, const Tensor& expected,
                      double tolerance) {
  const double bound = tolerance * (1 + expected.largest());
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double off = std::abs(got.get(i) - expected.get(i));
    if (off <= bound || same_bits(got, expected)) continue;
    return fmt::format("element {} of {} is {:.12g}, not {:.12g}", i, what, got.get(i),
                       expected.get(i));
  }
  return std::nullopt;
}

void add(Tensor& sum, const Tensor& more) {
  for (int64_t i = 0; i < sum.elements(); ++i) sum.set(i, sum.get(i) + more.get(i));
}

}  // namespace

Fault check_accumulation(const RandomGraph& random, const DifferentiatedGraph& step, Tally& tally) {
  Graph graph = step.graph;
  std::vector<Accumulation> growths;
  std::vector<ValueId> shares;
  for (const ValueId gradient : step.gradients) {
    if (!gradient.valid()) continue;
    growths.push_back({add_zero(graph, gradient, fmt::format("sum{}", growths.size())), gradient});
    shares.push_back(gradient);
  }
  shares.insert(shares.end(), graph.results.begin(), graph.results.end());
  const size_t nodes = graph.nodes.size();
  std::vector<ValueId> sums = accumulate_into(graph, growths);
  tally.happened["copied"] += static_cast<int64_t>(graph.nodes.size() - nodes);
  tally.happened["grown"] += static_cast<int64_t>(growths.size() + nodes - graph.nodes.size());
  accumulate_results(graph);
  sums.insert(sums.end(), graph.results.begin(), graph.results.end());
  sort_by_phase(graph);
  verify_graph(graph);

  std::vector<Tensor> expected;
  Interpreter run(graph);
  for (int m = 0; m < kMicrobatches; ++m) {
    const std::vector<Tensor> once = run_once(random, step.graph, 0, m);
    for (size_t s = 0; s < shares.size(); ++s) {
      const Tensor& share = once[shares[s].at()];
      if (m == 0) {
        expected.push_back(share);
      } else {
        add(expected[s], share);
      }
    }
    for (size_t v = 0; v < random.graph.values.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      if (!random.graph[value].producer.valid()) run[value] = leaf(random, value, 0, m);
    }
    if (m == 0) run.run_phase(Phase::prologue);
    run.run_phase(Phase::per_microbatch);
  }
  run.run_phase(Phase::epilogue);
  for (size_t s = 0; s < sums.size(); ++s) {
    const Fault fault =
        find_difference(fmt::format("the sum of '{}' over microbatches", graph[shares[s]].name),
                        run[sums[s]], expected[s], kReordered);
    if (fault) return fmt::format("{}\n{}", *fault, print_graph(graph));
  }
  return std::nullopt;
}

namespace {

// Every value of `changed` has the bits it has in `step`.
Fault find_other_bits_than(const RandomGraph& random, const DifferentiatedGraph& step,
                           const Graph& changed, std::string_view how) {
  verify_graph(changed);
  const std::vector<Tensor> expected = run_once(random, step.graph, 0);
  const std::vector<Tensor> got = run_once(random, changed, 0);
  for (size_t v = 0; v < expected.size(); ++v) {
    if (same_bits(got[v], expected[v])) continue;
    return fmt::format("'{}' has other bits {}\n{}", changed.values[v].name, how,
                       print_graph(changed));
  }
  return std::nullopt;
}

}  // namespace

Fault check_taking_over(const RandomGraph& random, const DifferentiatedGraph& step, Tally& tally) {
  Graph graph = step.graph;
  fuse_loss_into_backward(graph);
  tally.happened["taken over"] +=
      static_cast<int64_t>(step.graph.nodes.size() - graph.nodes.size());
  return find_other_bits_than(random, step, graph, "once gradients take over");
}

Fault check_peak_reducing_order(const RandomGraph& random, const DifferentiatedGraph& step) {
  Graph graph = step.graph;
  put_in_order(graph, peak_reducing_order(step.graph));
  return find_other_bits_than(random, step, graph, "in lean order");
}

}  // namespace thimble
