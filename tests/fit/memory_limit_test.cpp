#include "fit/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "file_support.h"

namespace thimble {
namespace {

std::string refusal(const Backend& backend, const std::string& root) {
  try {
    memory_limit(backend, root);
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
  const MemoryLimit limit = memory_limit(*backend, folder / "");
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

}  // namespace
}  // namespace thimble
