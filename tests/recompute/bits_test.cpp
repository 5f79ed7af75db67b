// Recomputation may never change a bit: whatever the policy and the budget, weights, optimizer state
// and running statistics after three steps are those of keep_all.
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "execute/costs.h"
#include "execute/program.h"
#include "pipeline.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "plan/verify_plan.h"
#include "train/initialize.h"

namespace thimble {
namespace {

struct Net {
  std::string label;
  ModelOptions options;
};

std::vector<Net> nets() {
  std::vector<Net> all;
  all.push_back({"wrn", {.name = "wrn-16-2", .batch = 3, .image = {8, 8, 3}, .dropout = 0.1}});
  all.push_back({"resnet", {.name = "resnet:[1,2,2,1]", .batch = 2, .image = {32, 32, 3}, .classes = 7}});
  all.push_back({"mlp", {.name = "mlp", .batch = 5, .dropout = 0.3, .layers = 6, .hidden = 24}});
  all.push_back({"lstm", {.name = "lstm", .batch = 3, .layers = 2, .hidden = 8, .length = 24}});
  return all;
}

class Bits : public ::testing::TestWithParam<Net> {
 protected:
  Bits() : backend_(make_backend("cpu", 2)),
           training_(make_training_graph(GetParam().options, parse_optimizer("nesterov"))),
           costs_(gather_costs(graph(), *backend_)) {}

  const Graph& graph() const { return training_.model.graph; }

  PlanResult plan(std::string_view policy, std::optional<Bytes> budget = {}) const {
    return make_plan({.graph = graph(), .costs = costs_, .budget = budget,
                      .policy = std::string(policy)});
  }

  // Three steps on made-up data; the digest of everything that lives on.
  std::string digest(const Plan& plan) {
    verify_plan(graph(), costs_, plan);
    const auto arena = backend_->allocate(plan.arena);
    Program program(graph(), plan, *backend_, *arena);
    initialize(program, 7);
    for (int step = 0; step < 3; ++step) {
      fill(program, step);
      program.run();
    }
    EXPECT_EQ(program.touched(), plan.arena);
    Sha256 hash;
    for (size_t v = 0; v < graph().values.size(); ++v) {
      const Value& value = graph().values[v];
      if (value.producer.valid() || !is_persistent(value.role)) continue;
      hash.update(program.bytes_of(make_id<ValueId>(v)));
    }
    hash.update(program.bytes_of(training_.model.loss));
    return hash.hex();
  }

 private:
  void fill(Program& program, int step) {
    const Model& model = training_.model;
    if (model.pixels.valid()) {
      size_t i = 0;
      for (uint8_t& pixel : program.view<uint8_t>(model.pixels)) {
        pixel = static_cast<uint8_t>((i++ * 37 + static_cast<size_t>(step) * 11) % 251);
      }
    }
    if (model.sequence.valid()) {
      size_t i = 0;
      for (float& x : program.view<float>(model.sequence)) {
        x = static_cast<float>((i++ * 31 + static_cast<size_t>(step)) % 17) / 8.0f - 1.0f;
      }
    }
    int row = step;
    for (int32_t& label : program.view<int32_t>(model.labels)) {
      label = row++ % static_cast<int32_t>(model.options.classes);
    }
    program.view<float>(model.normalizer)[0] = 1.0f / static_cast<float>(model.options.batch);
    program.view<float>(training_.scalars.learning_rate)[0] = 0.05f;
    if (model.rng.valid()) {
      const auto rng = program.view<int64_t>(model.rng);
      rng[0] = 3, rng[1] = step, rng[2] = 0;
    }
  }

  std::unique_ptr<Backend> backend_;
  TrainingGraph training_;
  Costs costs_;
};

TEST_P(Bits, EveryPolicyGivesTheBitsOfKeepAll) {
  const std::string expected = digest(std::get<Plan>(plan("keep_all")));
  for (const Policy* policy : all_policies()) {
    const PlanResult result = plan(policy->name);
    ASSERT_TRUE(std::holds_alternative<Plan>(result)) << policy->name;
    EXPECT_EQ(digest(std::get<Plan>(result)), expected) << policy->name;
  }
}

TEST_P(Bits, EveryBudgetGivesTheBitsOfKeepAllAndIsObeyed) {
  const Plan whole = std::get<Plan>(plan("keep_all"));
  const std::string expected = digest(whole);
  // An impossible budget tells the floor.
  const PlanResult refused = plan("optimal", Bytes(64));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(refused));
  const Bytes floor = std::get<Infeasible>(refused).min_bytes;
  ASSERT_LE(floor, whole.arena);
  constexpr int kBudgets = 12;
  Bytes last_arena(0);
  double last_seconds = 1e30;
  for (int i = 0; i <= kBudgets; ++i) {
    const Bytes budget = floor + Bytes((whole.arena - floor).count * i / kBudgets);
    const PlanResult result = plan("optimal", budget);
    ASSERT_TRUE(std::holds_alternative<Plan>(result)) << budget.count;
    const Plan& fitted = std::get<Plan>(result);
    EXPECT_LE(fitted.arena, budget);
    EXPECT_GE(fitted.arena, last_arena) << "a smaller budget gave a larger arena";
    EXPECT_LE(fitted.predicted_seconds, last_seconds) << "a smaller budget gave a faster plan";
    EXPECT_EQ(digest(fitted), expected) << budget.count;
    last_arena = fitted.arena;
    last_seconds = fitted.predicted_seconds;
  }
  EXPECT_TRUE(std::holds_alternative<Infeasible>(plan("optimal", floor - Bytes(1))));
}

INSTANTIATE_TEST_SUITE_P(Nets, Bits, ::testing::ValuesIn(nets()),
                         [](const auto& net) { return net.param.label; });

}  // namespace
}  // namespace thimble
