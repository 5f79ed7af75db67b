// Refusals that a bound proves: a large step is refused without a search, a small one with its floor.
#include "select/refusal.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "small_nets.h"

namespace thimble {
namespace {

// A deep perceptron: its floor would take too long.
Settings large() { return {{"model", "mlp"}, {"layers", 420}, {"hidden", 16}, {"batch", 256}}; }

struct Answer {
  std::variant<PlannedTraining, Refusal> planned;
  int looks = 0;  // of searches; the same on every machine
};

Answer answer_to(Settings settings, Bytes budget) {
  if (budget == kLeastMemory) {
    settings["memory"] = "least";
  } else {
    settings["memory"] = budget.count;
  }
  const Recipe recipe = recipe_of(settings);
  int looks = 0;
  const std::function<void()> watch = [&] { ++looks; };
  SearchLimits limits;
  limits.watch = &watch;
  auto planned = choose_and_plan(recipe, settings, open_machine(recipe, settings), limits);
  return {std::move(planned), looks};
}

TEST(ProvedRefusal, BelowTheWeightsOfALargeStepNothingElseIsBuilt) {
  const Answer answer = answer_to(large(), Bytes(10'240));
  const Refusal& refusal = std::get<Refusal>(answer.planned);
  EXPECT_EQ(answer.looks, 0);
  EXPECT_TRUE(refusal.proved);
  EXPECT_FALSE(refusal.searched);
  EXPECT_TRUE(refusal.floors.empty());
  EXPECT_GT(refusal.bound, Bytes(10'240));
  EXPECT_NE(refusal.sentence.find(std::to_string(refusal.bound.count)), std::string::npos);
  EXPECT_NE(refusal.sentence.find("--memory least"), std::string::npos) << refusal.sentence;
  const Answer enough = answer_to(large(), refusal.least.min_bytes);
  EXPECT_TRUE(std::holds_alternative<PlannedTraining>(enough.planned));
}

TEST(ProvedRefusal, AboveTheWeightsItNamesTheNodeThatNeedsMost) {
  const Refusal weights = std::get<Refusal>(answer_to(large(), Bytes(10'240)).planned);
  const Answer answer = answer_to(large(), weights.bound);
  const Refusal& refusal = std::get<Refusal>(answer.planned);
  EXPECT_TRUE(refusal.proved);
  EXPECT_FALSE(refusal.searched);
  EXPECT_GT(refusal.bound, weights.bound);
  EXPECT_NE(refusal.least.why.find("most is needed at '"), std::string::npos) << refusal.least.why;
  EXPECT_EQ(refusal.least.min_bytes, weights.least.min_bytes);
  // Once for each step that was built: none was searched.
  EXPECT_LT(answer.looks, 100);
}

// The floor of a step that takes less than a second to search is the one that `least` gives.
TEST(ProvedRefusal, OfASmallStepHasItsFloor) {
  Settings settings = small_nets()[0].explicit_settings;
  const Refusal refusal = std::get<Refusal>(answer_to(settings, Bytes(1)).planned);
  EXPECT_TRUE(refusal.proved);
  EXPECT_TRUE(refusal.searched);
  EXPECT_EQ(refusal.floors.size(), 3u);
  const Answer least = answer_to(settings, kLeastMemory);
  EXPECT_EQ(std::get<PlannedTraining>(least.planned).plan().arena, refusal.least.min_bytes);
}

// A step between: its own floor, and of other tiers that they may go further down.
TEST(ProvedRefusal, OfAMiddlingStepSearchesItsTierAlone) {
  const Settings settings = {{"model", "mlp"}, {"layers", 24}, {"hidden", 16}, {"batch", 32}};
  const Refusal refusal = std::get<Refusal>(answer_to(settings, Bytes(1)).planned);
  EXPECT_TRUE(refusal.searched);
  ASSERT_EQ(refusal.floors.size(), 1u);
  EXPECT_EQ(refusal.floors[0].tier, NumericsTier::equivalent);
  EXPECT_EQ(refusal.floors[0].least, refusal.least.min_bytes);
  ASSERT_FALSE(refusal.unlock.empty());
  EXPECT_NE(refusal.unlock[0].find("--allow approximate"), std::string::npos);
}

// No budget hangs: one byte, a terabyte, and all that a number holds, which is no size.
TEST(ProvedRefusal, BudgetsAtBothEndsAreAnswered) {
  const Settings settings = small_nets()[0].explicit_settings;
  EXPECT_TRUE(std::holds_alternative<Refusal>(answer_to(settings, Bytes(1)).planned));
  const Answer most = answer_to(settings, Bytes(int64_t{1} << 40));
  EXPECT_TRUE(std::holds_alternative<PlannedTraining>(most.planned));
  EXPECT_THROW(answer_to(settings, Bytes(INT64_MAX)), UserError);
}

}  // namespace
}  // namespace thimble
