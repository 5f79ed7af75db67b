#include "support/numeric_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/interpreter.h"

namespace thimble {
namespace {

using Verdict = Judgement::Verdict;

// The formula is off by kStep^2, 1e-10, times the third derivative. Extrapolated (Richardson), it is off by
// some kStep^4 times the fifth. The objective is rounded, too: over kStep, by 1e-11 of it.
constexpr double kStep = 2e-5;
constexpr double kTolerance =
    1e-6;  // of the sum of the absolute terms of the directional derivative
constexpr double kRounding = 1e-9;  // of the objective
constexpr int kPoints = 6;          // a relu, a maximum or a clip may have its kink within a step

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += a.get(i) * b.get(i);
  return sum;
}

// The forward pass at one point, and what becomes of it when one value moves.
class Surroundings {
 public:
  Surroundings(const RandomGraph& random, uint64_t point)
      : random_(random), base_(run_once(random, random.graph, point)), moved_(base_) {}

  // One of norm 1, the same whenever it is asked for.
  Tensor direction(ValueId value) const {
    Tensor direction(random_.graph[value].type);
    fill_tensor(direction, {}, random_.seed + value.at());
    const double norm = std::sqrt(dot(direction, direction));
    for (int64_t i = 0; i < direction.elements(); ++i) {
      direction.set(i, direction.get(i) / norm);
    }
    return direction;
  }

  double objective() const { return objective(base_); }

  // The slope of the objective along a direction, by differences.
  struct Numeric {
    double slope;
    bool trusted;  // it does not depend on the step
  };
  // Agreement with an analytic slope, within a bound, ends the search for a better number.
  Numeric slope(ValueId value, const Tensor& direction, double analytic, double bound) {
    const std::vector<NodeId> behind = dependents(value);
    const auto differences = [&](double step) {
      const double up = moved(value, direction, step, behind);
      const double down = moved(value, direction, -step, behind);
      return Differences{(up - down) / (2 * step), std::abs(up + down - 2 * objective()) / step};
    };
    const auto near = [&](double a, double b) { return std::abs(a - b) <= bound; };
    const Differences full = differences(kStep);
    Numeric result = {full.slope, true};
    if (!near(full.slope, analytic)) {
      const Differences half = differences(kStep / 2), quarter = differences(kStep / 4);
      const double once = (4 * half.slope - full.slope) / 3;
      result.slope = (4 * quarter.slope - half.slope) / 3;
      const bool kink = quarter.bend > bound && quarter.bend > full.bend / 2;
      result.trusted = near(once, result.slope) && !kink;
    }
    restore(value);
    for (const NodeId node : behind) {
      for (const ValueId output : random_.graph[node].outputs) restore(output);
    }
    return result;
  }

 private:
  struct Differences {
    double slope;
    double bend;  // of the slopes to both sides: shrinks with the step, but where there is a kink
  };

  double objective(const std::vector<Tensor>& values) const {
    double sum = 0;
    for (const GradientRoot& root : random_.roots) {
      sum += dot(values[root.value.at()], values[root.upstream.at()]);
    }
    return sum;
  }

  // The nodes that see `value` move. A detached value does not.
  std::vector<NodeId> dependents(ValueId value) const {
    std::vector<bool> moves(random_.graph.values.size(), false);
    moves[value.at()] = true;
    std::vector<NodeId> nodes;
    for (size_t n = 0; n < random_.graph.nodes.size(); ++n) {
      const Node& node = random_.graph.nodes[n];
      if (node.op->name == "detach") continue;
      if (std::ranges::none_of(node.inputs, [&](ValueId v) { return moves[v.at()]; })) continue;
      nodes.push_back(make_id<NodeId>(n));
      for (const ValueId output : node.outputs) moves[output.at()] = true;
    }
    return nodes;
  }

  double moved(ValueId value, const Tensor& direction, double step,
               const std::vector<NodeId>& behind) {
    const Tensor& from = base_[value.at()];
    Tensor& to = moved_[value.at()];
    for (int64_t i = 0; i < from.elements(); ++i) {
      to.set(i, from.get(i) + step * direction.get(i));
    }
    for (const NodeId node : behind) run_node(random_.graph, node, moved_);
    return objective(moved_);
  }

  void restore(ValueId value) { moved_[value.at()] = Tensor(base_[value.at()]); }

  const RandomGraph& random_;
  const std::vector<Tensor> base_;
  std::vector<Tensor> moved_;
};

Judgement judge_at(const RandomGraph& random, const Graph& step, std::span<const ValueId> gradients,
                   uint64_t point) {
  Surroundings here(random, point);
  const std::vector<Tensor> run = run_once(random, step, point);
  bool settled = true;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ValueId value = random.wrt[i];
    const Tensor direction = here.direction(value);
    double analytic = 0, terms = 0;
    if (gradients[i].valid()) {
      const Tensor& gradient = run[gradients[i].at()];
      analytic = dot(gradient, direction);
      for (int64_t e = 0; e < gradient.elements(); ++e) {
        terms += std::abs(gradient.get(e) * direction.get(e));
      }
    }
    const double bound = kTolerance * terms + kRounding * (1 + std::abs(here.objective()));
    const auto numeric = here.slope(value, direction, analytic, bound);
    if (std::abs(analytic - numeric.slope) <= bound) continue;
    if (!numeric.trusted) {
      settled = false;
      continue;
    }
    return {Verdict::wrong,
            fmt::format("the gradient of '{}', {}, is {:.12g} along a direction, not {:.12g} "
                        "(within {:.2g}) at point {}",
                        random.graph[value].name, to_string(random.graph[value].type), analytic,
                        numeric.slope, bound, point)};
  }
  return {settled ? Verdict::right : Verdict::unsettled};
}

}  // namespace

std::vector<Tensor> run_once(const RandomGraph& random, const Graph& step, uint64_t point,
                             int microbatch) {
  Interpreter run(step);
  for (size_t v = 0; v < random.graph.values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (!random.graph[value].producer.valid()) run[value] = leaf(random, value, point, microbatch);
  }
  run.run();
  return run.take_values();
}

Judgement judge_gradients(const RandomGraph& random, const Graph& step,
                          std::span<const ValueId> gradients) {
  Judgement judgement;
  for (uint64_t point = 0; point < kPoints; ++point) {
    judgement = judge_at(random, step, gradients, point);
    if (judgement.verdict != Verdict::unsettled) break;
  }
  return judgement;
}

}  // namespace thimble
