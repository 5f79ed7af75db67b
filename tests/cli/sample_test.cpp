// thimble sample and thimble export, on a run of a few steps.
#include <algorithm>

#include "support/run_thimble.h"
#include "train/safetensors.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// One run for all tests, on characters beyond ASCII.
class Sample : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    std::string text;
    for (int i = 0; i < 60; ++i) text += "über Stock und Stein\n";
    spill(*folder_ / "text", text);
    ASSERT_EQ(thimble_says({"data", "tokens", "--by", "characters", "--out", *folder_ / "set",
                            *folder_ / "text"})
                  .code,
              0);
    const Outcome trained = train("run", {"--precision", "fp32"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome train(const std::string& out, const Words& flags) {
    return thimble_says(Words{"train", "gpt:layers=1,heads=2,width=16,length=21", "--data",
                              "tokens", "--data-dir", path("set"), "--batch", "4", "--steps", "4",
                              "--optimizer", "adamw", "--threads", "1", "--no-eval", "--out",
                              path(out), "--json"} +
                        flags);
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static Words ask(const Words& flags) {
    return Words{"sample", path("run"), "--length", "30", "--json"} + flags;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Sample::folder_ = nullptr;

TEST_F(Sample, MakesAsMuchTextAsAskedForFromTheSeed) {
  const Outcome said = thimble_says(ask({"--prompt", "über"}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.json()["tokens"].size(), 30u);
  EXPECT_EQ(thimble_says(ask({"--prompt", "über"})).out, said.out);
  EXPECT_NE(thimble_says(ask({"--prompt", "über", "--seed", "2"})).json()["tokens"],
            said.json()["tokens"]);
  const Outcome numbers =
      thimble_says(ask({"--numbers", "--prompt", "3 1,2", "--temperature", "0"}));
  ASSERT_EQ(numbers.code, 0) << numbers.err;
  EXPECT_EQ(numbers.json()["tokens"].size(), 30u);
}

TEST_F(Sample, SaysInASentenceWhatItCannotGoOnWith) {
  const auto refuses = [](const Words& words, const std::string& why) {
    const Outcome outcome = thimble_says(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  };
  refuses(ask({"--prompt", "xyz"}), "'x' in the prompt is not in the vocabulary");
  refuses(ask({"--prompt", ""}), "there is nothing to go on with");
  refuses(ask({"--numbers", "--prompt", "1 99"}), "token 99 of the prompt is beyond");
  refuses(ask({"--numbers", "--prompt", "one"}), "is whole numbers");
  refuses(ask({"--data-dir", path("nowhere")}), "does not say what its tokens are");
  refuses({"sample", path("nowhere")}, "there is no checkpoint");
  // As many characters, one of them another.
  std::filesystem::copy(path("set"), path("other"));
  std::string characters = slurp(path("set") + "/vocabulary.txt");
  spill(path("other") + "/vocabulary.txt", characters.replace(characters.find('b'), 1, "a"));
  refuses(ask({"--prompt", "a", "--data-dir", path("other")}), "not those that");
  refuses({"export", path("run"), path("file"), "--names", "onnx"}, "choose --names thimble or");
}

TEST_F(Sample, ExportsByBothNamesAndStartsFromEither) {
  for (const char* names : {"thimble", "transformers"}) {
    const std::string file = path(names);
    const Outcome written = thimble_says({"export", path("run"), file, "--names", names});
    ASSERT_EQ(written.code, 0) << written.err;
    // Without a step, weights are what was read.
    const Outcome again = train(std::string("from-") + names,
                                {"--weights", file, "--lr", "0", "--weight-decay", "0"});
    ASSERT_EQ(again.code, 0) << again.err;
    const std::string back = path(std::string("back-") + names);
    ASSERT_EQ(
        thimble_says({"export", path(std::string("from-") + names), back, "--names", names}).code,
        0);
    EXPECT_EQ(slurp(back), slurp(file));
  }
  const SafetensorsFile theirs(path("transformers"));
  EXPECT_NE(theirs.find("transformer.h.0.mlp.c_fc.weight"), nullptr);
}

}  // namespace
}  // namespace thimble
