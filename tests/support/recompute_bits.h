// Recomputation may never change a bit: whatever the policy and the budget, weights, optimizer
// state and running statistics after three steps are those of keep_all. Suites of tests to
// instantiate with a device's name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/io/sha256.h"
#include "execute/costs.h"
#include "execute/program.h"
#include "pipeline/pipeline.h"
#include "plan/bytes/spread_reuse.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "plan/verify/verify_plan.h"
#include "support/random_steps.h"
#include "weights/initialize.h"

namespace thimble {

// A graph on a device, planned in many ways; every plan trains the same steps.
class Trial {
 public:
  using Fill = std::function<void(Program& program, int call)>;

  Trial(const Graph& graph, Backend& backend, Fill fill)
      : graph_(graph),
        backend_(backend),
        fill_(std::move(fill)),
        costs_(gather_costs(graph, backend)),
        whole_(std::get<Plan>(plan("keep_all"))),
        expected_(train(whole_)),
        seen_({whole_}) {}

  Bytes whole() const { return whole_.arena; }

  PlanResult plan(std::string_view policy, std::optional<Bytes> budget = {}) const {
    return make_plan(
        {.graph = graph_, .costs = costs_, .budget = budget, .policy = std::string(policy)});
  }

  // Plans that differ in nothing but their claims run once.
  void expect_same_bits(const Plan& plan) {
    for (const Plan& known : seen_) {
      if (known.calls == plan.calls && known.sources == plan.sources) return;
    }
    seen_.push_back(plan);
    ASSERT_EQ(find_fault(graph_, costs_, plan), std::nullopt);
    if (backend_.streams() == 1) {
      EXPECT_TRUE(train(plan) == expected_);
    } else {  // with more that may run at the same time
      const Plan spread = spread_reuse(graph_, costs_, plan);
      ASSERT_EQ(find_fault(graph_, costs_, spread), std::nullopt);
      EXPECT_TRUE(train(spread) == expected_);
    }
  }

  // At `count` + 1 budgets from the least that the policy can do with to what everything takes,
  // each obeyed. Most policies give one plan for all of them.
  void expect_same_bits_at_budgets(std::string_view policy, int count) {
    SCOPED_TRACE(policy);
    const PlanResult refused = plan(policy, Bytes(64));  // tells the floor
    ASSERT_TRUE(std::holds_alternative<Infeasible>(refused));
    const Bytes floor = std::get<Infeasible>(refused).min_bytes;
    const Bytes most = std::max(floor, whole());
    for (int i = 0; i <= count; ++i) {
      const Bytes budget = floor + Bytes((most - floor).count * i / count);
      SCOPED_TRACE(budget.count);
      const PlanResult result = plan(policy, budget);
      ASSERT_TRUE(std::holds_alternative<Plan>(result));
      EXPECT_LE(std::get<Plan>(result).arena, budget);
      expect_same_bits(std::get<Plan>(result));
    }
    EXPECT_TRUE(std::holds_alternative<Infeasible>(plan(policy, floor - Bytes(1))));
    expect_same_bits(std::get<Plan>(plan(policy)));
  }

 private:
  template <class Visit>
  void for_each_persistent(Visit&& visit) const {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!value.producer.valid() && is_persistent(value.role)) visit(make_id<ValueId>(v));
    }
  }

  // The bytes of everything that lives on, and of the results, after three steps.
  std::vector<std::byte> train(const Plan& plan) {
    const auto arena = backend_.allocate(plan.arena);
    // Bytes that are not written are not zero either.
    std::ranges::fill(
        HostMapping(backend_, arena->base(), plan.arena, HostMapping::Use::write).bytes(),
        std::byte{0xA7});
    Program program(graph_, plan, backend_, *arena);
    start(program);
    for (int call = 0; call < 3; ++call) {
      fill_(program, call);
      program.run();
    }
    EXPECT_EQ(program.touched(), plan.arena);
    std::vector<std::byte> bytes;
    const auto append = [&](ValueId value) {
      const HostMapping mapping = program.map_to_host(value, HostMapping::Use::read);
      bytes.insert(bytes.end(), mapping.bytes().begin(), mapping.bytes().end());
    };
    for_each_persistent(append);
    for (const ValueId result : graph_.results) append(result);
    return bytes;
  }

  // The same start for every plan; drawn once.
  void start(Program& program) {
    if (start_.empty()) {
      initialize(program, 7);
      for_each_persistent([&](ValueId value) {
        const HostMapping mapping = program.map_to_host(value, HostMapping::Use::read);
        start_.emplace_back(mapping.bytes().begin(), mapping.bytes().end());
      });
    }
    size_t i = 0;
    for_each_persistent([&](ValueId value) { program.write(value, 0, start_[i++]); });
  }

  const Graph& graph_;
  Backend& backend_;
  const Fill fill_;
  const Costs costs_;
  std::vector<std::vector<std::byte>> start_;  // of persistent values
  const Plan whole_;
  const std::vector<std::byte> expected_;
  std::vector<Plan> seen_;
};

