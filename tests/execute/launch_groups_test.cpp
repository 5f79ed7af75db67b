#include "execute/launch_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/joinable_kernel.h"

namespace thimble {
namespace {

// Notes how many calls it got.
class Plain final : public Kernel {
 public:
  void run(const KernelArgs&) override { ++runs; }
  int runs = 0;
};

class Joining final : public JoinableKernel {
 public:
  explicit Joining(int kind, size_t most = 3) : kind_(kind), most_(most) {}
  void run(const KernelArgs&) override { joined.push_back(1); }
  bool joins(const JoinableKernel& other) const override {
    const auto* const same = dynamic_cast<const Joining*>(&other);
    return same != nullptr && same->kind_ == kind_;
  }
  size_t most_joined() const override { return most_; }
  void run_all(std::span<const KernelArgs* const> calls) override {
    joined.push_back(calls.size());
  }
  std::vector<size_t> joined;  // calls of each launch

 private:
  const int kind_;
  const size_t most_;
};

const KernelArgs kArgs;

LaunchGroup step(Kernel& kernel, ByteRange reads, ByteRange writes) {
  return {&kernel, {&kArgs}, {{reads}, {writes}, 1}};
}

std::vector<Kernel*> kernels(const std::vector<LaunchGroup>& launches) {
  std::vector<Kernel*> result;
  for (const LaunchGroup& launch : launches) result.push_back(launch.kernel);
  return result;
}

TEST(LaunchGroups, StepsOfAKindWaitForEachOther) {
  Plain work;
  Joining update(1);
  const auto launches = group_launches({step(update, {0, 4}, {0, 4}), step(work, {100, 104}, {104, 108}),
                                        step(update, {4, 8}, {4, 8}), step(work, {104, 108}, {108, 112})});
  ASSERT_EQ(kernels(launches), (std::vector<Kernel*>{&work, &work, &update}));
  for (const LaunchGroup& launch : launches) launch.run();
  EXPECT_EQ(work.runs, 2);
  EXPECT_EQ(update.joined, std::vector<size_t>{2});
  EXPECT_EQ(launches.back().use.writes.size(), 2u);
  EXPECT_EQ(launches.back().use.seconds, 2);
}

TEST(LaunchGroups, NoStepPassesOneThatTouchesItsBytes) {
  Plain work;
  Joining update(1);
  // The work writes what the update reads: the update must have run.
  auto launches = group_launches({step(update, {0, 4}, {4, 8}), step(work, {100, 104}, {0, 4}),
                                  step(update, {8, 12}, {12, 16})});
  EXPECT_EQ(kernels(launches), (std::vector<Kernel*>{&update, &work, &update}));
  // The work reads what the update writes.
  launches = group_launches({step(update, {0, 4}, {4, 8}), step(work, {6, 7}, {100, 104})});
  EXPECT_EQ(kernels(launches), (std::vector<Kernel*>{&update, &work}));
  // Two of a kind of which the second reads the first's result go one after the other.
  launches = group_launches({step(update, {0, 4}, {4, 8}), step(update, {4, 8}, {12, 16})});
  EXPECT_EQ(kernels(launches), (std::vector<Kernel*>{&update, &update}));
}

TEST(LaunchGroups, OneLaunchHoldsSoManyAndOneKind) {
  Joining first(1), second(2);
  std::vector<LaunchGroup> steps;
  for (int64_t i = 0; i < 4; ++i) {
    steps.push_back(step(first, {8 * i, 8 * i + 4}, {8 * i, 8 * i + 4}));
    steps.push_back(step(second, {8 * i + 4, 8 * i + 8}, {8 * i + 4, 8 * i + 8}));
  }
  for (const LaunchGroup& launch : group_launches(std::move(steps))) launch.run();
  EXPECT_EQ(first.joined, (std::vector<size_t>{3, 1}));
  EXPECT_EQ(second.joined, (std::vector<size_t>{3, 1}));
}

// However many kinds there are, every step is launched once.
TEST(LaunchGroups, LosesNothing) {
  std::vector<std::unique_ptr<Joining>> kinds;
  for (int i = 0; i < 20; ++i) kinds.push_back(std::make_unique<Joining>(i));
  std::vector<LaunchGroup> steps;
  for (int64_t i = 0; i < 200; ++i) {
    steps.push_back(step(*kinds[static_cast<size_t>(i * 7 % 20)], {i % 11, i % 11 + 2}, {i % 5 + 20, i % 5 + 21}));
  }
  for (const LaunchGroup& launch : group_launches(std::move(steps))) launch.run();
  size_t calls = 0;
  for (const auto& kind : kinds) {
    for (const size_t count : kind->joined) calls += count;
  }
  EXPECT_EQ(calls, 200u);
}

}  // namespace
}  // namespace thimble
