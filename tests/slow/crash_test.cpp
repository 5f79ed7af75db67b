// Long runs of what tests/cli does a few times: kills at many random moments, on every kind of
// model.
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

class Crash : public testing::TestWithParam<Words> {};

TEST_P(Crash, ResumedRunsEndInTheSameBits) {
  const TemporaryFolder folder;
  const Words words = Words{"train", "--threads", "2", "--save-every", "0.05"} + GetParam();
  const Outcome whole = thimble_says(words + Words{"--out", folder / "whole", "--json"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  int all_kills = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    int kills = 0;
    const nlohmann::json resumed =
        killed_and_resumed(words, folder / fmt::format("k{}", seed), 60, seed, 6, kills);
    all_kills += kills;
    ASSERT_EQ(resumed["weights_sha256"], whole.json()["weights_sha256"]) << "seed " << seed;
    ASSERT_EQ(resumed["test_accuracy"], whole.json()["test_accuracy"]) << "seed " << seed;
    ASSERT_EQ(slurp(folder / fmt::format("k{}/latest/optimizer.safetensors", seed)),
              slurp(folder / "whole/latest/optimizer.safetensors"));
  }
  EXPECT_GE(all_kills, 5);  // how many hit depends on the machine's speed
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, Crash,
    testing::Values(
        Words{"mlp", "--steps", "60", "--batch", "32", "--dropout", "0.3", "--optimizer", "adam"},
        Words{"wrn-10-1", "--steps", "60", "--batch", "32", "--augment", "--dropout", "0.1"},
        Words{"lstm", "--steps", "60", "--batch", "32", "--hidden", "32", "--length", "8"}),
    [](const auto& test) { return test.param[0].substr(0, test.param[0].find('-')); });

}  // namespace
}  // namespace thimble