inline constexpr int kBudgets = 8;

// Policies under every spelling worth telling apart.
inline std::vector<std::string> spellings() {
  std::vector<std::string> all = {"log_recursive:2", "log_recursive:5"};
  for (const Policy* policy : all_policies()) all.emplace_back(policy->name);
  return all;
}

struct Net {
  std::string label;
  ModelOptions options;
  SparsitySpec sparsity = {};
};

inline std::vector<Net> nets() {
  std::vector<Net> all;
  all.push_back({"wrn", {.name = "wrn-16-2", .batch = 3, .image = {8, 8, 3}, .dropout = 0.1}});
  all.push_back({"resnet50",
                 {.name = "resnet-50:hidden=16", .batch = 2, .image = {32, 32, 3}, .classes = 7}});
  all.push_back({"mlp", {.name = "mlp:layers=6,hidden=24", .batch = 5, .dropout = 0.3}});
  all.push_back({"lstm", {.name = "lstm:layers=2,hidden=8,length=24", .batch = 3}});
  all.push_back(
      {"lstm_runs", {.name = "lstm:layers=2,hidden=8,length=12,steps-at-once=5", .batch = 3}});
  all.push_back({"lstm_text",
                 {.name = "lstm:layers=2,hidden=8,length=12,steps-at-once=5,reads=tokens,"
                          "predicts=targets,embedding=6",
                  .batch = 3}});
  all.push_back(
      {"lstm_frames", {.name = "lstm:layers=1,hidden=8,length=9,predicts=targets", .batch = 3}});
  const std::string small =
      "width=16,heads=2,encoder=2,decoder=2,kernel=7,length=9,dropout=0.1,"
      "source-vocabulary=13,target-vocabulary=11";
  all.push_back({"dynamicconv", {.name = "dynamicconv:" + small, .batch = 3}});
  all.push_back({"lightconv", {.name = "lightconv:" + small, .batch = 2}});
  all.push_back({"sliced_dynamicconv", {.name = "dynamicconv:slices=2," + small, .batch = 3}});
  all.push_back(
      {"sparse_dynamicconv", {.name = "dynamicconv:" + small, .batch = 2}, {.density = 0.4}});
  all.push_back(
      {"unet",
       {.name = "unet:layers=3,hidden=4", .batch = 2, .image = {16, 16, 3}, .dropout = 0.1}});
  all.push_back(
      {"sparse_wrn", {.name = "wrn-16-1", .batch = 3, .image = {8, 8, 3}}, {.density = 0.3}});
  all.push_back(
      {"sparse_lstm", {.name = "lstm:layers=2,hidden=8,length=12", .batch = 3}, {.density = 0.5}});
  all.push_back({"gpt",
                 {.name = "gpt:layers=3,heads=2,width=16,vocabulary=11,length=12",
                  .batch = 2,
                  .dropout = 0.2}});
  all.push_back({"rotary_gpt",
                 {.name = "gpt:layers=2,heads=4,width=16,vocabulary=11,length=9,positions=rotary,"
                          "tied=off",
                  .batch = 2},
                 {.density = 0.5}});
  return all;
}

