// How the memory of activations grows with depth. Nothing runs: plans alone, for the `null` device.
#include <cmath>

#include "model/layers.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

// `depth` times tanh(x W), plain or added to x.
Model chain(const ModelOptions& options, int64_t depth, bool residual) {
  Layers net(options);
  Builder& b = net.build();
  const std::vector<int64_t> flat = {options.batch, options.image.elements()};
  ValueId x = b.op("reshape", {net.images()}, {{"shape", flat}});
  for (int64_t i = 0; i < depth; ++i) {
    const ValueId y = net.linear(fmt::format("layer{}", i), x, options.image.elements(), "tanh");
    x = residual ? b.op("add", {x, y}) : y;
  }
  return net.finish(net.linear("classifier", x, options.classes));
}
Model residual_chain(const ModelOptions& options, int64_t depth) {
  return chain(options, depth, true);
}
Model plain_chain(const ModelOptions& options, int64_t depth) {
  return chain(options, depth, false);
}

constexpr int64_t kBatch = 64;
constexpr int64_t kWidth = 16;
constexpr double kTensor = kBatch * kWidth * 4;  // bytes of one value between layers

class Growth : public testing::TestWithParam<Model (*)(const ModelOptions&, int64_t)> {
 protected:
  static double activation_bytes(int64_t depth, const std::string& policy);
  static double exponent(const std::string& policy);
};

// Bytes of the arena that are not weights, optimizer state, statistics or constants.
double Growth::activation_bytes(int64_t depth, const std::string& policy) {
  const auto build = [depth, make = GetParam()](const ModelOptions& options) {
    return make(options, depth);
  };
  const ModelOptions options = {
      .name = "chain", .batch = kBatch, .image = {4, 4, 1}, .classes = 4, .build = build};
  const Graph graph = make_training_graph(options, parse_optimizer("nesterov")).model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const Plan plan = std::get<Plan>(make_plan({.graph = graph, .costs = costs, .policy = policy}));
  EXPECT_EQ(find_fault(graph, costs, plan), std::nullopt) << policy << " " << depth;
  Bytes persistent;
  for (const Value& value : graph.values) {
    if (!value.producer.valid() && is_persistent(value.role)) {
      persistent += align_up(value.type.bytes());
    }
  }
  return static_cast<double>((plan.arena - persistent).count);
}

// The least-squares slope of log bytes over log depth.
double Growth::exponent(const std::string& policy) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const int64_t depth : {50, 125, 315, 800, 2000}) {
    const double log_depth = std::log(static_cast<double>(depth));
    const double log_bytes = std::log(activation_bytes(depth, policy));
    n += 1, x += log_depth, y += log_bytes;
    xx += log_depth * log_depth, xy += log_depth * log_bytes;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  RecordProperty("exponent", fmt::format("{:.3f}", slope));
  return slope;
}

TEST_P(Growth, KeepingEverythingIsLinear) {
  const double small = activation_bytes(100, "keep_all"),
               large = activation_bytes(1000, "keep_all");
  EXPECT_GT(large, 9 * small);
}

TEST_P(Growth, SqrtSegmentsGrowAsTheRoot) { EXPECT_LE(exponent("sqrt_segments"), 0.55); }

TEST_P(Growth, ChenBudgetGrowsAsTheRoot) { EXPECT_LE(exponent("chen_budget"), 0.55); }

TEST_P(Growth, MirrorGrowsSlowerThanTheRoot) { EXPECT_LE(exponent("mirror"), 0.45); }

// A doubled depth costs one more cut, and with it one tensor.
TEST_P(Growth, LogRecursiveGrowsByAConstantPerDoubling) {
  double before = activation_bytes(62, "log_recursive");
  for (const int64_t depth : {125, 250, 500, 1000, 2000}) {
    const double now = activation_bytes(depth, "log_recursive");
    EXPECT_LE(now - before, 2 * kTensor) << depth;
    before = now;
  }
}

TEST_P(Growth, AFanOutOfThreeGrowsByAConstantPerFourfold) {
  double before = activation_bytes(125, "log_recursive:3");
  for (const int64_t depth : {500, 2000}) {
    const double now = activation_bytes(depth, "log_recursive:3");
    EXPECT_LE(now - before, 4 * kTensor) << depth;
    before = now;
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, Growth, testing::Values(residual_chain, plain_chain),
                         [](const auto& test) { return test.index == 0 ? "residual" : "plain"; });

}  // namespace
}  // namespace thimble
