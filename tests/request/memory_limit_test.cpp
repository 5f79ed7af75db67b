#include "request/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/io/file.h"
#include "file_support.h"

namespace thimble {
namespace {

Recipe small_net() {
  Recipe recipe;
  recipe.model = {.name = "mlp", .batch = 4};
  return recipe;
}

std::string refusal(const Backend& backend, const std::string& root) {
  try {
    memory_limit(backend, small_net(), root);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryLimit, KeepsAMarginBack) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "proc");
  write_file(folder / "proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n");
  const auto backend = make_backend("cpu", 1);
  const MemoryLimit limit = memory_limit(*backend, small_net(), folder / "");
  EXPECT_EQ(limit.available, Bytes(int64_t{2} << 30));
  EXPECT_EQ(limit.margin, Bytes((int64_t{64} << 20) + (int64_t{2} << 26)));
  EXPECT_EQ(limit.budget, limit.available - limit.margin);

  write_file(folder / "proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 60000 kB\n");
  EXPECT_NE(refusal(*backend, folder / "").find("--memory BYTES"), std::string::npos);
  write_file(folder / "proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n");
  write_file(folder / ".dockerenv", "");
  EXPECT_NE(refusal(*backend, folder / "").find("container has no memory limit"),
            std::string::npos);
  EXPECT_NE(refusal(*make_backend("null", 1), folder / "").find("null"), std::string::npos);
}

// Records of every length have a graph and a plan of their own, which the process keeps.
TEST(MemoryLimit, KeepsMoreBackForMoreLengths) {
  Recipe recipe;
  recipe.model = {.name = "dynamicconv:width=16,heads=2"};
  recipe.tokens = 100;
  recipe.lengths = {10};
  EXPECT_EQ(beside_arena(recipe), kBesideArena);
  for (int64_t length = 11; length < 23; ++length) recipe.lengths.push_back(length);
  // 13 lengths of some 500 nodes: 73 MB were measured where a budget chose, 52 MB where none did.
  EXPECT_GT(beside_arena(recipe), Bytes(90'000'000));
  EXPECT_LT(beside_arena(recipe), Bytes(150'000'000));
}

}  // namespace
}  // namespace thimble
