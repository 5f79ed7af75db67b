// thimble plan and thimble verify, through the program itself.
#include "support/run_thimble.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

nlohmann::json plan_json(const Words& words) {
  const Outcome outcome = thimble_says(Words{"plan", "--json"} + words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? outcome.json() : nlohmann::json::object();
}

class PlanCommand : public testing::TestWithParam<Words> {};

TEST_P(PlanCommand, SaysEverythingTheDesignPromises) {
  const nlohmann::json plan = plan_json(GetParam());
  for (const char* key :
       {"model", "device", "batch", "microbatch", "planner", "tier", "arena_bytes",
        "peak_live_bytes", "bytes", "nodes", "calls", "recomputed_calls", "flops",
        "extra_flops_ratio", "predicted_step_ms", "plan_seconds"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  int64_t sum = 0;
  for (const char* key : {"weights", "frozen", "gradients", "optimizer", "activations", "workspace",
                          "data", "statistics"}) {
    ASSERT_TRUE(plan["bytes"].contains(key)) << key;
    EXPECT_GE(plan["bytes"][key].get<int64_t>(), 0) << key;
    sum += plan["bytes"][key].get<int64_t>();
  }
  EXPECT_EQ(plan["bytes"].size(), 8u);
  EXPECT_EQ(sum, plan["peak_live_bytes"].get<int64_t>());
  EXPECT_GE(plan["arena_bytes"], plan["peak_live_bytes"]);
  EXPECT_EQ(plan["arena_bytes"].get<int64_t>() % 64, 0);
  EXPECT_EQ(plan["calls"], plan["nodes"]);  // keep_all runs each node once
  EXPECT_EQ(plan["recomputed_calls"], 0);
  EXPECT_EQ(plan["extra_flops_ratio"], 0);
  EXPECT_EQ(plan["planner"], "keep_all");
  EXPECT_EQ(plan["tier"], "exact");
  EXPECT_EQ(plan["batch"], plan["microbatch"]);
  EXPECT_GT(plan["predicted_step_ms"], 0);
  EXPECT_GT(plan["flops"], 0);
  // Weights are live at every step: 4 bytes each, and rounding up to 64 per tensor.
  EXPECT_GE(plan["bytes"]["weights"], 4 * plan["parameters"].get<int64_t>());
  EXPECT_GE(plan["bytes"]["optimizer"], 4 * plan["parameters"].get<int64_t>());  // momentum
}

TEST_P(PlanCommand, TheSmallestBudgetIsExact) {
  const bool fits = !kSanitized || GetParam()[0] == "mlp";
  const auto with_memory = [&](int64_t bytes) {
    return thimble_says(
        Words{"plan", "--json", "--memory", std::to_string(bytes), "--fit", fits ? "on" : "off"} +
        GetParam());
  };
  const Outcome refused = with_memory(64);
  EXPECT_EQ(refused.code, 3);
  const nlohmann::json infeasible = refused.json();
  EXPECT_EQ(infeasible["infeasible"], true);
  EXPECT_FALSE(infeasible["why"].get<std::string>().empty());
  const int64_t least = infeasible["min_bytes"];
  EXPECT_NE(refused.err.find(std::to_string(least)), std::string::npos);
  EXPECT_LE(least, plan_json(GetParam())["arena_bytes"].get<int64_t>());

  const Outcome exact = with_memory(least);
  EXPECT_EQ(exact.code, 0);
  EXPECT_EQ(exact.json()["arena_bytes"], least);
  const Outcome less = with_memory(least - 1);
  EXPECT_EQ(less.code, 3);
  EXPECT_EQ(less.json()["min_bytes"], least);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, PlanCommand,
    testing::Values(Words{"mlp"},
                    Words{"wrn-10-1", "--image", "8,8,1", "--batch", kSanitized ? "4" : "100"},
                    Words{"lstm", "--length", kSanitized ? "2" : "5"},
                    Words{"resnet:[1,1,1,1]", "--device", "null", "--batch", "2"}),
    [](const auto& test) { return test.param[0].substr(0, test.param[0].find_first_of("-:")); });

TEST(Plan, InfeasibleWithoutJsonIsASentence) {
  const Outcome outcome = thimble_says({"plan", "mlp", "--memory", "64KiB"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("the smallest found is"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--memory"), std::string::npos) << outcome.err;
}

TEST(Plan, TheLeastMemoryIsWhatATooSmallBudgetNames) {
  const Words deep = {"mlp", "--layers", kSanitized ? "3" : "5", "--batch",
                      kSanitized ? "30" : "300"};
  for (const Words& net : {deep, deep + Words{"--codec", "auto"},
                           Words{"lstm", "--length", kSanitized ? "2" : "6", "--microbatch", "20"},
                           Words{"mlp", "--planner", "sqrt_segments"},
                           Words{"wrn-10-1", "--codec", "auto:int8", "--planner", "keep_all"}}) {
    const Outcome too_small = thimble_says(Words{"plan", "--json", "--memory", "1B"} + net);
    ASSERT_EQ(too_small.code, 3) << too_small.err;
    const nlohmann::json floor = too_small.json()["min_bytes"];
    const nlohmann::json least = plan_json(net + Words{"--memory", "least"});
    ASSERT_EQ(least.value("arena_bytes", 0), floor);
    const nlohmann::json asked = plan_json(net + Words{"--memory", floor.dump()});
    EXPECT_EQ(least.at("flops"), asked.at("flops"));
    EXPECT_EQ(least.at("predicted_step_ms"), asked.at("predicted_step_ms"));
  }
}

TEST(Plan, FlagsChangeWhatTheyShould) {
  const nlohmann::json base = plan_json({"mlp"});
  EXPECT_EQ(plan_json({"mlp", "--batch", "7"})["batch"], 7);
  EXPECT_EQ(base["batch"], 100);
  EXPECT_GT(plan_json({"mlp", "--optimizer", "adam"})["bytes"]["optimizer"],
            base["bytes"]["optimizer"]);
  EXPECT_EQ(plan_json({"mlp", "--momentum", "0"})["bytes"]["optimizer"], 0);
  EXPECT_GT(plan_json({"mlp", "--hidden", "512"})["parameters"], base["parameters"]);
  EXPECT_EQ(plan_json({"mlp", "--device", "null"})["device"], "null");
  // A plan does not depend on when it is made.
  nlohmann::json again = plan_json({"mlp"}), first = base;
  again.erase("plan_seconds");
  first.erase("plan_seconds");
  EXPECT_EQ(again, first);
}

TEST(Plan, TimeStepsAtOnceAreFewerNodesOfTheSameWork) {
  const Words lstm = {"lstm", "--length", "20", "--device", "null"};
  const nlohmann::json cells = plan_json(lstm);
  EXPECT_EQ(plan_json(lstm + Words{"--steps-at-once", "1"})["nodes"], cells["nodes"]);
  const nlohmann::json runs = plan_json(lstm + Words{"--steps-at-once", "8"});  // 8, 8 and 4
  EXPECT_LT(runs["nodes"], cells["nodes"]);
  EXPECT_EQ(runs["parameters"], cells["parameters"]);
  EXPECT_EQ(runs["flops"], cells["flops"]);
  // The states of a run are there twice, once for what follows and once for the gradient.
  EXPECT_NEAR(runs["arena_bytes"].get<double>() / cells["arena_bytes"].get<double>(), 1, 0.2);
}

TEST(Plan, WideResNetFitsWhereThePeersDoNot) {
  const nlohmann::json plan = plan_json({"wrn-28-2", "--batch", "100"});
  EXPECT_LE(plan["arena_bytes"], 400ll << 20);
  // And it is packed well: within one percent of what is live.
  EXPECT_LE(plan["arena_bytes"].get<double>(), 1.01 * plan["peak_live_bytes"].get<double>());
}

TEST(Plan, MicrobatchesSaveActivationsAndSayWhatTheyCost) {
  const Words wrn = {"wrn-28-2", "--batch", "100", "--optimizer", "sgd"};
  const nlohmann::json whole = plan_json(wrn);
  const nlohmann::json parts = plan_json(wrn + Words{"--microbatch", "10"});
  EXPECT_EQ(parts["batch"], 100);
  EXPECT_EQ(parts["microbatch"], 10);
  EXPECT_EQ(parts["microbatches"], 10);
  EXPECT_EQ(parts["tier"], "approximate");
  EXPECT_LT(parts["arena_bytes"].get<double>(), whole["arena_bytes"].get<double>() / 6);
  EXPECT_EQ(parts["bytes"]["gradients"], parts["bytes"]["weights"]);
  // Folded: the gradients are gone, to the byte.
  const nlohmann::json folded = plan_json(wrn + Words{"--microbatch", "10", "--fold"});
  EXPECT_EQ(folded["bytes"]["gradients"], 0);
  EXPECT_EQ(parts["arena_bytes"].get<int64_t>() - folded["arena_bytes"].get<int64_t>(),
            parts["bytes"]["gradients"].get<int64_t>());
  // The same work but for the sums, whatever is left over.
  const nlohmann::json uneven = plan_json(wrn + Words{"--microbatch", "30"});
  EXPECT_EQ(uneven["microbatches"], 4);
  EXPECT_NEAR(uneven["flops"].get<double>() / whole["flops"].get<double>(), 1, 0.001);
  EXPECT_EQ(plan_json(wrn + Words{"--microbatch", "10", "--norm", "group"})["tier"], "equivalent");
  EXPECT_EQ(plan_json(wrn + Words{"--microbatch", "100"})["tier"], "exact");
}

TEST(Plan, ListNamesWhatThereIs) {
  const nlohmann::json all = thimble_says({"list", "--json"}).json();
  for (const char* kind : {"models", "data", "planners", "packers", "codecs", "ops"}) {
    EXPECT_FALSE(all[kind].empty()) << kind;
  }
  EXPECT_NE(thimble_says({"list"}).out.find("wrn-D-K"), std::string::npos);
}

TEST(Plan, HelpIsNoMistake) {
  for (const Words& words : {Words{"--help"}, Words{"train", "--help"}, Words{"--version"}}) {
    const Outcome outcome = thimble_says(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_FALSE(outcome.out.empty());
  }
}

class SavedPlan : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome saved = thimble_says({"plan", "wrn-10-1", "--image", "8,8,1", "--batch", "4",
                                        "--threads", "2", "--save", path_});
    ASSERT_EQ(saved.code, 0) << saved.err;
    ASSERT_EQ(folder_.entries(), 1);
    file_ = nlohmann::json::parse(slurp(path_));
  }

  Outcome verify_with(const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json changed = file_;
    change(changed);
    spill(path_, changed.dump());
    return thimble_says({"verify", path_});
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "plan.json";
  nlohmann::json file_;
};

TEST_F(SavedPlan, IsSoundAsSaved) {
  const Outcome outcome = thimble_says({"verify", path_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("sound"), std::string::npos);
  const nlohmann::json json = thimble_says({"verify", path_, "--json"}).json();
  EXPECT_EQ(json["sound"], true);
  EXPECT_EQ(json["arena_bytes"], file_["plan"]["arena_bytes"]);
}

TEST_F(SavedPlan, TamperedWithIsUnsound) {
  const auto unsound = [&](const char* what, const std::function<void(nlohmann::json&)>& change) {
    SCOPED_TRACE(what);
    expect_mistake(verify_with([&](nlohmann::json& file) { change(file["plan"]); }), "unsound");
  };
  unsound("arena",
          [](auto& p) { p["arena_bytes"] = p["arena_bytes"].template get<int64_t>() + 64; });
  unsound("peak", [](auto& p) { p["peak_live_bytes"] = 64; });
  unsound("dropped call", [](auto& p) { p["calls"].erase(3); });
  unsound("moved output", [](auto& p) { p["calls"][2]["out"][0] = 0; });
  unsound("moved input", [](auto& p) { p["calls"][2]["in"][0] = 64; });
  unsound("unknown node", [](auto& p) { p["calls"][2]["node"] = 100000; });
  unsound("negative node", [](auto& p) { p["calls"][2]["node"] = -1; });
  unsound("no calls", [](auto& p) { p["calls"] = nlohmann::json::array(); });
  unsound("huge offset", [](auto& p) { p["calls"][2]["out"][0] = 9223372036854775744; });
  unsound("huge scratch", [](auto& p) { p["calls"][2]["scratch"] = {0, 9223372036854775744}; });
  unsound("negative arena", [](auto& p) { p["arena_bytes"] = -64; });
  unsound("microbatches", [](auto& p) { p["microbatches"] = 0; });
}

TEST_F(SavedPlan, WhatIsNoPlanFileIsAMistake) {
  const auto mistake = [&](const char* what, const std::function<void(nlohmann::json&)>& change) {
    SCOPED_TRACE(what);
    expect_mistake(verify_with(change));
  };
  mistake("format", [](auto& f) { f["format"] = 1; });
  mistake("no plan", [](auto& f) { f.erase("plan"); });
  mistake("no recipe", [](auto& f) { f.erase("recipe"); });
  mistake("calls", [](auto& f) { f["plan"]["calls"] = "none"; });
  mistake("model", [](auto& f) { f["recipe"]["model"] = "unheard-of"; });
  mistake("model type", [](auto& f) { f["recipe"]["model"] = 5; });
  mistake("batch", [](auto& f) { f["recipe"]["batch"] = -1; });
  mistake("image rank", [](auto& f) { f["recipe"]["image"] = {8, 8}; });
  mistake("image of many axes", [](auto& f) { f["recipe"]["image"] = {1, 1, 1, 1, 1, 1, 1, 1}; });
  mistake("negative image", [](auto& f) { f["recipe"]["image"] = {8, -8, 1}; });
  mistake("threads", [](auto& f) { f["recipe"]["threads"] = -3; });
  mistake("device", [](auto& f) { f["recipe"]["device"] = "abacus"; });
  mistake("optimizer", [](auto& f) { f["recipe"]["optimizer"] = "guess"; });
  for (const char* text : {"", "{", "[]", "7", "\"thimble-plan-1\""}) {
    spill(path_, text);
    expect_mistake(thimble_says({"verify", path_}), path_);
  }
  spill(path_, file_.dump().substr(0, 1000));
  expect_mistake(thimble_says({"verify", path_}), path_);
  expect_mistake(thimble_says({"verify", folder_ / "nothing"}), folder_ / "nothing");
  expect_mistake(thimble_says({"verify", folder_.path()}), folder_.path());
}

TEST_F(SavedPlan, AnotherModelsPlanIsUnsoundForThisOne) {
  expect_mistake(verify_with([](auto& f) { f["recipe"]["model"] = "wrn-16-1"; }), "unsound");
  expect_mistake(verify_with([](auto& f) { f["recipe"]["batch"] = 8; }), "unsound");
}

TEST(Plan, APlanOfMicrobatchesIsSavedWhole) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  const Outcome saved =
      thimble_says({"plan", "wrn-10-1", "--image", "8,8,1", "--batch", "10", "--microbatch", "4",
                    "--threads", "2", "--fold", "--optimizer", "sgd", "--save", path});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_NE(saved.out.find("batch 10 in microbatches of 4, the last of 2 (approximate)"),
            std::string::npos)
      << saved.out;
  EXPECT_EQ(thimble_says({"verify", path}).code, 0);
  const nlohmann::json file = nlohmann::json::parse(slurp(path));
  const auto refused = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json changed = file;
    change(changed);
    spill(path, changed.dump());
    expect_mistake(thimble_says({"verify", path}), "unsound");
  };
  refused([](auto& f) { f.erase("others"); });
  refused([](auto& f) { f["others"][0]["plan"] = f["plan"]; });
  refused([](auto& f) { f["plan"]["microbatches"] = 2; });
  refused([](auto& f) {
    auto& calls = f["others"][0]["plan"]["calls"];
    calls.erase(calls.size() / 2);
  });
  refused([](auto& f) { f["recipe"]["fold"] = false; });
  refused([](auto& f) { f["recipe"]["norm"] = "group"; });
}

TEST(Plan, TimeStepsAtOnceAreInThePlanFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan";
  const Outcome saved = thimble_says({"plan", "lstm", "--length", "7", "--batch", "4", "--memory",
                                      "least", "--steps-at-once", "3", "--save", path});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(thimble_says({"verify", path}).code, 0);
  const nlohmann::json file = nlohmann::json::parse(slurp(path));
  EXPECT_EQ(file["recipe"]["steps_at_once"], 3);
  for (const int64_t steps : {0, 2, 7, -3}) {
    nlohmann::json changed = file;
    changed["recipe"]["steps_at_once"] = steps;
    spill(path, changed.dump());
    expect_mistake(thimble_says({"verify", path}));
  }
}

TEST(Plan, AnUnwritablePlanFileIsAMistake) {
  const TemporaryFolder folder;
  expect_mistake(thimble_says({"plan", "mlp", "--save", folder / "missing/plan.json"}),
                 folder / "missing/plan.json");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Profile, MeasuresWhatWasPredicted) {
  for (const Words& words :
       {Words{"mlp", "--batch", "32"}, Words{"wrn-10-1", "--batch", "8", "--data", "digits"},
        Words{"lstm", "--batch", "4", "--length", "6"},
        Words{"lstm", "--batch", "4", "--length", "6", "--steps-at-once", "4"},
        Words{"wrn-10-1", "--batch", "8", "--data", "digits", "--microbatch", "3"},
        Words{"wrn-10-1", "--batch", "8", "--data", "digits", "--density", "0.3"},
        Words{"lstm", "--batch", "4", "--length", "6", "--microbatch", "2", "--fold", "--optimizer",
              "sgd"}}) {
    const Outcome outcome = thimble_says(Words{"profile", "--json", "--steps", "2"} + words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json json = outcome.json();
    EXPECT_EQ(json["measured_arena_bytes"], json["arena_bytes"]) << words[0];
    EXPECT_LE(json["written_arena_bytes"], json["arena_bytes"]) << words[0];
    EXPECT_EQ(json["measured_peak_live_bytes"], json["peak_live_bytes"]) << words[0];
    for (const auto& [role, bytes] : json["by_role"].items()) {
      EXPECT_EQ(bytes["measured"], bytes["predicted"]) << words[0] << " " << role;
    }
  }
}

TEST(PlanOfSparseWeights, CountsNonzerosAndCanBeVerified) {
  const TemporaryFolder folder;
  const nlohmann::json plan =
      plan_json({"wrn-28-2", "--microbatch", "10", "--density", "0.3", "--save", folder / "plan"});
  EXPECT_EQ(plan["sparse_elements"], 1'451'520);
  EXPECT_EQ(plan["nonzeros"], 435'457);
  EXPECT_NEAR(plan["density"].get<double>(), 0.3, 1e-6);
  EXPECT_EQ(plan["tier"], "approximate");
  EXPECT_GT(plan["recomputed_calls"], 0);  // dense weights, again for the backward pass
  const Outcome verified = thimble_says({"verify", folder / "plan", "--json"});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(verified.json()["arena_bytes"], plan["arena_bytes"]);
  EXPECT_FALSE(plan_json({"wrn-28-2"}).contains("nonzeros"));
}

// A plan file holds the whole recipe, so that what is rebuilt from it is the step that was planned.
TEST(PlanFiles, KeepEverySetting) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--density", "0.3", "--sparsity", "static", "--state-bits", "8"},
        {"--precision", "bf16", "--rounding", "kahan", "--loss-scale", "dynamic"},
        {"--optimizer", "adam", "--beta1", "0.8", "--epsilon", "1e-6", "--microbatch", "30"}}) {
    std::vector<std::string> words = {"plan", "mlp:hidden=64", "--save", path};
    words.insert(words.end(), flags.begin(), flags.end());
    ASSERT_EQ(thimble_says(words).code, 0) << flags[0];
    const Outcome verified = thimble_says({"verify", path});
    EXPECT_EQ(verified.code, 0) << verified.err;
  }
  const nlohmann::json good = nlohmann::json::parse(slurp(path));
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"layers", -1},
                                   {"classes", "4294967296"},
                                   {"layers", 4294967296}}) {
    nlohmann::json bad = good;
    bad["recipe"][key] = value;
    spill(path, bad.dump());
    expect_mistake(thimble_says({"verify", path}), path, key);
  }
}

}  // namespace
}  // namespace thimble
