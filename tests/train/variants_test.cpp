// Variants of one model in one arena: lengths of records, sizes of microbatches, evaluation.
#include <algorithm>
#include <cmath>

#include "plan/make_plan.h"
#include "plan/verify/verify_shared_arena.h"
#include "recipe/settings.h"
#include "support/runs.h"
#include "train/token_model.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

// A run on tokens: bits of everything that it keeps, and what it says.
struct Ended {
  std::string bits;
  TrainResult result;
};

Ended train(Recipe recipe, const Tokens& data, int64_t steps) {
  recipe.schedule = {.steps = steps, .rate = 0.02, .kind = RateSchedule::Kind::constant};
  recipe.seed = 4;
  PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
  const Feeder feeder(data, {.seed = 4});
  Trainer trainer(planned, feeder);
  const TrainResult result = trainer.run({});
  // Below it where no record was as long as the longest variant.
  EXPECT_LE(result.measured_arena, planned.plan().arena);
  return {persistent_bytes(trainer.program()), result};
}

TEST(Variants, LengthsShareTheArenaOfTheLongest) {
  const auto alone = std::get<PlannedTraining>(plan_training(token_recipe({12}, 7, 3)));
  const auto both = std::get<PlannedTraining>(plan_training(token_recipe({5, 12}, 7, 3)));
  EXPECT_EQ(both.plan().arena, alone.plan().arena);
  ASSERT_EQ(both.steps.size(), 4u);  // full and last microbatches of both
  for (const auto& variant : both.steps) {
    EXPECT_LE(variant->plan.arena, both.plan().arena);
    EXPECT_EQ(find_disagreement(both.graph(), both.plan(), variant->model.graph, variant->plan),
              std::nullopt);
  }
  const auto evaluations = plan_evaluation(both);
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0]->shape.length, 12);
  EXPECT_EQ(evaluations[1]->shape.length, 5);
  for (const auto& variant : evaluations) {
    EXPECT_LE(variant->plan.arena, both.plan().arena);
    EXPECT_EQ(find_disagreement(both.graph(), both.plan(), variant->model.graph, variant->plan),
              std::nullopt);
  }
}

// Large steps of about as many tokens are searched once: the others go by what was found.
TEST(Variants, OfALargeStepTheFirstIsSearched) {
  Recipe recipe;
  recipe.model.name = "dynamicconv:width=8,inner=8,heads=2,encoder=6,decoder=6,slices=8";
  recipe.optimizer = parse_optimizer("sgd");
  recipe.tokens = 256;
  recipe.lengths = {8, 16, 20};  // 256, 256 and 240 tokens
  recipe.memory = kLeastMemory;
  recipe.device = "null";
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  EXPECT_GT(planned.graph().nodes.size(), 4'000u);
  ASSERT_EQ(planned.steps.size(), 3u);
  const Schedule found = schedule_of(planned.plan());
  int alike = 0;
  for (const auto& variant : planned.steps) {
    EXPECT_LE(variant->plan.arena, planned.plan().arena);
    alike += schedule_of(variant->plan) == found ? 1 : 0;
  }
  EXPECT_EQ(alike, 3);
}

// A smaller last microbatch has first states of its own: in as little memory as there can be, room
// is left for them.
TEST(Variants, ASmallerLastMicrobatchFitsTheLeastMemory) {
  for (const char* precision : {"bf16", "fp32"}) {
    for (const int64_t microbatch : {5, 4}) {
      Recipe recipe;
      recipe.model = {.name = "lstm:hidden=24,length=12", .batch = 6};
      configure(recipe, {{"precision", precision}, {"optimizer", "sgd"}, {"clip-norm", 1}});
      if (recipe.model.storage != DType::f32) recipe.optimizer.rounding = Rounding::stochastic;
      recipe.microbatch = microbatch;
      recipe.planner = "optimal";
      Bytes most;
      for (const char* budget : {"least", "more"}) {
        recipe.memory = budget == std::string_view("least") ? kLeastMemory : most;
        const auto planned = std::get<PlannedTraining>(plan_training(recipe));
        ASSERT_EQ(planned.steps.size(), 2u);
        EXPECT_LE(planned.steps[1]->plan.arena, planned.plan().arena);
        EXPECT_EQ(find_disagreement(planned.graph(), planned.plan(), planned.steps[1]->model.graph,
                                    planned.steps[1]->plan),
                  std::nullopt);
        EXPECT_FALSE(plan_evaluation(planned).empty());
        most = planned.plan().arena;
      }
    }
  }
}

TEST(Variants, AMisplacedEvaluationIsFound) {
  const auto planned = std::get<PlannedTraining>(plan_training(token_recipe({6}, 4)));
  const auto evaluations = plan_evaluation(planned);
  const Graph& graph = evaluations.front()->model.graph;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer.valid() || !is_persistent(graph.values[v].role)) continue;
    Plan moved = evaluations.front()->plan;
    moved.sources[v] += Bytes(64);
    EXPECT_TRUE(find_disagreement(planned.graph(), planned.plan(), graph, moved).has_value());
  }
  // Over Adam's moments, which evaluation knows nothing of.
  const ValueId moment = [&] {
    for (size_t v = 0; v < planned.graph().values.size(); ++v) {
      if (planned.graph().values[v].role == Role::optimizer_state) return make_id<ValueId>(v);
    }
    return ValueId{};
  }();
  Plan over = evaluations.front()->plan;
  over.calls.back().outputs[0] = planned.plan().sources[moment.at()];
  EXPECT_TRUE(find_disagreement(planned.graph(), planned.plan(), graph, over).has_value());
}

