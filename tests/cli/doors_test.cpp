// Flags written otherwise, and files edited by hand: a sentence, exit 2, and never another run than the
// one that was asked for.
#include "base/error.h"
#include "support/run_thimble.h"

namespace thimble {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

TEST(Doors, ATogglesValueIsRead) {
  // On the null device: with many threads, their scratch is where the peak lies, folded or not.
  const Words plan = {"plan", "mlp",      "--batch", "8",     "--optimizer",
                      "sgd",  "--device", "null",    "--json"};
  const auto arena = [&](const Words& more) {
    return thimble_says(plan + more).json()["arena_bytes"];
  };
  EXPECT_EQ(arena({"--fold=off"}), arena({}));
  EXPECT_EQ(arena({"--fold=false"}), arena({}));
  EXPECT_EQ(arena({"--fold=on"}), arena({"--fold"}));
  EXPECT_NE(arena({"--fold"}), arena({}));
  for (const char* value : {"xyzzy", "0", "no"}) {
    expect_mistake(thimble_says(plan + Words{std::string("--fold=") + value}),
                   "--fold is on or off (true or false), not ", value);
  }
}

TEST(Doors, AnEmptyValueTakesNoOtherWord) {
  expect_mistake(thimble_says({"plan", "mlp", "--memory=", "--json"}),
                 "--memory: '' is not a size");
  expect_mistake(thimble_says({"plan", "mlp", "--data=", "--json"}), "--data wants a name, not ''");
  expect_mistake(thimble_says({"plan", "mlp", "--batch=", "--device", "null"}), "--batch wants",
                 "not ''");
}

TEST(Doors, ListsAreRepeatedOrJoinedByCommas) {
  const TemporaryFolder folder;
  const auto lengths = [&](const Words& more) {
    const Words words = {"plan", "lstm",     "--tokens", "64",     "--hidden",
                         "4",    "--device", "null",     "--save", folder / "plan"};
    EXPECT_EQ(thimble_says(words + more).code, 0);
    return json::parse(slurp(folder / "plan"))["recipe"]["lengths"];
  };
  const json both = {4, 8};
  EXPECT_EQ(lengths({"--lengths", "4,8"}), both);
  EXPECT_EQ(lengths({"--lengths", "4", "8"}), both);
  EXPECT_EQ(lengths({"--lengths", "4", "--lengths", "8"}), both);
  for (const Words& keep : {Words{"--keep", "x", "--keep", "*"}, {"--keep", "x,*"}}) {
    expect_mistake(thimble_says(Words{"plan", "mlp"} + keep), "--keep 'x' matches no node");
  }
  expect_mistake(thimble_says({"plan", "mlp", "--keep", "a,,b"}),
                 "--keep wants names or patterns, not ''");
}

TEST(Doors, AnImageOfAnotherFormIsRefusedAsInAFile) {
  const char* const kSentence = "--image wants three whole numbers H,W,C, not ";
  for (const char* image : {"8", "8,8", "8,8,1,1"}) {
    expect_mistake(thimble_says({"plan", "mlp", "--image", image}), kSentence);
  }
  const Words twice = {"plan", "mlp", "--image", "8,8,1", "--image", "4,4,1"};
  expect_mistake(thimble_says(twice), kSentence);
  EXPECT_EQ(thimble_says({"plan", "--image", "8,8,1", "mlp"}).code, 0);
  EXPECT_EQ(thimble_says({"plan", "--image", "8", "8", "1", "mlp"}).code, 0);
}

// A report draws what a plan says; one that says what cannot be is not drawn.
TEST(Doors, AReportOfAnEditedPlanIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan", page = folder / "page.html";
  ASSERT_EQ(thimble_says({"plan", "mlp", "--batch", "8", "--device", "null", "--save", path}).code,
            0);
  const json good = json::parse(slurp(path));
  const auto refused = [&](const char* pointer, const json& value) {
    SCOPED_TRACE(pointer + value.dump());
    json other = good;
    other[json::json_pointer(pointer)] = value;
    spill(path, other.dump());
    const std::string sentence = thimble_says({"verify", path}).err;
    EXPECT_EQ(thimble_says({"report", path, "-o", page, "--frontier", "off"}).err, sentence);
    expect_mistake(thimble_says({"report", path, "-o", page, "--frontier", "off"}), path);
    EXPECT_FALSE(std::filesystem::exists(page));
  };
  refused("/plan/calls/3/node", 1);
  refused("/plan/calls/3/out", {-1});
  refused("/plan/calls/3/scratch", {0, int64_t{1} << 62});
  refused("/plan/arena_bytes", 64);
  refused("/rows", -1);
  refused("/recipe/memory", 64);
  spill(path, good.dump());
  EXPECT_EQ(thimble_says({"report", path, "-o", page, "--frontier", "off"}).code, 0);
}

class EditedCheckpoint : public testing::Test {
 protected:
  EditedCheckpoint() {
    EXPECT_EQ(thimble_says(words_ + Words{"--steps", "2"}).code, 0);
    good_ = slurp(state_);
  }

