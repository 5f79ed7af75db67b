#include "base/host/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/io/file.h"
#include "file_support.h"

namespace thimble {
namespace {

// A machine of 1000 KiB of which 600 are free, with files as /proc and /sys have them.
class Machine {
 public:
  Machine() { put("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n"); }
  void put(const std::string& path, const std::string& text) {
    const std::string whole = root() + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    write_file(whole, text);
  }
  std::string root() const { return folder_ / "root"; }

 private:
  TemporaryFolder folder_;
};

TEST(AvailableMemory, IsWhatIsFreeWithoutALimit) {
  Machine machine;
  const auto found = available_memory(machine.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, Bytes(600 * 1024));
  EXPECT_EQ(found->from, "free memory of the machine");
  EXPECT_FALSE(in_container_without_limit(machine.root()));
}

TEST(AvailableMemory, IsWhatTheTightestGroupLeaves) {
  Machine machine;
  machine.put("/proc/self/cgroup", "0::/a/b\n");
  machine.put("/sys/fs/cgroup/a/memory.max", "300000\n");
  machine.put("/sys/fs/cgroup/a/memory.current", "120000\n");
  machine.put("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 20000\n");
  machine.put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  machine.put("/.dockerenv", "");
  const auto found = available_memory(machine.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, Bytes(200000));  // files that go when memory is short do not count
  EXPECT_EQ(found->from, "its control group's limit");
  EXPECT_FALSE(in_container_without_limit(machine.root()));
}

TEST(AvailableMemory, KnowsTheFirstVersionOfGroups) {
  Machine machine;
  machine.put("/proc/self/cgroup", "9:cpu:/\n4:memory:/mine\n");
  machine.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.put("/sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "200000\n");
  machine.put("/sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "50000\n");
  EXPECT_EQ(available_memory(machine.root())->bytes, Bytes(150000));
  machine.put("/sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(available_memory(machine.root())->bytes, Bytes(600 * 1024));
  machine.put("/.dockerenv", "");
  EXPECT_TRUE(in_container_without_limit(machine.root()));
}

TEST(AvailableMemory, IsNotKnownWhereNobodySays) {
  const TemporaryFolder empty;
  EXPECT_FALSE(available_memory(empty / "none"));
}

}  // namespace
}  // namespace thimble
