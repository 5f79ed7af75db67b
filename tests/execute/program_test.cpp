#include "execute/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/io/sha256.h"
#include "execute/costs.h"
#include "execute/measure.h"
#include "select/choose.h"
#include "support/interpreter.h"
#include "support/plan_cases.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

constexpr std::byte kUntouched{0xA5};
constexpr int64_t kBeyond = 4096;  // bytes that belong to nobody

// A planned model in an arena, with inputs drawn from a seed.
class Running {
 public:
  explicit Running(const ModelOptions& options, const std::string& optimizer = "adam")
      : planned_(plan(options, optimizer)) {
    arena_ = planned_.backend().allocate(planned_.plan().arena + Bytes(kBeyond));
    program_ = std::make_unique<Program>(graph(), planned_.plan(), planned_.backend(), *arena_);
    start();
  }

  void start(std::byte old = kUntouched) {
    std::memset(arena_->base(), static_cast<int>(old), static_cast<size_t>(arena_->size().count));
    initialize(*program_, 7);
  }

  void fill(uint64_t seed) {
    for (size_t v = 0; v < graph().values.size(); ++v) {
      const Value& value = graph().values[v];
      if (value.producer.valid() || value.role != Role::input) continue;
      const ValueId id = make_id<ValueId>(v);
      Tensor tensor(value.type);
      const bool labels = id == model().feed("label").value;
      fill_tensor(tensor,
                  {labels ? Fill::Kind::labels : Fill::Kind::uniform, labels ? 0.0 : 0.01,
                   labels ? 10.0 : 1.0},
                  seed + v);
      std::memcpy(program_->bytes_of(id).data(), tensor.bytes().data(), tensor.bytes().size());
    }
  }

  // Of every persistent value.
  std::string digest() {
    Sha256 hash;
    for (size_t v = 0; v < graph().values.size(); ++v) {
      const Value& value = graph().values[v];
      if (value.producer.valid() || !is_persistent(value.role)) continue;
      hash.update(program_->bytes_of(make_id<ValueId>(v)));
    }
    return hash.hex();
  }

  Program& program() { return *program_; }
  const Model& model() const { return planned_.full().model; }
  const Graph& graph() const { return model().graph; }
  const Plan& plan() const { return planned_.plan(); }
  Memory& arena() { return *arena_; }

 private:
  static PlannedTraining plan(const ModelOptions& options, const std::string& optimizer) {
    Recipe recipe;
    recipe.model = options;
    recipe.optimizer = parse_optimizer(optimizer);
    recipe.on.threads = 2;
    return std::get<PlannedTraining>(plan_training(recipe));
  }

  PlannedTraining planned_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Program> program_;
};

class Programs : public testing::TestWithParam<ModelOptions> {};

TEST_P(Programs, WhatIsMeasuredIsWhatWasPlanned) {
  Running running(GetParam());
  EXPECT_LE(running.program().touched(), running.plan().arena);  // sources only: nothing has run
  running.fill(1);
  running.program().run();
  EXPECT_EQ(running.program().touched(), running.plan().arena);
  const Measurement measured = measure(running.program());
  EXPECT_EQ(measured.arena, running.plan().arena);
  EXPECT_EQ(measured.peak_live, running.plan().peak_live);
  EXPECT_EQ(measured.by_role, running.plan().peak_by_role);
}

TEST_P(Programs, NothingIsWrittenBeyondTheArena) {
  Running running(GetParam());
  running.fill(1);
  running.program().run();
  const std::byte* end = running.arena().base() + running.plan().arena.count;
  EXPECT_TRUE(std::all_of(end, end + kBeyond, [](std::byte b) { return b == kUntouched; }));
}

// A step that reads what is neither an input nor made by itself shows in the bits.
TEST_P(Programs, WhatLayInTheArenaBeforeDoesNotMatter) {
  Running running(GetParam());
  std::string seen[2];
  for (const int round : {0, 1}) {
    running.start(round == 0 ? kUntouched : std::byte{0x3C});
    running.fill(1);
    running.program().run();
    seen[round] = running.digest();
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_P(Programs, TwiceTheSameBits) {
  Running running(GetParam());
  const std::string initial = running.digest();
  std::string seen[2];
  float losses[2][2];
  for (int round = 0; round < 2; ++round) {
    running.start();
    EXPECT_EQ(running.digest(), initial);
    for (uint64_t step = 0; step < 2; ++step) {
      running.fill(step);
      running.program().run();
      losses[round][step] = running.program().view<float>(running.model().loss)[0];
    }
    seen[round] = running.digest();
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], initial);
  EXPECT_EQ(std::memcmp(losses[0], losses[1], sizeof(losses[0])), 0);
}

TEST_P(Programs, TracingChangesNoBits) {
  Running running(GetParam());
  running.fill(3);
  running.program().run();
  const std::string plain = running.digest();
  running.start();
  running.fill(3);
  Trace trace;
  running.program().run_traced(trace);
  EXPECT_EQ(running.digest(), plain);
  EXPECT_EQ(trace.call_seconds.size(), running.plan().calls.size());
  EXPECT_EQ(trace.touched, running.plan().arena);
  double sum = 0;
  for (const double seconds : trace.call_seconds) {
    EXPECT_GE(seconds, 0);
    sum += seconds;
  }
  EXPECT_LE(sum, trace.seconds);
}

TEST_P(Programs, AWatchLeavesTheStepBeforeAnyUpdateOfWeights) {
  Running running(GetParam());
  const auto weights = [&] {
    Sha256 hash;
    for (size_t v = 0; v < running.graph().values.size(); ++v) {
      const Value& value = running.graph().values[v];
      const bool trained = value.role == Role::weight || value.role == Role::optimizer_state;
      if (!value.producer.valid() && trained)
        hash.update(running.program().bytes_of(make_id<ValueId>(v)));
    }
    return hash.hex();
  };
  const std::string before = weights();
  int calls = 0;
  running.program().watch(running.model().loss, [&] {
    if (++calls == 1) throw UserError("stop");
  });
  running.fill(1);
  EXPECT_THROW(running.program().run(), UserError);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weights(), before);
  running.fill(1);  // and the program can go on
  running.program().run();
  EXPECT_EQ(calls, 2);
  EXPECT_NE(weights(), before);
}

