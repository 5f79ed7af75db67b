// thimble translate and thimble average, on a run that is just long enough.
#include "support/run_thimble.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kGerman[] = {"ein Hund",    "eine Katze",     "zwei Hunde",
                                   "zwei Katzen", "der Hund läuft", "die Katze schläft schnell"};
constexpr const char* kEnglish[] = {"a dog",    "a cat",        "two dogs",
                                    "two cats", "the dog runs", "the cat sleeps fast"};

// One run for all tests.
class Translate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    std::string de, en;
    for (int i = 0; i < 60; ++i) {
      de += std::string(kGerman[i % 6]) + "\n";
      en += std::string(kEnglish[i % 6]) + "\n";
    }
    spill(*folder_ / "a.de", de);
    spill(*folder_ / "a.en", en);
    ASSERT_EQ(thimble_says({"data", "pairs", "--train", *folder_ / "a.de", *folder_ / "a.en",
                            "--valid-every", "7", "--out", *folder_ / "set"})
                  .code,
              0);
    const Outcome trained =
        thimble_says({"train",
                      "dynamicconv:width=32,inner=32,heads=2,encoder=1,decoder=1",
                      "--data",
                      "pairs",
                      "--data-dir",
                      *folder_ / "set",
                      "--tokens",
                      "60",
                      "--steps",
                      "120",
                      "--optimizer",
                      "adam",
                      "--lr",
                      "5e-3",
                      "--schedule",
                      "constant",
                      "--threads",
                      "1",
                      "--out",
                      *folder_ / "run",
                      "--save-every",
                      "10 steps",
                      "--keep-checkpoints",
                      "3",
                      "--json"});
    ASSERT_EQ(trained.code, 0) << trained.err;
    ASSERT_FALSE(trained.json()["buckets"].empty());
    EXPECT_LE(trained.json()["measured_arena_bytes"], trained.json()["arena_bytes"]);
  }
  static void TearDownTestSuite() { delete folder_; }

  Words words(const std::string& input) const {
    return {"translate", *folder_ / "run", "--input", input, "--output", own_ / "out"};
  }

  static TemporaryFolder* folder_;
  TemporaryFolder own_;
};
TemporaryFolder* Translate::folder_ = nullptr;

