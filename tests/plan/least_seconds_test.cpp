// The bound on a step's time within a budget, beside an answer that shares no code with it. Every
// subset of values may be kept between the passes. Each is a point of bytes and seconds, and the
// lower hull of all points is the optimum of the linear program.
#include "support/least_seconds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "plan/policy.h"
#include "plan/search/optimal_planner.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

// A step as the graph says it: values that may be recomputed, as bits.
class Kept {
 public:
  explicit Kept(const Graph& graph, const Costs& costs) : graph_(graph) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      const NodeId maker = graph.values[v].producer;
      if (maker.valid() && is_forward(graph[maker]) && graph[maker].op->view) {
        owner_.push_back(owner_[graph[maker].inputs[0].at()]);
        continue;
      }
      owner_.push_back(-1);
      const bool result = std::ranges::count(graph.results, value) > 0;
      if (!maker.valid() || !is_forward(graph[maker]) || result) continue;
      if (graph[maker].op->recompute == Recompute::never) continue;
      owner_.back() = static_cast<int>(bytes_.size());
      bytes_.push_back(align_up(graph.values[v].type.bytes()).count);
      maker_.push_back(maker);
    }
    for (const NodeId maker : maker_) {
      reads_.push_back(read_by(graph[maker]));
      seconds_.push_back(costs.nodes[maker.at()].seconds);
    }
    for (const Node& node : graph.nodes) {
      if (!is_forward(node) && !is_update(node)) read_later_ |= read_by(node);
    }
  }

  size_t size() const { return bytes_.size(); }

  struct Point {
    int64_t bytes = 0;
    double seconds = 0;
  };
  // The bytes of a subset of kept values, and the recomputation that it leaves.
  Point of(uint64_t kept) const {
    Point point;
    uint64_t missing = read_later_ & ~kept;
    NodeId last;
    for (size_t v = size(); v-- > 0;) {
      if ((kept >> v & 1) != 0) point.bytes += bytes_[v];
      if ((missing >> v & 1) == 0) continue;
      missing |= reads_[v] & ~kept;
      if (last != maker_[v]) point.seconds += seconds_[v];  // results of a node stand together
      last = maker_[v];
    }
    return point;
  }

 private:
  static bool is_forward(const Node& node) {
    return !node.backward && !is_update(node) && node.phase == Phase::per_microbatch;
  }
  uint64_t read_by(const Node& node) const {
    uint64_t values = 0;
    for (const ValueId input : node.inputs) {
      if (owner_[input.at()] >= 0) values |= uint64_t{1} << owner_[input.at()];
    }
    return values;
  }

  const Graph& graph_;
  std::vector<int> owner_;  // by value: its place, a view's that of its bytes, or -1
  std::vector<int64_t> bytes_;
  std::vector<NodeId> maker_;
  std::vector<uint64_t> reads_;  // of the maker
  std::vector<double> seconds_;
  uint64_t read_later_ = 0;
};

// The least seconds of mixtures of two points within that room.
double hull_at(const std::vector<Kept::Point>& frontier, double room) {
  double least = 1e300;
  for (const Kept::Point& a : frontier) {
    const auto a_bytes = static_cast<double>(a.bytes);
    if (a_bytes <= room) least = std::min(least, a.seconds);
    for (const Kept::Point& b : frontier) {
      const auto b_bytes = static_cast<double>(b.bytes);
      if (a_bytes > room || b_bytes <= room) continue;
      const double share = (room - a_bytes) / (b_bytes - a_bytes);
      least = std::min(least, a.seconds + share * (b.seconds - a.seconds));
    }
  }
  return least;
}

// The points of all subsets of which none takes less memory and less time.
std::vector<Kept::Point> frontier_of(const Kept& kept) {
  std::vector<Kept::Point> points;
  for (uint64_t subset = 0; subset < uint64_t{1} << kept.size(); ++subset) {
    points.push_back(kept.of(subset));
  }
  std::ranges::sort(points, {}, [](const auto& p) { return std::pair(p.bytes, p.seconds); });
  std::vector<Kept::Point> frontier;
  for (const Kept::Point& point : points) {
    if (frontier.empty() || point.seconds < frontier.back().seconds) frontier.push_back(point);
  }
  return frontier;
}