// A step whose records are short is that of a run which knows short ones only, to the bit.
TEST(Variants, RecordsRunInTheShortestThatHoldsThem) {
  for (const int64_t microbatch : {0, 3}) {
    for (const int64_t length : {5, 12}) {
      const Tokens data({length}, 12, 40, 9);
      const Ended both = train(token_recipe({5, 12}, 8, microbatch), data, 6);
      const Ended alone = train(token_recipe({length}, 8, microbatch), data, 6);
      EXPECT_EQ(both.bits, alone.bits);
      EXPECT_EQ(both.result.losses, alone.result.losses);
      EXPECT_EQ(both.result.test["perplexity"], alone.result.test["perplexity"]);
    }
  }
}

// Lengths by turns: the same steps, each in an arena of its own length, handed on between them.
TEST(Variants, MixedLengthsGiveTheBitsOfSeparateArenas) {
  const Tokens data({5, 5, 5, 12}, 12, 40, 8);
  const Feeder feeder(data, {.seed = 4});
  const Recipe shared = token_recipe({5, 12}, 2);
  const auto planned = std::get<PlannedTraining>(plan_training(shared));
  const auto arena = planned.backend().allocate(planned.plan().arena);
  TrainingStep step(planned, feeder, *arena, 4);
  initialize(step.program(), 4);

  std::vector<PlannedTraining> plans;
  std::vector<std::unique_ptr<Memory>> arenas;
  std::vector<std::unique_ptr<TrainingStep>> steps;
  for (const int64_t length : {12, 5}) {
    plans.push_back(std::get<PlannedTraining>(plan_training(token_recipe({length}, 2))));
  }
  for (PlannedTraining& plan : plans) {
    arenas.push_back(plan.backend().allocate(plan.plan().arena));
    steps.push_back(std::make_unique<TrainingStep>(plan, feeder, *arenas.back(), 4));
    initialize(steps.back()->program(), 4);
  }
  int used[2] = {0, 0};
  for (int64_t s = 0; s < 10; ++s) {
    step.run(s, 0.02);
    const size_t length = step.result().variant().shape.length == 12 ? 0 : 1;
    ++used[length];
    steps[length]->run(s, 0.02);
    EXPECT_EQ(steps[length]->loss(), step.loss());
    Program& from = steps[length]->program();
    Program& to = steps[1 - length]->program();
    for (size_t v = 0; v < from.graph().values.size(); ++v) {
      const Value& value = from.graph().values[v];
      if (value.producer.valid() || !is_persistent(value.role)) continue;
      const auto bytes = from.bytes_of(make_id<ValueId>(v));
      const ValueId twin = to.graph().find(value.name);
      if (value.role == Role::constant) continue;
      std::ranges::copy(bytes, to.bytes_of(twin).begin());
      EXPECT_TRUE(std::ranges::equal(
          bytes, step.program().bytes_of(step.program().graph().find(value.name))));
    }
  }
  EXPECT_GT(used[0], 0);
  EXPECT_GT(used[1], 0);
}

// Metrics of microbatches and batches add up to those of all records.
TEST(Metrics, AddUpOverMicrobatchesAndBatches) {
  const Tokens data({5, 12, 7}, 12, 40, 10);
  const Ended whole = train(token_recipe({12}, 8), data, 5);
  const Ended parts = train(token_recipe({12}, 8, 3), data, 5);
  const Ended lengths = train(token_recipe({5, 7, 12}, 8, 3), data, 5);
  EXPECT_GT(whole.result.test["token_accuracy"], 0);
  for (const Ended* other : {&parts, &lengths}) {
    for (size_t i = 0; i < 5; ++i) {  // sums in another order
      EXPECT_NEAR(other->result.losses[i], whole.result.losses[i], 1e-4);
    }
    EXPECT_NEAR(other->result.test["token_accuracy"], whole.result.test["token_accuracy"], 0.02);
  }
  // Of the last epoch, which is all five steps: exp of the mean of losses.
  double mean = 0;
  for (const double loss : whole.result.losses) mean += loss / 5;
  EXPECT_NEAR(whole.result.train["perplexity"], std::exp(mean), 1e-9 * std::exp(mean));
  EXPECT_EQ(whole.result.test["perplexity"], std::exp(whole.result.test.loss));
  EXPECT_EQ(whole.result.test["no such metric"], 0);
}

TEST(Metrics, ATallySurvivesACheckpoint) {
  const Tokens data({4}, 4, 8, 2);
  const Recipe recipe = token_recipe({4}, 4);
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  const auto arena = planned.backend().allocate(planned.plan().arena);
  const Feeder feeder(data, {});
  TrainingStep step(planned, feeder, *arena, 1);
  initialize(step.program(), 1);
  step.run(0, 0.1);
  MetricAccumulator accumulated(planned.full().model);
  accumulated.add(step.program(), planned.full().model, step.counted(), 1);
  EXPECT_EQ(step.counted(), 16);
  MetricAccumulator again(planned.full().model);
  ASSERT_TRUE(again.from_json(accumulated.to_json()));
  EXPECT_EQ(again.figures().loss, accumulated.figures().loss);
  EXPECT_EQ(again.figures()["token_accuracy"], accumulated.figures()["token_accuracy"]);
  nlohmann::json damaged = accumulated.to_json();
  damaged["metrics"].erase("token_accuracy");
  EXPECT_FALSE(again.from_json(damaged));
  EXPECT_FALSE(again.from_json(3));
}

}  // namespace
}  // namespace thimble
