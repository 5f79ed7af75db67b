// The record that a run leaves, and how it is read.
#include "runs/run_record.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

std::vector<int64_t> steps_in(const std::string& text) {
  std::vector<int64_t> steps;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    steps.push_back(nlohmann::json::parse(text.substr(at, end - at))["step"].get<int64_t>());
  }
  return steps;
}

void write_steps(const std::string& folder, int64_t resumed_at, int64_t last) {
  MetricsFile metrics(folder, resumed_at);
  for (int64_t step = resumed_at + 1; step <= last; ++step) {
    metrics.add({{"step", step}, {"loss", 1.0 / static_cast<double>(step)}, {"seconds", 0.5}});
  }
}

TEST(MetricsFile, GoesOnWithoutDoubledLines) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  write_steps(folder.path(), 0, 5);
  EXPECT_EQ(steps_in(slurp(path)), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  // Killed after step 5, with a line half written, and gone on with from a checkpoint at step 3.
  spill(path, slurp(path) + "{\"step\": 6, \"lo");
  write_steps(folder.path(), 3, 7);
  EXPECT_EQ(steps_in(slurp(path)), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(MetricsFile(folder.path(), 4).seconds_before(), 0.5);
  // A run from the start leaves nothing of the one before.
  write_steps(folder.path(), 0, 2);
  EXPECT_EQ(steps_in(slurp(path)), (std::vector<int64_t>{1, 2}));
}

TEST(MetricsFile, LinesAreThereWhenFlushed) {
  const TemporaryFolder folder;
  MetricsFile metrics(folder.path(), 0);
  metrics.add({{"step", 1}});
  EXPECT_EQ(slurp(folder / "metrics.jsonl"), "");
  metrics.flush();
  EXPECT_EQ(slurp(folder / "metrics.jsonl"), "{\"step\":1}\n");
}

// A file that a crash of the machine spoilt does not keep a run from going on.
TEST(MetricsFile, DamagedLinesAreDropped) {
  const TemporaryFolder folder;
  for (const char* bad : {"nonsense", "{\"loss\": 1}", "[1]", "{\"step\": \"a\"}", ""}) {
    spill(folder / "metrics.jsonl", std::string("{\"step\": 1}\n") + bad + "\n{\"step\": 2}\n");
    { const MetricsFile metrics(folder.path(), 2); }
    EXPECT_EQ(steps_in(slurp(folder / "metrics.jsonl")), (std::vector<int64_t>{1, 2})) << bad;
  }
}

TEST(MetricsFile, LongRunsHaveTenThousandLinesAtMost) {
  EXPECT_EQ(steps_per_line(1), 1);
  EXPECT_EQ(steps_per_line(10'000), 1);
  EXPECT_EQ(steps_per_line(10'001), 2);
  EXPECT_EQ(steps_per_line(1'000'000), 100);
}

TEST(RunRecord, WhatIsNoRunIsRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_saying<UserError>([&] { read_run(folder / "none"); }, "no folder of a run"));
  EXPECT_TRUE(throws_saying<UserError>([&] { read_run(folder.path()); }, "plan.json"));
}

}  // namespace
}  // namespace thimble