  template <class... Parts>
  void expect_refused(const char* pointer, const json& value, const Parts&... parts) {
    SCOPED_TRACE(pointer);
    json other = json::parse(good_);
    other[json::json_pointer(pointer)] = value;
    expect_text_refused(other.dump(), parts...);
  }

  template <class... Parts>
  void expect_text_refused(const std::string& text, const Parts&... parts) {
    spill(state_, text);
    expect_mistake(thimble_says(words_ + Words{"--steps", "4", "--resume"}), parts...);
    spill(state_, good_);
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_ / "run", state_ = out_ + "/latest/state.json";
  const Words words_ = {"train", "mlp", "--hidden",  "8",           "--batch", "8",
                        "--out", out_,  "--no-eval", "--precision", "fp16"};
  std::string good_;
};

TEST_F(EditedCheckpoint, IsRefused) {
  expect_refused("/dat", 1, "has a key 'dat' that is none", "'data'");
  expect_refused("/data/sets", "digits", "a key 'sets' that is none; the nearest is 'set'");
  expect_refused("/recipe/bach", 1, "there is no --bach; the nearest is --batch");
  expect_refused("/recipe/width", 1, "mlp has no --width");
  expect_refused("/recipe/threads", "x", "--threads wants a whole number", "not 'x'");
  expect_refused("/recipe/planner", "none such", "there is no planner 'none such'");
  expect_refused("/recipe/keep", 7, "--keep wants text, not 7");
  expect_refused("/recipe/batch", -1, "--batch wants a whole number from 1 on", "not -1");
  expect_refused("/recipe/batch", 9, "was made with batch = 9, this run has 8");
  expect_refused("/step", 1, "says step 1, and its folder is 'step-00000002'");
  expect_refused("/step", -1, "damaged");
  expect_refused("/step", UINT64_MAX, "damaged");
  expect_refused("/progress/count", -1, "its progress is not what was saved");
  for (const char* count : {"/progress/loss_scale/clean", "/progress/loss_scale/skipped"}) {
    for (const json& value : {json(-1), json(1.5), json(1e300), json(UINT64_MAX)}) {
      expect_refused(count, value, "damaged");
    }
  }
  std::string twice = good_;
  twice.insert(twice.find("\"step\""), "\"step\": 1, ");
  expect_text_refused(twice, "it says 'step' twice");
  EXPECT_EQ(thimble_says(words_ + Words{"--steps", "4", "--resume"}).code, 0);
}

// A folder of such a name is none of ours.
TEST_F(EditedCheckpoint, IsNotWhatHasAHugeNumber) {
  std::filesystem::create_directory(out_ + "/step-99999999999999999999999");
  EXPECT_EQ(thimble_says(words_ + Words{"--steps", "4", "--resume"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(out_ + "/step-99999999999999999999999"));
}

}  // namespace
}  // namespace thimble
