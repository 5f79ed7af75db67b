// Planners, their numbers and the caller's marks, through the program itself.
#include <functional>
#include <set>

#include "support/run_thimble.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

const Words kSmallWrn = {"wrn-10-1", "--image", "8,8,1", "--batch", "4", "--threads", "2"};

std::vector<std::string> planners() {
  std::vector<std::string> names;
  const nlohmann::json list = thimble_says({"list", "planners", "--json"}).json();
  for (const auto& entry : list["planners"]) names.push_back(entry["name"]);
  EXPECT_GE(names.size(), 10u);
  return names;
}

nlohmann::json plan_json(const Words& words) {
  const Outcome outcome = thimble_says(Words{"plan", "--json"} + words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? outcome.json() : nlohmann::json::object();
}

TEST(Planners, AllTrainTheSameWeights) {
  const TemporaryFolder folder;
  std::set<std::string> weights;
  std::vector<std::string> names = planners();
  names.emplace_back("log_recursive:3");
  for (const std::string& name : names) {
    const Outcome outcome =
        thimble_says(Words{"train", "unet", "--layers", kSanitized ? "1" : "2", "--hidden", "4",
                           "--batch", "8", "--steps", "2", "--no-eval", "--threads", "2", "--json",
                           "--planner", name, "--out", folder / name});
    ASSERT_EQ(outcome.code, 0) << name << outcome.err;
    EXPECT_EQ(outcome.json()["planner"], name);
    EXPECT_EQ(outcome.json()["measured_arena_bytes"], outcome.json()["arena_bytes"]) << name;
    weights.insert(outcome.json()["weights_sha256"]);
  }
  EXPECT_EQ(weights.size(), 1u);
}

TEST(Planners, AreAllInTheSweep) {
  const Outcome outcome = thimble_says(Words{"plan", "--sweep", "--json"} + kSmallWrn);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> swept;
  const nlohmann::json json = outcome.json();
  for (const auto& point : json["points"]) swept.insert(point["planner"]);
  for (const std::string& name : planners()) EXPECT_EQ(swept.count(name), 1u) << name;
}

TEST(Planners, SweepWhatIsAllowed) {
  const Words sweep = Words{"plan", "--sweep", "--json", "--allow", "exact"} + kSmallWrn;
  EXPECT_EQ(thimble_says(sweep).code, 0);
  expect_mistake(thimble_says(sweep + Words{"--precision", "bf16"}), "--allow", "--precision fp32");
  expect_mistake(thimble_says(sweep + Words{"--codec", "int4"}), "--allow", "--codec mask");
}

TEST(Planners, NumbersThatDoNotExistAreRefused) {
  for (const char* name : {"log_recursive:0", "log_recursive:", "log_recursive:two"}) {
    expect_mistake(thimble_says({"plan", "mlp", "--planner", name}), name, "fan-out");
  }
  expect_mistake(thimble_says({"plan", "mlp", "--planner", "drop_cheap:2"}), "takes no number");
  EXPECT_EQ(plan_json({"mlp", "--planner", "log_recursive:3"})["planner"], "log_recursive:3");
}

// Fewer weights take less, but for the search's luck: in what is near the least for more of them, they
// fit.
TEST(Planners, WhatMoreWeightsNeedIsEnoughForFewer) {
  if (kSanitized) GTEST_SKIP() << "plans of a large net";
  constexpr double kLuck = 1.02;
  double before = 0;
  for (const char* density : {"0.15", "0.17", "0.19", "0.2", "0.22", "0.23", "0.25"}) {
    const Words words = {"wrn-28-2",     "--batch",  "100",         "--microbatch", "10",
                         "--precision",  "fp16",     "--optimizer", "sgd",          "--fold",
                         "--loss-scale", "1024",     "--density",   density,        "--memory",
                         "least",        "--device", "null",        "--fit",        "off"};
    const double least = plan_json(words)["arena_bytes"];
    EXPECT_LE(before, least * kLuck) << density;
    before = std::max(before, least);
  }
}

TEST(Marks, AreFlagsAndRecipeKeys) {
  const TemporaryFolder folder;
  EXPECT_EQ(plan_json(kSmallWrn)["recomputed_calls"], 0);
  const nlohmann::json typed = plan_json(kSmallWrn + Words{"--recompute", "*bn2.batch_norm#*"});
  EXPECT_GT(typed["recomputed_calls"], 0);

  const std::string recipe = folder / "marked.toml";
  spill(recipe,
        "model = \"wrn-10-1\"\nimage = [8, 8, 1]\nbatch = 4\nthreads = 2\n"
        "recompute = [\"*bn2.batch_norm#*\"]\nkeep = [\"*conv1*\", \"*conv2*\"]\n");
  EXPECT_EQ(plan_json({recipe})["recomputed_calls"], typed["recomputed_calls"]);
  EXPECT_EQ(plan_json({recipe})["arena_bytes"], typed["arena_bytes"]);
}

TEST(Marks, KeepingCostsMemory) {
  const auto arena = [](const Words& words) {
    return plan_json(kSmallWrn + Words{"--planner", "drop_cheap"} + words)["arena_bytes"];
  };
  EXPECT_GT(arena({"--keep", "*batch_norm#*"}), arena({}));
}

TEST(Marks, ThatMatchNothingOrContradictAreRefused) {
  expect_mistake(thimble_says(Words{"plan", "--keep", "*attention*"} + kSmallWrn),
                 "--keep '*attention*' matches no node");
  expect_mistake(thimble_says(Words{"plan", "--recompute", "nothing"} + kSmallWrn),
                 "--recompute 'nothing' matches no node");
  expect_mistake(
      thimble_says(Words{"plan", "--keep", "*conv1*", "--recompute", "*conv*"} + kSmallWrn),
      "both to keep and to recompute");
}

class PlanOfMirror : public testing::Test {
 protected:
  nlohmann::json save(const Words& words) {
    const Outcome saved = thimble_says(Words{"plan", "--save", path_} + words);
    EXPECT_EQ(saved.code, 0) << saved.err;
    return nlohmann::json::parse(slurp(path_));
  }
  Outcome verify(const nlohmann::json& file) {
    spill(path_, file.dump());
    return thimble_says({"verify", path_});
  }

  const Words mirror_ = {"--planner", "mirror", "--keep", "*conv1.*"};
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "plan.json";
};

TEST_F(PlanOfMirror, IsSoundAsSavedMarksIncluded) {
  const nlohmann::json file = save(kSmallWrn + mirror_);
  EXPECT_EQ(verify(file).code, 0);
  // Under a mark that its steps break, it is not.
  nlohmann::json marked = file;
  marked["recipe"]["keep"] = {"*batch_norm#*"};
  expect_mistake(verify(marked), "unsound", "marked to be kept");
  marked["recipe"]["keep"] = {"*attention*"};
  expect_mistake(verify(marked), "matches no node");
}

TEST_F(PlanOfMirror, OfAnotherModelIsUnsound) {
  const nlohmann::json other = save({"mlp", "--batch", "4"});
  nlohmann::json file = save(kSmallWrn + mirror_);
  file["plan"] = other["plan"];
  expect_mistake(verify(file), path_, "another graph");
}

TEST_F(PlanOfMirror, TamperedWithIsUnsound) {
  const nlohmann::json file = save(kSmallWrn + mirror_);
  const auto unsound = [&](const char* what, const std::function<void(nlohmann::json&)>& change) {
    SCOPED_TRACE(what);
    nlohmann::json changed = file;
    change(changed["plan"]);
    expect_mistake(verify(changed), "unsound");
  };
  unsound("roles", [](auto& p) { std::swap(p["peak_by_role"][0], p["peak_by_role"][1]); });
  unsound("peak step", [](auto& p) { p["peak_call"] = 0; });
  unsound("seconds", [](auto& p) { p["predicted_seconds"] = 1; });
  unsound("flops", [](auto& p) { p["flops"] = 1; });
  unsound("extra flops", [](auto& p) { p["extra_flops"] = 0; });
  unsound("missing recomputation", [](auto& p) {
    for (size_t s = 0; s < p["calls"].size(); ++s) {
      if (p["calls"][s].contains("recompute")) return void(p["calls"].erase(s));
    }
  });
  unsound("hidden recomputation", [](auto& p) {
    for (auto& step : p["calls"]) step.erase("recompute");
  });
}

}  // namespace
}  // namespace thimble
