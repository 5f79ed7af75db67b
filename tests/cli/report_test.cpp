// Runs as people keep them: folders, reports, comparisons.
#include <gtest/gtest.h>

#include "support/run_thimble.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Outcome train_digits(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"train",        "mlp",    "--data",  "digits", "--hidden", "16",
                                    "--steps",      "6",      "--batch", "48",     "--out",    out,
                                    "--eval-every", "3 steps"};
  words.insert(words.end(), more.begin(), more.end());
  return thimble_says(words);
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(RunFolderFiles, HoldRecipePlanTraceAndMetrics) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(train_digits(run).code, 0);
  const auto lines = lines_of(run + "/metrics.jsonl");
  ASSERT_EQ(lines.size(), 8u);  // six steps and two tests
  EXPECT_EQ(lines[2]["step"], 3);
  EXPECT_EQ(lines[3]["step"], 3);
  EXPECT_TRUE(lines[3].contains("test_accuracy"));
  EXPECT_EQ(lines.back()["step"], 6);
  for (const char* key : {"epoch", "loss", "lr", "ms", "seconds"}) {
    EXPECT_TRUE(lines[0].contains(key)) << key;
  }
  const auto plan = nlohmann::json::parse(slurp(run + "/plan.json"));
  const auto trace = nlohmann::json::parse(slurp(run + "/trace.json"));
  EXPECT_GE(trace["step"], 3);  // the fastest of three that are warm
  EXPECT_LE(trace["step"], 5);
  const size_t calls = plan["plan"]["calls"].size();
  EXPECT_EQ(trace["parts"][0]["planned_ms"].size(), calls);
  EXPECT_EQ(trace["parts"][0]["measured_ms"].size(), calls);
  EXPECT_EQ(thimble_says({"verify", run + "/plan.json"}).code, 0);
}

// The recipe in the folder is the run: the same bits come of it.
TEST(RunFolderFiles, TheRecipeDoesItAgain) {
  const TemporaryFolder folder;
  const Outcome first = train_digits(folder / "a", {"--json", "--microbatch", "16"});
  const Outcome again =
      thimble_says({"train", folder / "a/recipe.toml", "--out", folder / "b", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(first.json()["weights_sha256"], again.json()["weights_sha256"]);
  EXPECT_EQ(first.json()["arena_bytes"], again.json()["arena_bytes"]);
}

TEST(RunFolderFiles, ARunThatGoesOnDoublesNoLine) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(train_digits(run, {"--save-every", "2 steps"}).code, 0);
  // As if killed after step 6 with the checkpoint of step 4: later lines are written again.
  ASSERT_EQ(train_digits(run, {"--resume"}).code, 0);
  EXPECT_EQ(lines_of(run + "/metrics.jsonl").size(), 8u);
  ASSERT_EQ(train_digits(run, {"--resume", "--steps", "9"}).code, 0);
  std::vector<int64_t> steps;
  for (const auto& line : lines_of(run + "/metrics.jsonl")) {
    if (line.contains("ms")) steps.push_back(line["step"].get<int64_t>());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Report, OfARunAndOfAPlan) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_digits(folder / "run").code, 0);
  const Outcome report = thimble_says(
      {"report", folder / "run", "-o", folder / "run.html", "--svg", folder / "pictures"});
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(report.err, "");
  const std::string page = slurp(folder / "run.html");
  EXPECT_NE(page.find("measured_ms"), std::string::npos);
  EXPECT_NE(page.find("\"chart\":\"accuracy\""), std::string::npos);
  for (const char* name : {"memory", "addresses", "frontier", "loss", "accuracy"}) {
    EXPECT_TRUE(fs::exists(folder / (std::string("pictures/") + name + ".svg"))) << name;
  }
  const Outcome planned = thimble_says(
      {"report", folder / "run/plan.json", "--frontier", "off", "-o", folder / "p.html"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(slurp(folder / "p.html").find("measured_ms\":{"), std::string::npos);
}

TEST(Report, OfAHalfWrittenRunGoesAsFarAsItDoes) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(train_digits(run).code, 0);
  fs::remove(run + "/trace.json");
  const std::string lines = slurp(run + "/metrics.jsonl");
  spill(run + "/metrics.jsonl", lines.substr(0, lines.size() - 5));  // within the last line
  const auto report = [&] {
    return thimble_says({"report", run, "--frontier", "off", "-o", folder / "half.html"});
  };
  const Outcome half = report();
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_NE(half.err.find("no step was timed"), std::string::npos);
  EXPECT_NE(half.err.find("half written"), std::string::npos);
  spill(run + "/metrics.jsonl", "{\"step\": 1}\nnonsense\n{\"step\": 3}\n");
  const Outcome damaged = report();
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("line 2"), std::string::npos) << damaged.err;
  fs::remove(run + "/metrics.jsonl");
  const Outcome begun = report();
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_NE(begun.err.find("no step is on record"), std::string::npos);
  const std::string plan = slurp(run + "/plan.json");
  spill(run + "/plan.json", plan.substr(0, plan.size() / 2));
  EXPECT_EQ(report().code, 2);
  fs::remove(run + "/plan.json");
  const Outcome none = report();
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("plan.json"), std::string::npos);
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1);
}

