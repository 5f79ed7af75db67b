#include "runs/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

TEST(RunFolder, IsHeldAgainstOthersAndNamesWhoHasIt) {
  const TemporaryFolder folder;
  std::optional<RunFolder> first(std::in_place, folder / "run");
  for (int i = 0; i < 3; ++i) {  // and goes on to be, whoever was refused
    EXPECT_TRUE(throws_saying<UserError>([&] { RunFolder(folder / "run"); }, "is in use by process",
                                         std::to_string(getpid()), "--out"));
  }
  spill(folder / "run/result", "kept");
  first.reset();
  EXPECT_EQ(slurp(folder / "run/result"), "kept");
  EXPECT_FALSE(fs::exists(folder / "run/.lock"));
  EXPECT_NO_THROW(RunFolder(folder / "run"));
}

TEST(RunFolder, AKilledHolderLeavesNothingToCleanUp) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const RunFolder held(folder / "run");
    ::kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::exists(folder / "run/.lock"));
  EXPECT_NO_THROW(RunFolder(folder / "run"));
}

TEST(RunFolder, RemovesWhatItMadeAndNobodyUsed) {
  const TemporaryFolder folder;
  { const RunFolder held(folder / "a/b/run"); }
  EXPECT_EQ(folder.entries(), 0);
  fs::create_directories(folder / "a");
  { const RunFolder held(folder / "a/run"); }
  EXPECT_TRUE(fs::is_directory(folder / "a"));
  EXPECT_TRUE(fs::is_empty(folder / "a"));
}

TEST(RunFolder, UniqueOnesDiffer) {
  const TemporaryFolder folder;
  const RunFolder a = RunFolder::unique(folder / "runs/mlp");
  const RunFolder b = RunFolder::unique(folder / "runs/mlp");
  const RunFolder c = RunFolder::unique(folder / "runs/mlp");
  EXPECT_EQ(a.path(), folder / "runs/mlp");
  EXPECT_EQ(b.path(), folder / "runs/mlp-2");
  EXPECT_EQ(c.path(), folder / "runs/mlp-3");
}

TEST(RunFolder, RefusesALatestThatIsNoLink) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run/latest");
  EXPECT_TRUE(throws_saying<UserError>([&] { RunFolder(folder / "run"); }, folder / "run/latest",
                                       "is no link", "ln -s"));
  EXPECT_FALSE(fs::exists(folder / "run/.lock"));
}

}  // namespace
}  // namespace thimble
