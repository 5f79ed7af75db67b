#include "base/host/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

#include "../file_support.h"

namespace thimble {
namespace {

class Quota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = (folder_ / "") + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  double quota() const { return processor_quota(folder_ / ""); }

  TemporaryFolder folder_;
};

TEST_F(Quota, IsNoneWhereTheSystemDoesNotTell) { EXPECT_EQ(quota(), 0); }

TEST_F(Quota, OfVersionTwoIsTheLeastOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/job/task\n");
  write("sys/fs/cgroup/job/task/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Quota, OfVersionOneIsInTwoFiles) {
  write("proc/self/cgroup", "5:memory:/\n2:cpu,cpuacct:/box\n1:cpuset:/\n0::/\n");
  write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(quota(), 2);
}

TEST(UsableCores, AreThoseThatTheProcessIsBoundTo) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace thimble