TEST_P(Programs, RunsOnlyAsFarAsAsked) {
  Running running(GetParam());
  running.fill(1);
  const size_t count = running.program().calls_until(running.model().loss);
  EXPECT_LT(count, running.plan().calls.size());
  EXPECT_EQ(running.graph()[running.plan().calls[count - 1].node].outputs[0], running.model().loss);
  std::vector<size_t> seen;
  running.program().run_until(count, [&](size_t s) { seen.push_back(s); });
  ASSERT_EQ(seen.size(), count);
  for (size_t s = 0; s < count; ++s) EXPECT_EQ(seen[s], s);
  const float loss = running.program().view<float>(running.model().loss)[0];
  running.start();
  running.fill(1);
  running.program().run();
  EXPECT_EQ(loss, running.program().view<float>(running.model().loss)[0]);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Programs,
                         testing::Values(small_mlp(), small_wrn(), small_lstm(), small_lstm_runs()),
                         [](const auto& test) {
                           return test.param.name.substr(0, test.param.name.find_first_of("-:")) +
                                  (test.param.name.find("steps-at-once") != std::string::npos
                                       ? "_runs"
                                       : "");
                         });

TEST(Program, AResNetMeasuresAsPlanned) {
  Running running(small_resnet(), "sgd");
  running.fill(1);
  running.program().run();
  const Measurement measured = measure(running.program());
  EXPECT_EQ(measured.arena, running.plan().arena);
  EXPECT_EQ(measured.peak_live, running.plan().peak_live);
  EXPECT_EQ(measured.by_role, running.plan().peak_by_role);
}

TEST(Program, EvaluationSharesTheArenaAndReadsTheSameWeights) {
  Recipe recipe;
  recipe.model = small_wrn();
  auto planned = std::get<PlannedTraining>(plan_training(recipe));
  const auto evaluations = plan_evaluation(planned);
  ASSERT_EQ(evaluations.size(), 1u);
  const PlannedStep* const evaluation = evaluations.front().get();
  EXPECT_LE(evaluation->plan.arena, planned.plan().arena);
  const Graph& trained = planned.graph();
  int shared = 0;
  for (size_t v = 0; v < evaluation->model.graph.values.size(); ++v) {
    const Value& value = evaluation->model.graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    const ValueId twin = trained.find(value.name);
    ASSERT_TRUE(twin.valid()) << value.name;
    EXPECT_EQ(evaluation->plan.sources[v], planned.plan().sources[twin.at()]) << value.name;
    ++shared;
  }
  EXPECT_GT(shared, 10);
  // Nothing that evaluation writes lies where training keeps what it needs for the next step.
  for (const PlannedCall& step : evaluation->plan.calls) {
    const Node& node = evaluation->model.graph[step.node];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.op->view) continue;
      const int64_t at = step.outputs[k].count;
      const int64_t end = at + evaluation->model.graph[node.outputs[k]].type.bytes().count;
      for (size_t v = 0; v < trained.values.size(); ++v) {
        const Value& value = trained.values[v];
        if (value.producer.valid() || !is_persistent(value.role)) continue;
        const int64_t kept = planned.plan().sources[v].count;
        EXPECT_TRUE(end <= kept || kept + value.type.bytes().count <= at) << node.name;
      }
    }
  }
}

TEST(Program, AnArenaThatIsTooSmallIsABug) {
  Recipe recipe;
  recipe.model = small_mlp();
  auto planned = std::get<PlannedTraining>(plan_training(recipe));
  const auto arena = planned.backend().allocate(planned.plan().arena - Bytes(64));
  EXPECT_THROW(Program(planned.graph(), planned.plan(), planned.backend(), *arena), InternalError);
}

TEST(Program, CostsAreGatheredForEveryNode) {
  const auto backend = make_backend("cpu", 1);
  const TrainingGraph training = make_training_graph(small_wrn(), parse_optimizer("sgd"));
  const Costs costs = gather_costs(training.model.graph, *backend);
  ASSERT_EQ(costs.nodes.size(), training.model.graph.nodes.size());
  for (size_t n = 0; n < costs.nodes.size(); ++n) {
    EXPECT_GT(costs.nodes[n].seconds, training.model.graph.nodes[n].op->view ? -1e-30 : 0);
    EXPECT_EQ(costs.nodes[n].workspace,
              backend->kernel(signature_of(training.model.graph, make_id<NodeId>(n))).workspace);
  }
}

}  // namespace
}  // namespace thimble
