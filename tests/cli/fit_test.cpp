// A budget that chooses, as users meet it.
#include <gtest/gtest.h>

#include "support/run_thimble.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

const Words kNet =
    Words{"wrn-10-1", "--norm", "group", "--optimizer", "sgd", "--threads", "1"} +
    (kSanitized ? Words{"--batch", "6", "--image", "8,8,1"} : Words{"--batch", "24"});

nlohmann::json planned(const Words& words) {
  const Outcome outcome = thimble_says(Words{"plan", "--json"} + words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? outcome.json() : nlohmann::json();
}

Words words_in(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void expect_sentence(const Words& words, int code, const std::string& part) {
  const Outcome outcome = thimble_says(words);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

TEST(FitCommand, SaysFirstWhatItChose) {
  const Outcome outcome = thimble_says(Words{"plan", "--memory", "least"} + kNet);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // A busy machine says before it that it is looking.
  const size_t said = outcome.err.find("fit: ");
  EXPECT_EQ(outcome.err.substr(said, 17), "fit: wrn-10-1 in ") << outcome.err;
  for (const char* part : {"gradients folded into the momentum", "microbatches of 1 row", "saves",
                           "--fold", "--microbatch 1", " ms "}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
  }
  const nlohmann::json json = planned(kNet + Words{"--memory", "least"});
  EXPECT_EQ(json["tier"], "equivalent");
  EXPECT_EQ(json["fit"]["allow"], "equivalent");
  EXPECT_GE(json["fit"]["choices"].size(), 2u);
}

// Typed out it is the same plan, and trains to the same bits.
TEST(FitCommand, TypedOutTrainsToTheSameBits) {
  const TemporaryFolder folder;
  const Words steps = {"--steps", "2", "--no-eval", "--save-every", "0", "--json"};
  for (const char* tier : {"exact", "equivalent", "approximate"}) {
    const nlohmann::json plan = planned(kNet + Words{"--memory", "least", "--allow", tier});
    const std::string budget = std::to_string(plan["arena_bytes"].get<int64_t>() * 5 / 4);
    const Outcome chosen = thimble_says(Words{"train", "--memory", budget, "--allow", tier, "--out",
                                              folder / (std::string("chosen-") + tier)} +
                                        kNet + steps);
    ASSERT_EQ(chosen.code, 0) << chosen.err;
    const Outcome typed =
        thimble_says(Words{"train", "--out", folder / (std::string("typed-") + tier)} + kNet +
                     words_in(chosen.json()["fit"]["flags"]) + steps);
    ASSERT_EQ(typed.code, 0) << typed.err;
    EXPECT_FALSE(typed.json().contains("fit"));
    EXPECT_EQ(typed.json()["arena_bytes"], chosen.json()["arena_bytes"]);
    EXPECT_EQ(typed.json()["calls"], chosen.json()["calls"]);
    EXPECT_EQ(typed.json()["weights_sha256"], chosen.json()["weights_sha256"]);
    EXPECT_LE(chosen.json()["measured_arena_bytes"], std::stoll(budget));
  }
}

// The run's record has the choice, and the gain of each technique.
TEST(FitCommand, LeavesItsChoicesInTheRunFolderAndOnThePage) {
  const TemporaryFolder folder;
  const Words steps = {"--steps", "1", "--no-eval", "--json", "--out", folder / "run"};
  const Outcome run = thimble_says(Words{"train", "--memory", "least"} + kNet + steps);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto plan = nlohmann::json::parse(slurp(folder / "run/plan.json"));
  EXPECT_EQ(plan["fit"]["choices"], run.json()["fit"]["choices"]);
  EXPECT_EQ(plan["fit"]["plain_arena_bytes"], run.json()["fit"]["plain_arena_bytes"]);
  EXPECT_EQ(thimble_says({"verify", folder / "run/plan.json"}).code, 0);
  const Words report = {"report", folder / "run", "--frontier", "off", "-o", folder / "page.html"};
  ASSERT_EQ(thimble_says(report).code, 0);
  const std::string first = run.json()["fit"]["choices"][0]["flags"];
  EXPECT_TRUE(first.starts_with("--microbatch ")) << first;
  EXPECT_NE(slurp(folder / "page.html").find("\"flags\":\"" + first + "\""), std::string::npos);
  // Not an object of choices: a sentence.
  spill(folder / "run/plan.json", [&] {
    nlohmann::json damaged = plan;
    damaged["fit"] = 7;
    return damaged.dump();
  }());
  const Outcome damaged = thimble_says(report);
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("is damaged"), std::string::npos) << damaged.err;
}

// The recipe names what was chosen, so that it trains the same again; people are told what was asked for.
TEST(FitCommand, TellsWhatWasAskedFor) {
  const TemporaryFolder folder;
  const Words steps = {"--steps", "1", "--no-eval", "--json", "--out"};
  const Outcome chosen =
      thimble_says(Words{"train", "--memory", "least"} + kNet + steps + Words{folder / "chosen"});
  ASSERT_EQ(chosen.code, 0) << chosen.err;
  const std::string recipe = slurp(folder / "chosen/recipe.toml");
  EXPECT_EQ(recipe.find("# memory = \"least\" was asked for"), 0u) << recipe;
  const Outcome again = thimble_says(
      {"train", folder / "chosen/recipe.toml", "--no-eval", "--json", "--out", folder / "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["weights_sha256"], chosen.json()["weights_sha256"]);
  const Outcome plain = thimble_says(Words{"train"} + kNet + steps + Words{folder / "plain"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  const auto runs =
      thimble_says({"compare", folder / "chosen", folder / "plain", "--json"}).json()["runs"];
  EXPECT_EQ(runs[0]["fields"]["memory"], "least");
  EXPECT_EQ(runs[0]["fields"]["fit"], "on");
  EXPECT_EQ(runs[1]["fields"]["memory"], "");
  const Words report = {"report", folder / "chosen",   "--frontier", "off",
                        "-o",     folder / "page.html"};
  ASSERT_EQ(thimble_says(report).code, 0);
  EXPECT_NE(slurp(folder / "page.html").find("[\"Memory\",\"memory\",\"least\",true]"),
            std::string::npos);
}

// A run that continues with another budget keeps the microbatches that it began with.
TEST(FitCommand, ResumesWithWhatItChose) {
  const TemporaryFolder folder;
  const Words run = Words{"train", "--no-eval", "--schedule", "constant", "--json"} + kNet;
  const auto least = planned(kNet + Words{"--memory", "least"})["arena_bytes"].get<int64_t>();
  const std::string tight = std::to_string(least), wide = std::to_string(2 * least);
  const Outcome whole =
      thimble_says(run + Words{"--memory", tight, "--steps", "3", "--out", folder / "whole"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Outcome part =
      thimble_says(run + Words{"--memory", tight, "--steps", "2", "--out", folder / "part"});
  ASSERT_EQ(part.code, 0) << part.err;
  const Outcome rest = thimble_says(
      run + Words{"--memory", wide, "--steps", "3", "--out", folder / "part", "--resume"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(rest.json()["microbatch"], whole.json()["microbatch"]);
  EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
}

TEST(FitCommand, OffIsRecomputationAlone) {
  const nlohmann::json off = planned(kNet + Words{"--memory", "least", "--fit", "off"});
  EXPECT_EQ(off["tier"], "exact");
  EXPECT_FALSE(off.contains("fit"));
  const nlohmann::json named = planned(kNet + Words{"--memory", "least", "--planner", "optimal"});
  EXPECT_EQ(named["arena_bytes"], off["arena_bytes"]);
}

TEST(FitCommand, SaysWhatEveryTierNeedsWhereNothingFits) {
  const Words words = Words{"plan", "--memory", "64"} + kNet;
  const Outcome outcome = thimble_says(words);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  for (const char* part : {"the smallest found is", "exact", "equivalent", "approximate",
                           "--allow approximate", "memory peaks at call"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
  }
  const nlohmann::json json = thimble_says(words + Words{"--json"}).json();
  const int64_t least = json["min_bytes"];
  EXPECT_EQ(json["tiers"]["equivalent"]["min_bytes"], least);
  EXPECT_LT(json["tiers"]["approximate"]["min_bytes"], least);
  EXPECT_EQ(planned(kNet + Words{"--memory", std::to_string(least)})["arena_bytes"], least);
  // Even everything allowed does not fit.
  expect_sentence(words + Words{"--allow", "approximate"}, 3, "or give more --memory");
}

TEST(FitCommand, RefusesWhatContradictsItself) {
  const Words plan = {"plan", "mlp", "--memory", "1MiB"};
  expect_sentence(plan + Words{"--allow", "exact", "--precision", "fp16"}, 2, "--allow is exact");
  for (const char* bits : {"8", "16"}) {
    expect_sentence(plan + Words{"--allow", "equivalent", "--state-bits", bits}, 2, "--state-bits");
  }
  expect_sentence(plan + Words{"--fit", "on", "--codec", "auto"}, 2, "--fit off");
  expect_sentence({"plan", "mlp", "--fit", "on"}, 2, "without --memory");
  expect_sentence({"plan", "mlp", "--memory", "auto", "--device", "null"}, 2, "no memory to go by");
}

TEST(LargestCommand, FindsWhatFitsAndNoMore) {
  const Words net = {"mlp", "--threads", "1", "--layers", "3", "--memory", "4MiB"};
  const nlohmann::json found = planned(net + Words{"--largest", "batch"});
  const int64_t batch = found["batch"];
  EXPECT_EQ(found["microbatch"], batch);
  EXPECT_LE(found["arena_bytes"], 4 << 20);
  const Words one_more = {"--batch", std::to_string(batch + 1), "--microbatch",
                          std::to_string(batch + 1), "--json"};
  EXPECT_EQ(thimble_says(Words{"plan"} + net + one_more).code, 3);
  const nlohmann::json layers = planned(
      {"mlp", "--device", "null", "--batch", "20", "--memory", "4MiB", "--largest", "layers"});
  EXPECT_LE(layers["arena_bytes"], 4 << 20);
  // Heads have to divide the width.
  const nlohmann::json width =
      planned({"gpt", "--device", "null", "--layers", "1", "--heads", "3", "--length", "8",
               "--batch", "2", "--memory", "2MiB", "--largest", "width"});
  EXPECT_LE(width["arena_bytes"], 2 << 20);
}

TEST(LargestCommand, SaysWhatItCannotFind) {
  expect_sentence({"plan", "mlp", "--largest", "batch"}, 2, "--memory");
  expect_sentence({"plan", "mlp", "--largest", "depth", "--memory", "1MiB"}, 2, "not 'depth'");
  expect_sentence({"plan", "wrn-10-1", "--largest", "layers", "--memory", "9MiB"}, 2,
                  "has no --layers");
  expect_sentence({"plan", "mlp", "--largest", "batch", "--memory", "1kB"}, 2, "no room even for");
  expect_sentence({"plan", "mlp", "--largest", "", "--memory", "1MiB"}, 2, "not ''");
  expect_sentence({"plan", "mlp", "--largest", "batch", "--microbatch", "10", "--memory", "4MiB"},
                  2, "leave --microbatch out");
}

// An image of 8 pixels can be halved only so often, whatever the budget.
TEST(LargestCommand, SaysWhereItIsNotMemoryThatEnds) {
  const Words net = {"plan", "unet", "--device", "null", "--image", "8,8,3", "--batch", "2"};
  const Outcome bounded = thimble_says(net + Words{"--largest", "layers", "--memory", "1GiB"});
  ASSERT_EQ(bounded.code, 0) << bounded.err;
  EXPECT_NE(bounded.err.find("memory would do for more"), std::string::npos) << bounded.err;
  const Outcome full = thimble_says(net + Words{"--largest", "batch", "--memory", "9MiB"});
  ASSERT_EQ(full.code, 0) << full.err;
  EXPECT_EQ(full.err.find("memory would do for more"), std::string::npos) << full.err;
}

// Where nothing was measured, the first seconds go into that, once.
TEST(FirstTimes, AreMeasuredOnce) {
  const TemporaryFolder folder;
  const RunSettings settings = {.cache = folder / "cache", .measures = true};
  const Words words = {"train", "mlp",       "--steps", "1",     "--no-eval",    "--batch",
                       "8",     "--threads", "1",       "--out", folder / "run", "--overwrite"};
  const Outcome modelled = thimble_says(words + Words{"--costs", "modelled"}, settings);
  EXPECT_EQ(modelled.code, 0) << modelled.err;
  EXPECT_EQ(modelled.err.find("measured"), std::string::npos) << modelled.err;
  const Outcome first = thimble_says(words, settings);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("kernels in"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("--costs modelled"), std::string::npos) << first.err;
  const Outcome second = thimble_says(words, settings);
  EXPECT_EQ(second.err.find("kernels in"), std::string::npos) << second.err;
  const Outcome plan = thimble_says(
      {"plan", "mlp", "--batch", "8", "--threads", "1", "--memory", "8MiB", "--json"}, settings);
  EXPECT_NE(plan.json()["costs"].get<std::string>().find("measured"), std::string::npos);
}

TEST(ExplainCommand, PricesTheNextMegabyteAndEveryTensor) {
  const Words net = kSanitized ? Words{"mlp",   "--layers",  "2", "--hidden", "16", "--image",
                                       "4,4,1", "--threads", "1", "--batch",  "128"}
                               : Words{"wrn-10-1", "--threads", "1", "--batch", "32"};
  const auto kept = planned(net)["arena_bytes"].get<int64_t>();
  const Words less = kSanitized ? Words{"--memory", std::to_string(kept * 9 / 10), "--fit", "off"}
                                : Words{"--memory", std::to_string(kept / 2)};
  const nlohmann::json json = planned(net + less + Words{"--explain"});
  const nlohmann::json& why = json["explanation"];
  EXPECT_FALSE(why["live"].empty());
  int64_t live = 0;
  for (const nlohmann::json& tensor : why["live"]) live += tensor["bytes"].get<int64_t>();
  EXPECT_LE(live, json["peak_live_bytes"].get<int64_t>());
  int chosen = 0;
  double before = 0;
  for (const nlohmann::json& point : why["frontier"]) {
    chosen += point["chosen"].get<bool>() ? 1 : 0;
    EXPECT_GE(point["predicted_step_ms"], before * (1 - 1e-9));
    before = point["predicted_step_ms"];
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_GT(why["next_mib_ms"], 0);
  int again = 0;
  for (const nlohmann::json& tensor : why["tensors"]) {
    again += tensor["fate"] == "computed again" ? 1 : 0;
    EXPECT_EQ(tensor["residency"] == "recomputed",
              tensor["fate"].get<std::string>().starts_with("computed again"));
    EXPECT_FALSE(tensor["why"].get<std::string>().empty());
  }
  EXPECT_GT(again, 0);
}

}  // namespace
}  // namespace thimble