Costs random_costs(const Graph& graph, std::mt19937& random) {
  Costs costs = flat_costs(graph);
  std::uniform_real_distribution<> any(0.3, 2);
  for (NodeCost& cost : costs.nodes) cost.seconds = any(random) * any(random);
  return costs;
}

Bytes persistent_bytes(const Graph& graph) {
  Bytes sum;
  for (const Value& value : graph.values) {
    if (!value.producer.valid() && is_persistent(value.role)) sum += align_up(value.type.bytes());
  }
  return sum;
}

// Prices of a byte are tried a ratio of 10^(6/240) apart, and the program's value by price is
// concave from 0 at price 0. So the best of them is off by that ratio at most.
TEST(LeastSeconds, IsTheOptimumOfTheLinearProgram) {
  constexpr double kApart = 1.0593;
  constexpr size_t kMostValues = kSanitized ? 10 : 14;
  int steps = 0, paid = 0;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_step(seed).graph;
    std::mt19937 random(seed);
    const Costs costs = random_costs(graph, random);
    const Kept kept(graph, costs);
    if (kept.size() > kMostValues) continue;
    ++steps;
    const std::vector<Kept::Point> frontier = frontier_of(kept);
    const Bytes persistent = persistent_bytes(graph);
    std::vector<Bytes> budgets;
    for (int i = 0; i <= 8; ++i) {
      const int64_t least = frontier.front().bytes, all = frontier.back().bytes;
      budgets.push_back(persistent + Bytes(least + (all - least) * i / 8));
    }
    double once = 0;
    for (const NodeCost& cost : costs.nodes) once += cost.seconds;
    const std::vector<double> bounds = least_seconds(graph, costs, budgets);
    for (size_t b = 0; b < budgets.size(); ++b) {
      const auto room = static_cast<double>((budgets[b] - persistent).count);
      const double optimum = hull_at(frontier, room);
      EXPECT_LE(bounds[b] - once, optimum + 1e-9 * once) << budgets[b].count;
      EXPECT_GE(bounds[b] - once, optimum / kApart - 1e-9 * once) << budgets[b].count;
      paid += optimum > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(steps, 20);
  EXPECT_GE(paid, 4 * steps);
}

// Whatever is recomputed, and wherever.
TEST(LeastSeconds, NoScheduleIsFaster) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 20u : 150u); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_step(seed).graph;
    std::mt19937 random(seed);
    const Costs costs = random_costs(graph, random);
    const PlanRequest request = {.graph = graph, .costs = costs};
    std::vector<Bytes> budgets;
    std::vector<double> seconds;
    const auto add = [&](const Schedule& schedule) {
      const ScheduleCost cost = cost_of(request, schedule);
      budgets.push_back(cost.live_peak);
      seconds.push_back(cost.seconds);
    };
    for (const Policy* policy : all_policies()) {
      PlanRequest asked = request;
      asked.number = policy->number.usual;
      if (policy->traits.by_budget) asked.budget = kLeastMemory;
      add(policy->schedule(asked));
    }
    OptimalPlanner planner(request, {});
    const Bytes most = planner.choose({}).arena;
    for (int i = 1; i <= 4; ++i) add(*planner.choose(Bytes(most.count * i / 5)).schedule);
    for (int i = 0; i < 20; ++i) add(with_recomputation(graph, random, 0.1 * (i % 8)));
    const std::vector<double> bounds = least_seconds(graph, costs, budgets);
    for (size_t i = 0; i < budgets.size(); ++i) {
      ASSERT_GE(seconds[i], bounds[i] * (1 - 1e-9)) << i;
    }
  }
}

}  // namespace
}  // namespace thimble
