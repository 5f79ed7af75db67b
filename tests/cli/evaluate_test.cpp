// thimble evaluate and thimble predict: trained models on records, by the arena that they were trained in.
#include <cmath>

#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// One short run for all tests of this file.
class Evaluate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    const Outcome outcome =
        thimble_says({"train", "mlp", "--data", "digits", "--batch", "50", "--hidden", "32",
                      "--steps", "40", "--out", *folder_ / "run", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    trained_ = outcome.json();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  Words of_run(const char* command) const { return {command, *folder_ / "run"}; }

  static std::unique_ptr<TemporaryFolder> folder_;
  static nlohmann::json trained_;
};
std::unique_ptr<TemporaryFolder> Evaluate::folder_;
nlohmann::json Evaluate::trained_;

// The same bits as the test at the end of training.
TEST_F(Evaluate, GivesTheFiguresThatTrainingEndedWith) {
  const Outcome outcome = thimble_says(of_run("evaluate") + Words{"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["test_loss"], trained_["test_loss"]);
  EXPECT_EQ(outcome.json()["test_accuracy"], trained_["test_accuracy"]);
  EXPECT_EQ(outcome.json()["test_records"], 355);
  EXPECT_EQ(outcome.json()["arena_bytes"], trained_["arena_bytes"]);
  const Outcome text = thimble_says(of_run("evaluate"));
  EXPECT_NE(text.out.find("on 355 records of digits"), std::string::npos) << text.out;
}

TEST_F(Evaluate, OtherWeightsGiveOtherFigures) {
  const std::string first = *folder_ / "first.safetensors";
  ASSERT_EQ(thimble_says({"train", "mlp", "--data", "digits", "--batch", "50", "--hidden", "32",
                          "--steps", "1", "--lr", "1e-9", "--out", *folder_ / "other",
                          "--export-initial", first})
                .code,
            0);
  const Outcome outcome = thimble_says(of_run("evaluate") + Words{"--weights", first, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(outcome.json()["test_accuracy"].get<double>(), trained_["test_accuracy"].get<double>());
}

// They add up to 1, the largest first, and are those of the record wherever it stands.
TEST_F(Evaluate, PredictionsAreProbabilities) {
  const Outcome outcome =
      thimble_says(of_run("predict") + Words{"--record", "0,354,7", "--top", "10", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json predictions = outcome.json()["predictions"];
  ASSERT_EQ(predictions.size(), 3u);
  for (const nlohmann::json& one : predictions) {
    double sum = 0, last = 1;
    ASSERT_EQ(one["classes"].size(), 10u);
    for (const nlohmann::json& choice : one["classes"]) {
      const double probability = choice["probability"].get<double>();
      EXPECT_LE(probability, last);
      sum += last = probability;
    }
    EXPECT_NEAR(sum, 1, 1e-12);  // ten doubles, each rounded once
  }
  EXPECT_EQ(predictions[1]["input"], "record 354");
  const Outcome alone =
      thimble_says(of_run("predict") + Words{"--record", "354", "--top", "10", "--json"});
  EXPECT_EQ(alone.json()["predictions"][0], predictions[1]);  // whatever stands beside it
}

TEST_F(Evaluate, NoGuessIsLessLikelyThanTheLabel) {
  std::string all = "0";
  for (int record = 1; record < 355; ++record) all += fmt::format(",{}", record);
  const Outcome outcome =
      thimble_says(of_run("predict") + Words{"--record", all, "--top", "10", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // No label is likelier than the best guess, so that the loss is no less than that of the guesses.
  double best = 0;
  for (const nlohmann::json& one : outcome.json()["predictions"]) {
    best -= std::log(one["classes"][0]["probability"].get<double>());
  }
  EXPECT_LE(best / 355, trained_["test_loss"].get<double>() + 1e-6);  // sums of floats
}

// Weights that do not move are tested alike: no test is better than the first.
TEST_F(Evaluate, PatienceEndsARunAndKeepsTheBest) {
  const std::string out = *folder_ / "patient";
  const Words words = {
      "train",      "mlp",      "--data", "digits",     "--batch", "50",           "--hidden",
      "32",         "--lr",     "1e-30",  "--steps",    "100",     "--out",        out,
      "--schedule", "constant", "--json", "--patience", "2",       "--eval-every", "5 steps"};
  const Outcome outcome = thimble_says(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["steps"], 15);
  EXPECT_EQ(outcome.json()["best"]["step"], 5);
  EXPECT_EQ(outcome.json()["best"]["test_loss"], outcome.json()["test_loss"]);
  const Outcome again = thimble_says(words + Words{"--resume"});  // as many tests again
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["steps"], 25);
  EXPECT_EQ(again.json()["best"]["step"], 5);
  const Outcome best =
      thimble_says({"evaluate", out, "--weights", out + "/best.safetensors", "--json"});
  ASSERT_EQ(best.code, 0) << best.err;
  EXPECT_EQ(best.json()["test_loss"], outcome.json()["best"]["test_loss"]);
  expect_mistake(thimble_says({"train", "mlp", "--patience", "2", "--no-eval"}), "--patience");
}

// At a rate of nought the first test is the best, and its adapters are those of the last step, too.
TEST_F(Evaluate, TheBestOfAdaptersIsAdaptersAlone) {
  const std::string out = *folder_ / "adapted";
  const Words words = {"train",
                       "gpt",
                       "--layers",
                       "1",
                       "--heads",
                       "2",
                       "--width",
                       "16",
                       "--length",
                       "8",
                       "--vocabulary",
                       "11",
                       "--data",
                       "noise",
                       "--batch",
                       "2",
                       "--lora",
                       "rank=2",
                       "--steps",
                       "4",
                       "--json",
                       "--schedule",
                       "constant",
                       "--lr",
                       "0",
                       "--out",
                       out,
                       "--eval-every",
                       "2 steps",
                       "--patience",
                       "0"};
  const Outcome outcome = thimble_says(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string best = out + "/best-adapter";
  EXPECT_EQ(outcome.json()["best"]["weights"], best);
  EXPECT_FALSE(std::filesystem::exists(out + "/best.safetensors"));
  ASSERT_EQ(thimble_says({"export", out, out + "/last", "--adapters"}).code, 0);
  const std::string tensors = "/adapter_model.safetensors";
  EXPECT_EQ(slurp(best + tensors), slurp(out + "/last" + tensors));
}

TEST_F(Evaluate, MistakesAreNamed) {
  const auto refused = [&](const Words& words, const char* sentence) {
    expect_mistake(thimble_says(words), sentence);
  };
  refused(of_run("predict"), "say one kind of input");
  refused(of_run("predict") + Words{"--record", "355"}, "355 test records, from 0 on");
  refused(of_run("predict") + Words{"--record", "-1"}, "--record");
  refused(of_run("predict") + Words{"no.png"}, "no.png");
  refused(of_run("predict") + Words{"--text", "to be"}, "mlp");
  refused(of_run("evaluate") + Words{"--data", "digit"}, "the nearest is 'digits'");
  refused({"evaluate", *folder_ / "rum"}, "run'");
  refused({"predict", *folder_ / "rum", "--record", "1"}, "run'");
}

}  // namespace
}  // namespace thimble