// Each a sentence in words, that says what to do: never a bug of ours.
TEST(Report, OfADamagedRunSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(train_digits(run).code, 0);
  const auto expect_refusal = [&](const std::string& what, const std::string& part) {
    for (const Words& words : {Words{"report", what, "--frontier", "off", "-o", folder / "x.html"},
                               Words{"compare", what}}) {
      const Outcome refused = thimble_says(words);
      EXPECT_EQ(refused.code, 2) << refused.err;
      EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
      EXPECT_EQ(refused.err.find("exception"), std::string::npos) << refused.err;
      EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
  };
  const std::string plan = slurp(run + "/plan.json"), trace = slurp(run + "/trace.json");
  fs::remove(run + "/trace.json");
  const auto with_plan = [&](const auto& change) {
    nlohmann::json json = nlohmann::json::parse(plan);
    change(json["plan"]);
    spill(run + "/plan.json", json.dump());
  };
  with_plan([](auto& of) { of["arena_bytes"] = "many"; });
  expect_refusal(run, "'arena_bytes' of its plan cannot be");
  with_plan([](auto& of) { of["calls"][0]["out"][0] = int64_t{1} << 60; });
  expect_refusal(run, "is unsound: ");
  with_plan([](auto& of) { of["calls"].erase(0); });
  expect_refusal(run, "is unsound: ");
  with_plan([](auto& of) { std::swap(of["calls"][0], of["calls"].back()); });
  expect_refusal(run, "is unsound: ");
  spill(run + "/plan.json", plan);
  for (const std::string& text : {std::string(), trace.substr(0, trace.size() / 2),
                                  std::string("{\"hello\": 1}"), std::string("[]")}) {
    spill(run + "/trace.json", text);
    expect_refusal(run, "remove it to report on the rest");
  }
  spill(run + "/trace.json", trace);
  expect_refusal(run + "/latest", "choose '" + run + "'");
}

TEST(Report, SaysWhatItWants) {
  const TemporaryFolder folder;
  EXPECT_EQ(thimble_says({"report", folder / "none", "-o", folder / "x.html"}).code, 2);
  const Outcome nowhere = thimble_says({"report", folder.path()});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("-o report.html"), std::string::npos);
}

TEST(Compare, ShowsResultsAndOnlyTheFieldsThatDiffer) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_digits(folder / "whole").code, 0);
  ASSERT_EQ(train_digits(folder / "parts", {"--microbatch", "16", "--lr", "0.05"}).code, 0);
  const Outcome table =
      thimble_says({"compare", folder / "whole", folder / "parts", "-o", folder / "compare.html"});
  ASSERT_EQ(table.code, 0) << table.err;
  const std::string head = table.out.substr(0, table.out.find('\n'));
  for (const char* name : {"run", "loss", "accuracy", "arena", "tier", "microbatch", "lr"}) {
    EXPECT_NE(head.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(head.find("hidden"), std::string::npos);
  EXPECT_NE(table.out.find("equivalent"), std::string::npos);
  EXPECT_NE(slurp(folder / "compare.html").find("test accuracy"), std::string::npos);
  const auto json = thimble_says({"compare", folder / "whole", folder / "parts", "--json"}).json();
  EXPECT_EQ(json["differing"], (std::vector<std::string>{"microbatch", "lr"}));
  EXPECT_EQ(json["runs"][1]["fields"]["microbatch"], "16");
  EXPECT_EQ(thimble_says({"compare", folder / "none"}).code, 2);
}

TEST(Compare, WhatOnlyOneModelHasIsShownWhereItIsUnusual) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_digits(folder / "mlp").code, 0);
  const Words other = {"train", "wrn-10-1", "--steps",      "2",         "--batch", "8", "--norm",
                       "group", "--out",    folder / "wrn", "--threads", "1"};
  ASSERT_EQ(thimble_says(other).code, 0);
  const auto json = thimble_says({"compare", folder / "mlp", folder / "wrn", "--json"}).json();
  const std::vector<std::string> fields = json["differing"];
  EXPECT_EQ(std::ranges::count(fields, "model"), 1);
  EXPECT_EQ(std::ranges::count(fields, "norm"), 1);
  EXPECT_EQ(std::ranges::count(fields, "norm-epsilon"), 0);
}

TEST(TensorBoard, FilesAreWhereTheyWereAskedFor) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_digits(folder / "run", {"--tensorboard", folder / "tb"}).code, 0);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "tb")) {
    EXPECT_EQ(entry.path().filename().string().rfind("events.out.tfevents.", 0), 0u);
    EXPECT_GT(fs::file_size(entry.path()), 400u);
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(Progress, NamesBudgetArenaMicrobatchAndTier) {
  const TemporaryFolder folder;
  const Outcome run = train_digits(folder / "run", {"--microbatch", "16", "--memory", "2MiB"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find(" of 2.00 MiB  microbatch 16  equivalent"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace thimble
