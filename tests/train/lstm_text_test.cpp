// An LSTM that reads a text: state that goes on from step to step, and gradients that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "select/choose.h"
#include "train/trainer.h"

namespace thimble {
namespace {

constexpr int64_t kText = 48;  // tokens, each with one behind it
constexpr int64_t kTokens = 11;

// The text in windows of some length.
class Text final : public Dataset {
 public:
  explicit Text(int64_t length) : length_(length) {
    info_ = {.name = "text", .train_count = kText / length, .test_count = 2};
    for (const char* name : {"tokens", "targets"}) {
      info_.fields.push_back(
          {.name = name, .dtype = DType::i32, .shape = {length}, .limit = kTokens});
    }
  }
  const DatasetInfo& info() const override { return info_; }
  void read(Split, int64_t index, std::span<const RecordPart> parts) const override {
    for (size_t f = 0; f < parts.size(); ++f) {
      const std::span<int32_t> to = parts[f].all<int32_t>();
      for (size_t i = 0; i < to.size(); ++i) {
        const int64_t at = index * length_ + static_cast<int64_t>(i + f);
        to[i] = static_cast<int32_t>(at * at * 5 % kTokens);
      }
    }
  }

 private:
  const int64_t length_;
  DatasetInfo info_;
};

Recipe recipe_of(int64_t length, const std::string& more, double rate) {
  Recipe recipe;
  recipe.model.name =
      fmt::format("lstm:layers=2,hidden=8,reads=tokens,predicts=targets,length={}{}", length, more);
  recipe.model.batch = 2;
  recipe.model.classes = kTokens;
  recipe.optimizer = parse_optimizer("sgd");
  recipe.schedule.rate = rate;
  recipe.schedule.kind = RateSchedule::Kind::constant;
  recipe.on.threads = 1;
  return recipe;
}

std::vector<double> losses(int64_t length, const std::string& more, double rate, int64_t steps,
                           const TrainOptions& options = {}) {
  const Text text(length);
  const Feeder feeder(text, {});
  Recipe recipe = recipe_of(length, more, rate);
  recipe.schedule.steps = steps;
  recipe.evaluate = false;
  auto planned = std::get<PlannedTraining>(plan_training(recipe));
  Trainer trainer(planned, feeder, options);
  return trainer.run([](const Progress&) {}).losses;
}

double mean(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// Rows of 24 tokens, or of 6 four times.
TEST(LstmText, CarriedStateMakesOneRowOfMany) {
  const double whole = losses(24, "", 0, 1).front();
  for (const char* more : {",carried-state=on", ",carried-state=on,steps-at-once=4"}) {
    const std::vector<double> parts = losses(6, more, 0, 8);
    EXPECT_NEAR(mean(std::span(parts).first(4)), whole, 1e-6 * whole);
    // An epoch begins from zeros.
    EXPECT_EQ(std::vector(parts.begin() + 4, parts.end()),
              std::vector(parts.begin(), parts.begin() + 4));
  }
  EXPECT_GT(std::abs(mean(losses(6, "", 0, 4)) - whole), 1e-4 * whole);
}

TEST(LstmText, CarriedStateIsPartOfACheckpoint) {
  const TemporaryFolder folder;
  const std::vector<double> whole = losses(6, ",carried-state=on", 0.5, 6);
  losses(6, ",carried-state=on", 0.5, 3, {.out = folder / "out"});
  const std::vector<double> rest =
      losses(6, ",carried-state=on", 0.5, 6, {.out = folder / "out", .resume = true});
  EXPECT_EQ(rest, std::vector(whole.begin() + 3, whole.end()));
}

TEST(LstmText, CarriedStateIsOfAWholeBatch) {
  Recipe recipe = recipe_of(6, ",carried-state=on", 0.1);
  recipe.microbatch = 1;
  EXPECT_TRUE(throws_saying<UserError>([&] { plan_training(recipe); }, "--microbatch"));
}

// The forward pass is the same, the first gradient is not.
TEST(LstmText, TruncationEndsGradients) {
  const std::vector<double> full = losses(12, "", 0.5, 2);
  for (const char* more : {",truncate=4", ",truncate=4,steps-at-once=3"}) {
    const std::vector<double> cut = losses(12, more, 0.5, 2);
    EXPECT_NEAR(cut[0], full[0], 1e-6 * full[0]);
    EXPECT_GT(std::abs(cut[1] - full[1]), 1e-5 * full[1]);
  }
  EXPECT_EQ(losses(12, ",truncate=12", 0.5, 2), full);
  EXPECT_EQ(losses(12, ",truncate=400", 0.5, 2), full);
}

// Runs of time steps end where gradients do: at 4 and 8 of 12, so that a layer has six of them.
TEST(LstmText, RunsEndWhereGradientsDo) {
  const Graph graph = make_training_graph(recipe_of(12, ",truncate=4,steps-at-once=3", 0.1).model,
                                          parse_optimizer("sgd"))
                          .model.graph;
  const auto count = [&](std::string_view op) {
    return std::ranges::count_if(graph.nodes,
                                 [&](const Node& node) { return node.op->name == op; });
  };
  EXPECT_EQ(count("lstm_steps"), 2 * 6);
  EXPECT_EQ(count("detach"), 2 * 2 * 2);
}

// A budget below everything kept is met at any length: gradients of losses come with the time steps
// that they belong to, not all of them first.
TEST(LstmText, LessMemoryIsToBeHadAtAnyLength) {
  for (const int64_t length : {64, 96}) {
    Recipe recipe;
    recipe.model.name = fmt::format("lstm:layers=4,hidden=512,predicts=targets,length={}", length);
    recipe.model.batch = 64;
    recipe.model.classes = 2500;
    recipe.device = "null";
    recipe.planner = "optimal";
    const auto arena = [&](std::optional<Bytes> budget) {
      recipe.memory = budget;
      return std::get<PlannedTraining>(plan_training(recipe)).plan().arena;
    };
    EXPECT_LT(arena(kLeastMemory).count * 5, arena({}).count * 2) << length;
  }
}

}  // namespace
}  // namespace thimble
