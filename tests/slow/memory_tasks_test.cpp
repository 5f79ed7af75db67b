// A long memory in little memory: the adding problem over 500 time steps, in an eighth of what it
// takes to keep everything.
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

TEST(MemoryTasks, AddingOver500StepsInAnEighthOfTheArena) {
  const TemporaryFolder folder;
  const Words what = {
      "lstm:layers=1,hidden=32,length=500,steps-at-once=10,predicts=number,"
      "memory-steps=500",
      "--data",
      "adding",
      "--batch",
      "32",
      "--optimizer",
      "adam",
      "--clip-norm",
      "1",
      "--threads",
      "1",
      "--json"};
  const Outcome kept = thimble_says(Words{"plan"} + what);
  ASSERT_EQ(kept.code, 0) << kept.err;
  const int64_t eighth = kept.json()["arena_bytes"].get<int64_t>() / 8;
  const Outcome trained = thimble_says(
      Words{"train"} + what +
      Words{"--memory", std::to_string(eighth), "--fit", "off", "--epochs", "15", "--lr", "5e-3",
            "--schedule", "cosine", "--save-every", "0", "--out", folder / "run"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_LE(trained.json()["measured_arena_bytes"].get<int64_t>(), eighth);
  // Who remembers nothing is off by sqrt(1/6) = 0.41; solved is a tenth of that.
  EXPECT_LT(trained.json()["test_deviation"].get<double>(), 0.06);
}

}  // namespace
}  // namespace thimble
