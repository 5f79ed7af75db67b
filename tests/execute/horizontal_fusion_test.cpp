#include "execute/horizontal_fusion.h"

#include <gtest/gtest.h>

#include <random>

#include "backend/batchable_kernel.h"

namespace thimble {
namespace {

// Notes how many calls it got.
class Plain final : public Kernel {
 public:
  void run(const KernelArgs&) override { ++runs; }
  int runs = 0;
};

class Joining final : public BatchableKernel {
 public:
  explicit Joining(int kind, size_t most = 3) : kind_(kind), most_(most) {}
  void run(const KernelArgs&) override { joined.push_back(1); }
  bool joins(const BatchableKernel& other) const override {
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
  const auto launches =
      group_launches({step(update, {0, 4}, {0, 4}), step(work, {100, 104}, {104, 108}),
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

// However many kinds there are: every step is launched once, those that touch each other's bytes in
// their order, and none of them together.
TEST(LaunchGroups, KeepsTheOrderOfWhatTouches) {
  constexpr size_t kSteps = 300;
  std::mt19937 random(5);
  const auto any = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most - 1)(random);
  };
  std::vector<std::unique_ptr<Joining>> kinds;
  for (int i = 0; i < 20; ++i) kinds.push_back(std::make_unique<Joining>(i));
  Plain plain;
  std::vector<KernelArgs> args(kSteps);
  std::vector<LaunchGroup> steps;
  for (size_t i = 0; i < kSteps; ++i) {
    const int64_t read = any(400), written = any(400);
    Kernel& kernel =
        any(4) == 0 ? static_cast<Kernel&>(plain) : *kinds[static_cast<size_t>(any(20))];
    steps.push_back({&kernel, {&args[i]}, {{{read, read + 2}}, {{written, written + 2}}, 1}});
  }
  const auto launches = group_launches(steps);
  std::vector<int> launch_of(kSteps, -1);
  for (size_t l = 0; l < launches.size(); ++l) {
    for (const KernelArgs* const call : launches[l].calls) {
      int& launch = launch_of[static_cast<size_t>(call - args.data())];
      EXPECT_EQ(launch, -1) << "launched twice";
      launch = static_cast<int>(l);
    }
  }
  size_t touching = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    ASSERT_GE(launch_of[i], 0) << "not launched";
    for (size_t j = i + 1; j < kSteps; ++j) {
      if (!conflict(steps[i].use, steps[j].use)) continue;
      ++touching;
      EXPECT_LT(launch_of[i], launch_of[j]);
    }
  }
  EXPECT_GT(touching, 100u);
  EXPECT_LT(launches.size(), kSteps);
}

}  // namespace
}  // namespace thimble
