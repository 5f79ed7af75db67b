// A GPT of bytes learns the pages of docs/, and continues them. The largest of the family is
// planned in seconds.
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

TEST(Gpt, LearnsPagesByTheByte) {
  const TemporaryFolder folder;
  const std::string docs = std::string(THIMBLE_RECIPES) + "/../docs/";
  Words make = {"data", "tokens", "--by", "bytes", "--out", folder / "pages"};
  for (const char* page : {"cli.md", "checkpoints.md", "reference/search.md",
                           "reference/backends.md", "reference/ops.md", "data.md"}) {
    make.push_back(docs + page);
  }
  ASSERT_EQ(thimble_says(make).code, 0);
  const auto train = [&](const Words& flags) {
    return thimble_says(Words{"train",          "gpt:layers=3,heads=4,width=96,length=96",
                              "--data",         "tokens",
                              "--data-dir",     folder / "pages",
                              "--batch",        "16",
                              "--steps",        "400",
                              "--optimizer",    "adamw",
                              "--lr",           "3e-3",
                              "--weight-decay", "0.1",
                              "--decay-on",     "matrices",
                              "--clip-norm",    "1",
                              "--warmup",       "20 steps",
                              "--eval-every",   "0",
                              "--save-every",   "0",
                              "--json"} +
                        flags);
  };
  const Outcome kept = train({"--out", folder / "kept"});
  ASSERT_EQ(kept.code, 0) << kept.err;
  // Measured: 2.38 and 2.64. Knowing how often each byte is gives 3.3.
  EXPECT_LT(kept.json()["train_loss"], 2.5);
  EXPECT_LT(kept.json()["test_loss"], 2.8);
  // In the least memory, the same weights to the bit.
  const Outcome least = train({"--out", folder / "least", "--memory", "least", "--fit", "off"});
  ASSERT_EQ(least.code, 0) << least.err;
  EXPECT_EQ(least.json()["weights_sha256"], kept.json()["weights_sha256"]);
  EXPECT_LT(2 * least.json()["arena_bytes"].get<int64_t>(),
            kept.json()["arena_bytes"].get<int64_t>());

  const Words ask = {"sample", folder / "kept", "--prompt", "The ", "--length", "40", "--json"};
  const Outcome said = thimble_says(ask);
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.json()["tokens"].size(), 40u);
  EXPECT_EQ(thimble_says(ask).json()["text"], said.json()["text"]);
  EXPECT_NE(thimble_says(ask + Words{"--seed", "2"}).json()["text"], said.json()["text"]);
}

TEST(Gpt, TheLargestIsPlannedInSeconds) {
  for (const Words& flags : {Words{}, Words{"--memory", "least"}, Words{"--memory", "19GiB"}}) {
    const Outcome plan = thimble_says(Words{"plan", "gpt2-1558m", "--batch", "1", "--device",
                                            "null", "--optimizer", "adamw", "--json"} +
                                      flags);
    ASSERT_EQ(plan.code, 0) << plan.err;
    EXPECT_LT(plan.json()["plan_seconds"], 10);
  }
}

}  // namespace
}  // namespace thimble