TEST_F(Translate, EveryLineInItsPlace) {
  spill(own_ / "in", "zwei Katzen\n\nein Hund\ndie Katze schläft schnell\neine Katze");
  spill(own_ / "wanted", "two cats\n\na dog\nthe cat sleeps fast\na cat");
  const Outcome outcome = thimble_says(words(own_ / "in") + Words{"--reference", own_ / "wanted"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(slurp(own_ / "out"), "two cats\n\na dog\nthe cat sleeps fast\na cat\n");
  EXPECT_NE(outcome.out.find("BLEU = 100.00"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << "drawn where there is no terminal";
  EXPECT_NE(outcome.err.find("4 of 4 sentences"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"), std::string::npos);
}

TEST_F(Translate, HowManyAtATimeDoesNotMatter) {
  std::string all, one;
  for (const char* line : kGerman) all += std::string(line) + "\n";
  spill(own_ / "all", all + all + all);
  for (const char* beam : {"1", "2", "7"}) {
    ASSERT_EQ(thimble_says(words(own_ / "all") + Words{"--beam", beam}).code, 0);
    const std::string together = slurp(own_ / "out");
    one.clear();
    for (const char* line : kGerman) {
      spill(own_ / "one", line);
      ASSERT_EQ(thimble_says(words(own_ / "one") + Words{"--beam", beam}).code, 0);
      one += slurp(own_ / "out");
    }
    EXPECT_EQ(together, one + one + one) << beam;
  }
}

TEST_F(Translate, ProfilesOfBatchesByTokens) {
  const Words one_technique = kSanitized ? Words{"--state-bits", "8"} : Words{};
  const Outcome profile = thimble_says(
      Words{"profile", "dynamicconv:width=32,inner=32,heads=2,encoder=1,decoder=1", "--data",
            "pairs", "--data-dir", *folder_ / "set", "--tokens", "60", "--threads", "1", "--json"} +
      one_technique);
  ASSERT_EQ(profile.code, 0) << profile.err;
  EXPECT_LE(profile.json()["measured_arena_bytes"], profile.json()["arena_bytes"]);
  EXPECT_GT(profile.json()["buckets"].size(), 1u);
}

TEST_F(Translate, TheMeanOfCheckpoints) {
  spill(own_ / "in", "zwei Katzen\nein Hund\n");
  const Outcome mean =
      thimble_says({"average", *folder_ / "run", "--last", "3", "--out", own_ / "mean"});
  ASSERT_EQ(mean.code, 0) << mean.err;
  ASSERT_EQ(thimble_says(words(own_ / "in") + Words{"--weights", own_ / "mean"}).code, 0);
  const std::string by_file = slurp(own_ / "out");
  ASSERT_EQ(thimble_says(words(own_ / "in") + Words{"--average", "3"}).code, 0);
  EXPECT_EQ(slurp(own_ / "out"), by_file);
  expect_mistake(thimble_says(words(own_ / "in") + Words{"--average", "4"}), "has 3 checkpoints",
                 "--keep-checkpoints 4");
  expect_mistake(thimble_says({"average", own_ / "in", "--out", own_ / "mean"}), "no checkpoint");
}

TEST_F(Translate, OfWhatIsTooLongTheBeginning) {
  spill(own_ / "in", "ein Hund\nein Hund ein Hund ein Hund ein Hund ein Hund\n");
  const Outcome outcome = thimble_says(words(own_ / "in") + Words{"--cut"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1 of 2 sentences, line 2 the first, were cut"), std::string::npos)
      << outcome.err;
  const std::string text = slurp(own_ / "out");
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_TRUE(text.starts_with("a dog\n")) << text;
}

TEST_F(Translate, WhereItGoesIsKnownBefore) {
  spill(own_ / "in", "ein Hund\neine Katze\n");
  const auto refused = [](const Outcome& outcome, const auto&... parts) {
    expect_mistake(outcome, parts...);
    EXPECT_EQ(outcome.err.find("sentences,"), std::string::npos) << "translated: " << outcome.err;
  };
  const Words ask = {"translate", *folder_ / "run", "--input", own_ / "in", "--output"};
  refused(thimble_says(ask + Words{own_ / "nowhere/out"}), "cannot create", "nowhere/out");
  refused(thimble_says(ask + Words{own_.path()}), "it is a folder");
  spill(own_ / "wanted", "a dog\n");
  refused(thimble_says(words(own_ / "in") + Words{"--reference", own_ / "wanted"}), "has 2 lines",
          "has 1", "wanted");
  refused(thimble_says(words(own_ / "in") + Words{"--reference", own_ / "none"}), "cannot open");
  EXPECT_EQ(own_.entries(), 2);
}

TEST_F(Translate, WhatCannotBe) {
  spill(own_ / "in", "ein Hund\nein Hund ein Hund ein Hund ein Hund ein Hund\n");
  expect_mistake(thimble_says(words(own_ / "in")), "in', line 2", "11 tokens", "--cut");
  EXPECT_FALSE(std::filesystem::exists(own_ / "out"));
  spill(own_ / "bad", "ein \xff\n");
  expect_mistake(thimble_says(words(own_ / "bad")), "bad", "line 1", "UTF-8");
  spill(own_ / "empty", "");
  expect_mistake(thimble_says(words(own_ / "empty")), "is empty");
  spill(own_ / "good", "ein Hund\n");
  expect_mistake(thimble_says({"translate", own_ / "good", "--input", own_ / "good"}),
                 "no checkpoint");
  expect_mistake(thimble_says({"translate", *folder_ / "run", "--input", own_ / "good",
                               "--reference", own_ / "good"}),
                 "--output");
  expect_mistake(thimble_says({"sample", *folder_ / "run"}), "`thimble translate`");
  expect_mistake(thimble_says(words(own_ / "good") + Words{"--length-penalty", "nan"}),
                 "Value nan not in range -100 to 100");
  expect_mistake(thimble_says(words(own_ / "good") + Words{"--average", "99"}), "checkpoints");
  // Vocabularies of another run.
  std::filesystem::copy(*folder_ / "set", own_ / "set");
  spill(own_ / "set/source.dict", slurp(own_ / "set/source.dict") + "Maus 1\n");
  expect_mistake(thimble_says(words(own_ / "good") + Words{"--data-dir", own_ / "set"}),
                 "not those that", "--data-dir");
  // And data of another vocabulary: as many pairs, cut otherwise.
  ASSERT_EQ(thimble_says({"data", "pairs", "--train", *folder_ / "a.de", *folder_ / "a.en",
                          "--valid-every", "7", "--merges", "3", "--out", own_ / "other"})
                .code,
            0);
  const Outcome resumed =
      thimble_says({"train",       "dynamicconv:width=32,inner=32,heads=2,encoder=1,decoder=1",
                    "--data",      "pairs",
                    "--data-dir",  own_ / "other",
                    "--tokens",    "60",
                    "--steps",     "130",
                    "--optimizer", "adam",
                    "--lr",        "5e-3",
                    "--schedule",  "constant",
                    "--threads",   "1",
                    "--out",       *folder_ / "run",
                    "--resume"});
  expect_mistake(resumed, "this run has");
  EXPECT_EQ(latest_step(*folder_ / "run"), 120);
}

}  // namespace
}  // namespace thimble
