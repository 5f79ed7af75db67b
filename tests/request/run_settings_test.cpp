// Settings of one run, typed or in a recipe file, and where the run is kept.
#include <gtest/gtest.h>

#include "base/io/file.h"
#include "file_support.h"
#include "request/resume.h"

namespace thimble {
namespace {

std::string refusal(const RunSettings& typed, const Settings& in_file) {
  try {
    run_settings(typed, in_file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(RunSettings, AFileSaysWhatWasNotTyped) {
  const RunSettings both = run_settings(
      {.out = "typed", .times = true},
      {{"out", "file"}, {"weights", "w.safetensors"}, {"losses", true}, {"times", false}});
  EXPECT_EQ(both.out, "typed");
  EXPECT_EQ(both.weights, "w.safetensors");
  EXPECT_TRUE(both.losses);
  EXPECT_TRUE(both.times);
  EXPECT_EQ(run_settings({.out = "run"}, {{"resume", true}}).resume, "latest");
  EXPECT_EQ(run_settings({.out = "run"}, {{"resume", "auto"}}).resume, "auto");
  EXPECT_EQ(run_settings({}, {{"resume", false}}).resume, "");
}

TEST(RunSettings, WhatIsNoValueIsRefused) {
  EXPECT_EQ(refusal({}, {{"times", "yes"}}), "--times is true or false, not \"yes\"");
  EXPECT_EQ(refusal({}, {{"out", 3}}), "--out wants text, not 3");
  EXPECT_EQ(refusal({}, {{"tensorboard", true}}), "--tensorboard wants text, not true");
  EXPECT_EQ(refusal({.out = "run"}, {{"resume", "last"}}),
            "--resume is latest or auto, not 'last'");
  EXPECT_EQ(refusal({}, {{"resume", true}}),
            "--resume continues a run that has a folder; say which with --out");
}

// A run begins in its folder, and with --resume auto as well where nothing is there yet.
TEST(RunPlace, BeginsWhereThereIsNoCheckpoint) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  for (const char* resume : {"", "auto"}) {
    const RunPlace place = take_place({.out = out, .resume = resume}, Recipe(), nullptr);
    EXPECT_EQ(place.out, out);
    EXPECT_FALSE(place.resume);
    EXPECT_THROW(take_place({.out = out}, Recipe(), nullptr), UserError) << "it is held";
  }
}

}  // namespace
}  // namespace thimble
