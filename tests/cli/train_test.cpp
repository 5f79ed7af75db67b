// thimble train, through the program itself.
#include "support/run_thimble.h"
#include "support/sanitized.h"
#include "support/wav_file.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

class TrainCommand : public testing::Test {
 protected:
  nlohmann::json train(const Words& words) {
    const Outcome outcome = thimble_says(Words{"train", "--json", "--threads", "2"} + words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.json() : nlohmann::json::object();
  }
  std::string out(const std::string& name) const { return folder_ / name; }

  TemporaryFolder folder_;
};

TEST_F(TrainCommand, SaysEverythingTheDesignPromises) {
  for (const Words& model : {Words{"mlp"}, Words{"wrn-10-1", "--batch", "16", "--augment"},
                             Words{"lstm", "--length", "5", "--hidden", "16"}}) {
    SCOPED_TRACE(model[0]);
    const nlohmann::json json = train(model + Words{"--steps", "4", "--out", out(model[0])});
    for (const char* key : {"model",
                            "device",
                            "batch",
                            "microbatch",
                            "planner",
                            "tier",
                            "arena_bytes",
                            "peak_live_bytes",
                            "bytes",
                            "nodes",
                            "recomputed_calls",
                            "flops",
                            "extra_flops_ratio",
                            "predicted_step_ms",
                            "plan_seconds",
                            "steps",
                            "epochs",
                            "train_loss",
                            "test_accuracy",
                            "measured_arena_bytes",
                            "step_ms",
                            "weights_sha256",
                            "rss_peak_bytes"}) {
      EXPECT_TRUE(json.contains(key)) << key;
    }
    EXPECT_EQ(json["measured_arena_bytes"], json["arena_bytes"]);
    EXPECT_FALSE(json.contains("device_overhead_bytes"));  // of devices with memory of their own
    EXPECT_EQ(json["steps"], 4);
    EXPECT_GT(json["train_loss"], 0);
    EXPECT_GT(json["step_ms"], 0);
    EXPECT_GE(json["test_accuracy"], 0);
    EXPECT_LE(json["test_accuracy"], 1);
    EXPECT_EQ(json["weights_sha256"].get<std::string>().size(), 64u);
    EXPECT_GT(json["rss_peak_bytes"], 0);
    EXPECT_TRUE(std::filesystem::exists(json["checkpoint"].get<std::string>() + "/state.json"));
  }
}

TEST_F(TrainCommand, StdoutIsOneObjectAndLogsGoElsewhere) {
  const Outcome outcome =
      thimble_says({"train", "mlp", "--steps", "3", "--json", "--out", out("a")});
  EXPECT_NO_THROW(outcome.json());
  const Outcome plain = thimble_says({"train", "mlp", "--steps", "3", "--out", out("b")});
  EXPECT_EQ(plain.code, 0);
  EXPECT_NE(plain.out.find("as planned"), std::string::npos);
  EXPECT_EQ(plain.out.find("NOT as planned"), std::string::npos);
  EXPECT_NE(plain.out.find("checkpoint " + out("b")), std::string::npos);
  EXPECT_NE(plain.err.find("arena"), std::string::npos);
}

TEST_F(TrainCommand, SeedsDecideEveryBit) {
  for (const Words& model :
       {Words{"mlp", "--dropout", "0.3"}, Words{"wrn-10-1", "--batch", "16", "--augment"},
        Words{"lstm", "--length", "5", "--hidden", "16"}}) {
    const Words words = model + Words{"--steps", "3", "--no-eval", "--losses"};
    const nlohmann::json a = train(words + Words{"--out", out(model[0] + "a")});
    const nlohmann::json b = train(words + Words{"--out", out(model[0] + "b")});
    const nlohmann::json c = train(words + Words{"--out", out(model[0] + "c"), "--seed", "2"});
    EXPECT_EQ(a["weights_sha256"], b["weights_sha256"]) << model[0];
    EXPECT_EQ(a["losses"], b["losses"]) << model[0];
    EXPECT_EQ(a["losses"].size(), 3u);
    EXPECT_NE(a["weights_sha256"], c["weights_sha256"]) << model[0];
  }
}

TEST_F(TrainCommand, LearnsTheDigits) {
  const nlohmann::json json =
      train({"mlp", "--epochs", "8", "--lr", "0.05", "--batch", "32", "--out", out("run")});
  EXPECT_GT(json["test_accuracy"], 0.93);
  EXPECT_NEAR(json["epochs"].get<double>(), 8, 0.01);
}

TEST_F(TrainCommand, StaysInsideItsBudget) {
  const Words small = kSanitized ? Words{"--batch", "4", "--planner", "optimal"} : Words{};
  const Words net = Words{"wrn-10-1", "--steps", "2", "--no-eval"} + small;
  const nlohmann::json free = train(net + Words{"--out", out("free")});
  const std::string arena = std::to_string(free["arena_bytes"].get<int64_t>());
  const nlohmann::json exact = train(net + Words{"--memory", arena, "--out", out("exact")});
  EXPECT_EQ(exact["weights_sha256"], free["weights_sha256"]);
  const Outcome refused = thimble_says(Words{"train", "wrn-10-1", "--threads", "2", "--json",
                                             "--memory", "64", "--out", out("less")} +
                                       small);
  EXPECT_EQ(refused.code, 3);
  EXPECT_FALSE(std::filesystem::exists(out("less")));
  const int64_t least = refused.json()["min_bytes"];
  EXPECT_LT(least, free["arena_bytes"].get<int64_t>());
  const nlohmann::json tight =
      train(net + Words{"--memory", std::to_string(least), "--out", out("tight")});
  EXPECT_EQ(tight["measured_arena_bytes"], least);
  EXPECT_EQ(tight["weights_sha256"], free["weights_sha256"]);
}

// An automatic codec is chosen once: a run that continues with another budget keeps what it began with.
TEST_F(TrainCommand, ResumesWithTheCodecsItBeganWith) {
  const Words words = {"wrn-10-1", "--batch",   "16",       "--schedule",
                       "constant", "--planner", "keep_all", "--no-eval"};
  const nlohmann::json coded =
      train(words + Words{"--steps", "1", "--codec", "int8", "--out", out("coded")});
  const Words automatic = words + Words{"--codec", "auto:int8"};
  const Words tight = {"--memory", std::to_string(coded["arena_bytes"].get<int64_t>())};
  const nlohmann::json whole =
      train(automatic + tight + Words{"--steps", "4", "--out", out("whole")});
  EXPECT_EQ(whole["tier"], "approximate");
  EXPECT_FALSE(whole["encoded"].empty());
  train(automatic + tight + Words{"--steps", "2", "--out", out("part")});
  const nlohmann::json rest =
      train(automatic + Words{"--steps", "4", "--out", out("part"), "--resume"});
  EXPECT_EQ(rest["resumed_at"], 2);
  EXPECT_EQ(rest["encoded"], whole["encoded"]);
  EXPECT_EQ(rest["tier"], "approximate");
  EXPECT_EQ(rest["weights_sha256"], whole["weights_sha256"]);
}

// Without --out a run has a folder of its own: there is nothing to go on with, and a checkpoint that
// happens to be in the working directory is another run's.
TEST_F(TrainCommand, ResumesNothingWithoutAFolder) {
  for (const Words& codec : {Words{}, Words{"--codec", "auto"}}) {
    const Words words = Words{"mlp", "--no-eval"} + codec;
    const std::string here = out(codec.empty() ? "plain" : "coded");
    train(words + Words{"--steps", "1", "--out", here});
    expect_mistake(
        thimble_says(Words{"train"} + words + Words{"--steps", "2", "--resume"}, {.folder = here}),
        "--resume", "--out");
  }
}

// The frozen weights of a run are those of the file that its checkpoint names, or it does not go on.
TEST_F(TrainCommand, GoesOnWithTheBaseThatItBeganWith) {
  const Words gpt = {"gpt", "--layers",     "1",     "--heads",    "2",       "--width",
                     "16",  "--vocabulary", "11",    "--length",   "8",       "--batch",
                     "2",   "--data",       "noise", "--schedule", "constant"};
  const std::string base = out("base.safetensors");
  train(gpt + Words{"--steps", "1", "--out", out("first"), "--seed", "5"});
  ASSERT_EQ(thimble_says({"export", out("first"), base}).code, 0);
  const Words adapted = gpt + Words{"--lora", "rank=2", "--weights", base, "--save-every", "2"};
  const nlohmann::json whole = train(adapted + Words{"--steps", "4", "--out", out("whole")});
  train(adapted + Words{"--steps", "2", "--out", out("part")});
  const Words rest = adapted + Words{"--steps", "4", "--out", out("part"), "--resume"};
  const std::string before = slurp(base);
  std::string other = before;
  other.back() = static_cast<char>(other.back() ^ 1);
  spill(base, other);
  expect_mistake(thimble_says(Words{"train"} + rest), base, "changed since");
  std::filesystem::remove(base);
  expect_mistake(thimble_says(Words{"train"} + rest), base);
  spill(base, before);
  EXPECT_EQ(train(rest)["weights_sha256"], whole["weights_sha256"]);

  // And what was trained is merged into it, under its names.
  ASSERT_EQ(thimble_says({"export", out("part"), out("merged") + "/", "--merged"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(out("merged") + "/base.safetensors"));
  expect_mistake(thimble_says({"export", out("part"), out("merged"), "--merged"}), "there already");
}

TEST_F(TrainCommand, ResumesToTheSameBits) {
  const Words words = {"wrn-10-1",  "--batch", "32",         "--augment",
                       "--dropout", "0.2",     "--schedule", "constant"};
  const nlohmann::json whole = train(words + Words{"--steps", "8", "--out", out("whole")});
  train(words + Words{"--steps", "3", "--out", out("part")});
  const nlohmann::json rest =
      train(words + Words{"--steps", "8", "--out", out("part"), "--resume"});
  EXPECT_EQ(rest["resumed_at"], 3);
  EXPECT_EQ(rest["weights_sha256"], whole["weights_sha256"]);
  EXPECT_EQ(rest["test_loss"], whole["test_loss"]);
  EXPECT_EQ(rest["train_loss"], whole["train_loss"]);
  EXPECT_EQ(slurp(out("part") + "/latest/optimizer.safetensors"),
            slurp(out("whole") + "/latest/optimizer.safetensors"));
  // Resuming what is complete changes nothing, and still says what there is.
  const nlohmann::json done =
      train(words + Words{"--steps", "8", "--out", out("part"), "--resume"});
  EXPECT_EQ(done["resumed_at"], 8);
  EXPECT_EQ(done["weights_sha256"], whole["weights_sha256"]);
  EXPECT_EQ(done["test_loss"], whole["test_loss"]);
  EXPECT_EQ(done["train_loss"], whole["train_loss"]);
}

TEST_F(TrainCommand, KilledAtRandomMomentsAndResumedGivesTheSameBits) {
  const Words words = {"train",     "mlp", "--steps",      "48",   "--batch",      "32",
                       "--dropout", "0.2", "--save-every", "0.08", "--eval-every", "0",
                       "--threads", "2"};
  const Outcome whole = thimble_says(words + Words{"--out", out("whole"), "--json"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  int all_kills = 0;  // a fast machine may end some runs before they are cut off
  for (const uint32_t seed : {1u, 2u, 3u}) {
    int kills = 0;
    const nlohmann::json resumed =
        killed_and_resumed(words, out(fmt::format("killed{}", seed)), 48, seed, 3, kills);
    all_kills += kills;
    EXPECT_EQ(resumed["weights_sha256"], whole.json()["weights_sha256"]);
    EXPECT_EQ(resumed["test_loss"], whole.json()["test_loss"]);
  }
  EXPECT_GE(all_kills, 1);
}

TEST_F(TrainCommand, ExportedWeightsAreAStartForAnotherRun) {
  const Words words = {"mlp", "--steps", "2", "--no-eval"};
  const nlohmann::json first =
      train(words + Words{"--out", out("a"), "--export-initial", out("initial")});
  const nlohmann::json same = train(words + Words{"--out", out("b"), "--weights", out("initial")});
  EXPECT_EQ(same["weights_sha256"], first["weights_sha256"]);
  const nlohmann::json further = train(
      words + Words{"--out", out("c"), "--weights", out("a") + "/latest/weights.safetensors"});
  EXPECT_NE(further["weights_sha256"], first["weights_sha256"]);
}

TEST_F(TrainCommand, RecipesAreFlagsAndTypedFlagsWin) {
  const std::string recipe = out("r.toml");
  spill(recipe,
        "model = \"mlp\"\nbatch = 16\nsteps = 2\nhidden = 20\nlr = 0.03\nno_eval = true\n"
        "weight_decay = 5e-4\nschedule = \"step\"\nmilestones = [1, 2]\nimage = [8, 8, 1]\n");
  const nlohmann::json by_recipe = train({recipe, "--out", out("a")});
  const nlohmann::json by_flags = train(
      {"mlp",          "--batch", "16",        "--steps",        "2",     "--hidden",   "20",
       "--lr",         "0.03",    "--no-eval", "--weight-decay", "5e-4",  "--schedule", "step",
       "--milestones", "1,2",     "--image",   "8,8,1",          "--out", out("b")});
  EXPECT_EQ(by_recipe["weights_sha256"], by_flags["weights_sha256"]);
  EXPECT_EQ(by_recipe["batch"], 16);
  const nlohmann::json typed =
      train({recipe, "--out", out("c"), "--batch", "8", "--steps", "3", "--milestones", "7"});
  EXPECT_EQ(typed["batch"], 8);
  EXPECT_EQ(typed["steps"], 3);
  // Before the recipe or behind it, with or without the equals sign; lists are replaced, not added
  // to.
  const Outcome plan = thimble_says({"plan", "--json", "--batch=5", out("p.toml")});
  EXPECT_EQ(plan.code, 2);  // not there yet
  spill(out("p.toml"), "model = \"mlp\"\nbatch = 16\nimage = [8, 8, 1]\n");
  EXPECT_EQ(thimble_says({"plan", "--json", "--batch=5", out("p.toml")}).json()["batch"], 5);
  const nlohmann::json wide =
      thimble_says({"plan", "--json", out("p.toml"), "--image", "16,16,3"}).json();
  const nlohmann::json narrow = thimble_says({"plan", "--json", out("p.toml")}).json();
  EXPECT_GT(wide["parameters"], narrow["parameters"]);
}

// Data that stand in for those of recipes, which may not be there: of the same kind where their
// lengths or vocabularies decide what is planned.
class RecipeData {
 public:
  explicit RecipeData(const std::filesystem::path& folder) : folder_(folder) {
    std::ofstream text(folder / "text"), pairs(folder / "pairs");
    for (int i = 0; i < 600; ++i) {
      text << "line " << i << " of a text that goes on and on, and then a little further\n";
      pairs << "satz nummer " << i << " ist da\tsentence number " << i << " is there\n";
    }
  }

  // The words that put them in place of the recipe's.
  Words instead_of(const std::filesystem::path& recipe) {
    const std::string text = slurp(recipe.string());
    if (text.find("\ndata = \"pairs\"") != std::string::npos) {
      return made("pairs", {"--train", folder_ / "pairs", "--from", "de", "--to", "en"});
    }
    if (text.find("\ndata = \"tokens\"") != std::string::npos) {
      return made("tokens", {folder_ / "text"});
    }
    if (text.find("\ndata = \"spoken_digits\"") != std::string::npos) {
      for (const char* name : {"3_ann_0.wav", "3_ann_7.wav"}) spill(folder_ / name, wav({1, 2, 3}));
      return {"--data-dir", folder_.string()};
    }
    if (text.find("\ndata = \"cifar10\"") != std::string::npos) return {"--data", "generated"};
    return {};  // no files are needed
  }

 private:
  Words made(const std::string& kind, const Words& from) {
    const std::string out = folder_ / ("data-" + kind);
    if (!std::filesystem::exists(out)) {
      const Outcome outcome = thimble_says(Words{"data", kind} + from + Words{"--out", out});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
    return {"--data-dir", out};
  }

  const std::filesystem::path folder_;
};

TEST_F(TrainCommand, TheRecipesInTheRepositoryPlan) {
  RecipeData data(folder_.path());
  for (const auto& entry : std::filesystem::directory_iterator(THIMBLE_RECIPES)) {
    if (entry.path().extension() != ".toml") continue;
    // Folders of weights are elsewhere: tests/python/test_finetune_folder.py trains those.
    if (slurp(entry.path().string()).find("\nmodel = \"hf:") != std::string::npos) continue;
    const Outcome outcome = thimble_says(Words{"plan", entry.path().string(), "--device", "null"} +
                                         data.instead_of(entry.path()) + Words{"--json"});
    ASSERT_EQ(outcome.code, 0) << entry.path() << outcome.err;
    EXPECT_EQ(outcome.err, "") << entry.path();
    EXPECT_GT(outcome.json()["arena_bytes"], 0) << entry.path();
  }
  const nlohmann::json digits = train({std::string(THIMBLE_RECIPES) + "/digits.toml", "--steps",
                                       "2", "--no-eval", "--out", out("digits")});
  EXPECT_EQ(digits["model"], "wrn-16-2");
  EXPECT_EQ(digits["measured_arena_bytes"], digits["arena_bytes"]);
}

TEST_F(TrainCommand, TheProcessStaysCloseToItsArena) {
  const Outcome outcome =
      thimble_says({"profile", kSanitized ? "mlp" : "wrn-16-2", "--batch", "50", "--image",
                    "32,32,3", "--data", "generated", "--steps", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json = outcome.json();
  if (!kSanitized) {  // which have memory of their own
    EXPECT_LE(json["rss_growth_bytes"].get<int64_t>(),
              json["arena_bytes"].get<int64_t>() + (16 << 20));
  }
  EXPECT_EQ(json["measured_arena_bytes"], json["arena_bytes"]);
}

}  // namespace
}  // namespace thimble
