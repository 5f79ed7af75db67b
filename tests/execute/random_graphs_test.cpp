// Random training steps, planned in every way and run in one arena, against the interpreter that
// gives every value bytes of its own: the same kernels must give the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "autodiff/autodiff.h"
#include "execute/costs.h"
#include "execute/measure.h"
#include "plan/search/fill_slack.h"
#include "support/interpreter.h"
#include "support/plan_cases.h"
#include "support/planned_run.h"
#include "support/random_steps.h"

namespace thimble {
namespace {

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Two training steps of the plan, bit for bit against the interpreter. Also what it measures.
void expect_same_bits(const Graph& graph, ValueId rng, const Plan& plan, Backend& backend) {
  const Interpreter start(graph, nullptr, 42);
  const auto contents = [&](ValueId value, int step, int) {
    Tensor content = start[value];
    fill_inputs(graph, rng, static_cast<uint64_t>(step) + 1, [&](ValueId v, const Tensor& tensor) {
      if (v == value) content = tensor;
    });
    return content;
  };
  ASSERT_EQ(find_other_bits(graph, plan, backend, contents), std::nullopt);
  const auto arena = backend.allocate(plan.arena);
  Program program(graph, plan, backend, *arena);
  program.run();
  const Measurement measured = measure(program);
  EXPECT_EQ(measured.peak_live, plan.peak_live);
  EXPECT_EQ(measured.by_role, plan.peak_by_role);
}

class RandomGraphs : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomGraphs, SameBitsWhateverThePlan) {
  const auto backend = make_backend("cpu", 2);
  for (uint32_t seed = GetParam() * 25; seed < GetParam() * 25 + 25; ++seed) {
    const RandomStep step = random_step(seed);
    const Costs costs = gather_costs(step.graph, *backend);
    std::mt19937 random(seed);
    for (const double recomputation : {0.0, 0.2, 0.6}) {
      const Schedule schedule = with_recomputation(step.graph, random, recomputation, 3);
      for (const Sharing sharing : {Sharing::none, Sharing::in_place, Sharing::sharing}) {
        SCOPED_TRACE(fmt::format("seed {}, recomputation {}, sharing {}", seed, recomputation,
                                 static_cast<int>(sharing)));
        const Plan plan =
            lay_out({.graph = step.graph, .costs = costs, .sharing = sharing}, schedule);
        ASSERT_EQ(find_fault(step.graph, costs, plan), std::nullopt) << print_graph(step.graph);
        expect_same_bits(step.graph, step.rng, plan, *backend);
        if (HasFatalFailure()) return;
      }
      const PlanRequest request{.graph = step.graph, .costs = costs};
      const Plan fuller = lay_out(request, drop_redundant_recomputes(request, schedule));
      ASSERT_EQ(find_fault(step.graph, costs, fuller), std::nullopt);
      expect_same_bits(step.graph, step.rng, fuller, *backend);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, testing::Range(0u, 8u));

TEST(RandomGraphsOfModels, RecomputedModelsGiveTheSameBits) {
  const auto backend = make_backend("cpu", 2);
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_lstm()}) {
    const TrainingGraph training = make_training_graph(options, parse_optimizer("adamw"));
    const Graph& graph = training.model.graph;
    const Costs costs = gather_costs(graph, *backend);
    for (const uint32_t seed : {1u, 2u, 3u}) {
      SCOPED_TRACE(fmt::format("{}, seed {}", options.name, seed));
      std::mt19937 random(seed);
      const Plan plan = lay_out({.graph = graph, .costs = costs},
                                with_recomputation(graph, random, 0.1 * seed, 2));
      ASSERT_EQ(find_fault(graph, costs, plan), std::nullopt);
      expect_same_bits(graph, training.model.rng, plan, *backend);
    }
  }
}

// A gradient summed over microbatches, statistics updated by each of them, one update at the end.
TEST(Microbatches, SameBitsAsTheInterpreterPhaseByPhase) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare), rate = b.input("rate", {{1}, DType::f32});
  const ValueId w = b.weight("w", kSquare, {Init::Kind::normal, 0.5});
  const TensorType channel = {{8}, DType::f32};
  const ValueId mean = b.statistic("mean", channel), var = b.statistic("var", channel);
  b.set_phase(Phase::prologue);
  const ValueId zero = b.op("fill", {}, {{"shape", std::vector<int64_t>{8, 8}}, {"value", 0.0}});
  const ValueId table = b.op("scale", {w}, {{"factor", 0.5}});
  b.set_phase(Phase::per_microbatch);
  const ValueId h = b.op("tanh", {b.op("matmul", {x, table})});
  const auto statistics = b.apply("batch_norm_stats", {h});
  b.apply("running_stats_update", {mean, var, statistics[0], statistics[1]},
          {{"momentum", 0.1}, {"count", int64_t{8}}});
  const ValueId sum = b.accumulate("matmul", {h, x}, {}, {zero})[0];
  const ValueId last = b.op("relu", {table});
  b.set_phase(Phase::epilogue);
  b.op("update", {w, sum, rate}, {{"rule", "sgd_plain"}, {"weight_decay", 0.01}});
  graph.results = {sum, last};
  verify_graph(graph);

  const auto backend = make_backend("cpu", 2);
  const Costs costs = gather_costs(graph, *backend);
  for (const int microbatches : {1, 2, 5}) {
    for (const Sharing sharing : {Sharing::none, Sharing::in_place, Sharing::sharing}) {
      SCOPED_TRACE(
          fmt::format("{} microbatches, sharing {}", microbatches, static_cast<int>(sharing)));
      const Plan plan = std::get<Plan>(make_plan(
          {.graph = graph, .costs = costs, .sharing = sharing, .microbatches = microbatches}));
      ASSERT_EQ(find_fault(graph, costs, plan), std::nullopt);
      const auto arena = backend->allocate(plan.arena);
      Program program(graph, plan, *backend, *arena);
      Interpreter oracle(graph, backend.get(), 9);
      for (const ValueId v : {w, mean, var}) {
        std::memcpy(program.bytes_of(v).data(), oracle[v].bytes().data(), oracle[v].bytes().size());
      }
      for (uint64_t step = 0; step < 2; ++step) {
        const auto data = [&](int microbatch, const auto& put) {
          fill_inputs(graph, {}, 100 * step + static_cast<uint64_t>(microbatch), put);
        };
        program.run([&](int m) {
          data(m, [&](ValueId v, const Tensor& tensor) {
            std::memcpy(program.bytes_of(v).data(), tensor.bytes().data(), tensor.bytes().size());
          });
        });
        oracle.run_phase(Phase::prologue);
        for (int m = 0; m < microbatches; ++m) {
          data(m, [&](ValueId v, const Tensor& tensor) { oracle[v] = tensor; });
          oracle.run_phase(Phase::per_microbatch);
        }
        oracle.run_phase(Phase::epilogue);
        EXPECT_TRUE(same(program.bytes_of(sum), oracle[sum].bytes())) << step;
        EXPECT_TRUE(same(program.bytes_of(last), oracle[last].bytes())) << step;
        oracle.commit();
        for (const ValueId v : {w, mean, var}) {
          EXPECT_TRUE(same(program.bytes_of(v), oracle[v].bytes())) << graph[v].name << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thimble