class Bits : public ::testing::TestWithParam<std::tuple<std::string, Net>> {
 protected:
  Bits()
      : backend_(make_backend(std::get<0>(GetParam()), 1)),
        training_(
            make_training_graph(options(), parse_optimizer("nesterov"), {}, 1, net().sparsity)),
        trial_(training_.model.graph, *backend_,
               [this](Program& program, int call) { fill(program, call); }) {}

  static const Net& net() { return std::get<1>(GetParam()); }
  // As the device wants it built.
  static ModelOptions options() {
    ModelOptions options = net().options;
    complete_model(options, std::get<0>(GetParam()) == "cuda");
    return options;
  }

  // Made-up data.
  void fill(Program& program, int call) const {
    const Model& model = training_.model;
    for (const Feed& feed : model.feeds) {
      const DType dtype = model.graph[feed.value].type.dtype;
      size_t i = 0;
      if (dtype == DType::u8) {
        for (uint8_t& pixel : program.view<uint8_t>(feed.value)) {
          pixel = static_cast<uint8_t>((i++ * 37 + static_cast<size_t>(call) * 11) % 251);
        }
      } else if (dtype == DType::f32) {
        for (float& x : program.view<float>(feed.value)) {
          x = static_cast<float>((i++ * 31 + static_cast<size_t>(call)) % 17) / 8.0f - 1.0f;
        }
      } else {
        int row = call;
        for (int32_t& label : program.view<int32_t>(feed.value)) {
          // Lengths have no limit of their own.
          label = feed.limit > 0 ? row++ % static_cast<int32_t>(feed.limit)
                                 : 1 + row++ % static_cast<int32_t>(model.options.length);
        }
      }
    }
    program.view<float>(model.loss_normalizer)[0] = 1.0f / static_cast<float>(model.options.batch);
    program.view<float>(training_.scalars.learning_rate)[0] = 0.05f;
    if (model.rng.valid()) {
      const auto rng = program.view<int64_t>(model.rng);
      rng[0] = 3, rng[1] = call, rng[2] = 0;
    }
  }

  std::unique_ptr<Backend> backend_;
  TrainingGraph training_;
  Trial trial_;
};

TEST_P(Bits, EveryPolicyAtEveryBudgetGivesTheBitsOfKeepAll) {
  for (const std::string& policy : spellings()) {
    trial_.expect_same_bits_at_budgets(policy, kBudgets);
  }
}

TEST_P(Bits, BudgetsOfOptimalAreInOrder) {
  const PlanResult refused = trial_.plan("optimal", Bytes(64));
  const Bytes floor = std::get<Infeasible>(refused).min_bytes;
  ASSERT_LE(floor, trial_.whole());
  Bytes last_arena(0);
  double last_seconds = 1e30;
  for (int i = 0; i <= kBudgets; ++i) {
    const Bytes budget = floor + Bytes((trial_.whole() - floor).count * i / kBudgets);
    const Plan fitted = std::get<Plan>(trial_.plan("optimal", budget));
    EXPECT_GE(fitted.arena, last_arena) << "a smaller budget gave a larger arena";
    EXPECT_LE(fitted.predicted_seconds, last_seconds) << "a smaller budget gave a faster plan";
    last_arena = fitted.arena;
    last_seconds = fitted.predicted_seconds;
  }
}

class RandomBits : public ::testing::TestWithParam<std::tuple<std::string, uint32_t>> {};

TEST_P(RandomBits, EveryPolicyAtEveryBudgetGivesTheBitsOfKeepAll) {
  const auto backend = make_backend(std::get<0>(GetParam()), 1);
  constexpr uint32_t kGraphs = 25;
  const uint32_t first = std::get<1>(GetParam()) * kGraphs;
  for (uint32_t seed = first; seed < first + kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStep call = random_step(1000 + seed);
    Trial trial(call.graph, *backend, [&](Program& program, int number) {
      fill_inputs(call.graph, call.rng, static_cast<uint64_t>(number + 1),
                  [&](ValueId v, const Tensor& tensor) {
                    std::memcpy(program.bytes_of(v).data(), tensor.bytes().data(),
                                tensor.bytes().size());
                  });
    });
    for (const std::string& policy : spellings()) {
      trial.expect_same_bits_at_budgets(policy, kBudgets);
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace thimble
