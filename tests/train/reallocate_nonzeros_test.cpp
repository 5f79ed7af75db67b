// Nonzeros that move: on pools filled by hand, against masks and values as they were before.
#include "sparse/reallocate_nonzeros.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/number/bits.h"
#include "sparse/magnitude_threshold.h"
#include "sparse/proportional_allocation.h"
#include "support/counting_heap.h"
#include "support/lost_device.h"
#include "support/runs.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

RunSetup sparse_run(double density, SparseMethod method = SparseMethod::dynamic) {
  RunSetup run = {.model = {.name = "wrn-10-1", .batch = 8, .image = {8, 8, 1}}};
  run.sparsity = {.density = density, .method = method};
  return run;
}

// One sparse weight in full: what is there, and its numbers where something is.
struct Dense {
  std::vector<bool> there;
  std::vector<float> value, momentum;

  int64_t nonzeros() const { return std::count(there.begin(), there.end(), true); }
};

class Pools {
 public:
  explicit Pools(const RunSetup& run) : run_(run, {.steps = 1, .evaluate = false}) {
    const Graph& graph = program().graph();
    sparse_ = find_sparse_weights(graph);
    momentum_ = graph.find("update.sparse.values.momentum");
  }

  Program& program() { return run_.program(); }
  std::span<float> values() { return program().view<float>(sparse_.values); }
  std::span<float> momentum() { return program().view<float>(momentum_); }
  double& threshold() { return program().view<double>(sparse_.threshold)[0]; }

  void randomize(uint32_t seed, float deviation) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, deviation);
    for (float& value : values()) value = normal(random);
    for (float& value : momentum()) value = 1 + normal(random);
  }

  // Reads every weight through its mask; checks that the pool is cut up without gap or overlap.
  std::vector<Dense> read() {
    std::vector<Dense> all;
    int64_t next = 0;
    for (const SparseWeight& weight : sparse_.weights) {
      EXPECT_EQ(program().view<int64_t>(weight.first)[0], next);
      const int64_t elements = program().graph()[weight.dense].type.elements();
      const uint8_t* mask = program().view<uint8_t>(weight.mask).data();
      Dense dense = {std::vector<bool>(static_cast<size_t>(elements)),
                     std::vector<float>(static_cast<size_t>(elements)),
                     std::vector<float>(static_cast<size_t>(elements))};
      for (int64_t i = 0; i < elements; ++i) {
        if (!test_bit(mask, i)) continue;
        const auto at = static_cast<size_t>(i), from = static_cast<size_t>(next++);
        dense.there[at] = true;
        dense.value[at] = values()[from];
        dense.momentum[at] = momentum()[from];
      }
      all.push_back(std::move(dense));
    }
    EXPECT_EQ(next, std::ssize(values()));
    return all;
  }

 private:
  TrainingRun run_;
  SparseWeights sparse_;
  ValueId momentum_;
};

// The changes of each weight. Survivors keep their numbers. Grown ones start at zero, where nothing
// was before.
struct Change {
  std::vector<int64_t> pruned, grown, survivors, zeros_before;
};

Change check_change(const std::vector<Dense>& before, const std::vector<Dense>& after) {
  Change change;
  for (size_t w = 0; w < before.size(); ++w) {
    int64_t pruned = 0, grown = 0, survivors = 0;
    for (size_t i = 0; i < before[w].there.size(); ++i) {
      const bool was = before[w].there[i], is = after[w].there[i];
      pruned += was && !is;
      grown += !was && is;
      survivors += was && is;
      if (was && is) {
        EXPECT_EQ(after[w].value[i], before[w].value[i]);
        EXPECT_EQ(after[w].momentum[i], before[w].momentum[i]);
      } else if (is) {
        EXPECT_EQ(after[w].value[i], 0);
        EXPECT_EQ(after[w].momentum[i], 0);
      }
    }
    EXPECT_GE(survivors, 1);
    change.pruned.push_back(pruned);
    change.grown.push_back(grown);
    change.survivors.push_back(survivors);
    change.zeros_before.push_back(std::ssize(before[w].there) - before[w].nonzeros());
  }
  return change;
}

int64_t sum(const std::vector<int64_t>& list) {
  return std::accumulate(list.begin(), list.end(), int64_t{0});
}

TEST(Reallocation, PrunesBelowTheThresholdAndGrowsAsMany) {
  for (const double density : {0.1, 0.3, 0.5}) {
    const RunSetup run = sparse_run(density);
    Pools pools(run);
    Reallocator reallocator(pools.program(), run.sparsity, 3);
    for (uint32_t round = 1; round <= 25; ++round) {
      SCOPED_TRACE(fmt::format("density {}, round {}", density, round));
      pools.randomize(round, 0.01f);
      const std::vector<Dense> before = pools.read();
      const double threshold = pools.threshold();
      const Reallocation result = reallocator.run(round);
      const std::vector<Dense> after = pools.read();  // the count to the element, too
      const Change change = check_change(before, after);
      EXPECT_EQ(result.threshold, threshold);
      EXPECT_EQ(sum(change.pruned), result.moved);
      EXPECT_EQ(sum(change.grown), result.moved);
      EXPECT_EQ(result.below, result.moved);
      for (size_t w = 0; w < before.size(); ++w) {
        for (size_t i = 0; i < before[w].there.size(); ++i) {
          if (!before[w].there[i]) continue;
          const bool below = std::abs(static_cast<double>(before[w].value[i])) < threshold;
          ASSERT_EQ(after[w].there[i], !below);  // gone, and not grown again
        }
        // In proportion to what survived, to the unit.
        const double share = static_cast<double>(result.moved) *
                             static_cast<double>(change.survivors[w]) /
                             static_cast<double>(sum(change.survivors));
        EXPECT_LT(std::abs(static_cast<double>(change.grown[w]) - share), 1);
      }
    }
  }
}

TEST(Reallocation, AdaptsTheThresholdToItsTarget) {
  RunSetup run = sparse_run(0.3);
  run.sparsity.target = 0.1;
  // Values are spread evenly over [0, 1), so that the threshold is the share below it.
  const auto after = [&](double threshold) {
    Pools pools(run);
    Reallocator reallocator(pools.program(), run.sparsity, 3);
    for (size_t i = 0; i < pools.values().size(); ++i) {
      pools.values()[i] = static_cast<float>(i * 7919 % pools.values().size()) /
                          static_cast<float>(pools.values().size());
    }
    pools.threshold() = threshold;
    reallocator.run(1);
    return pools.threshold();
  };
  EXPECT_EQ(after(0.1), 0.1);
  EXPECT_EQ(after(0.109), 0.109);
  EXPECT_EQ(after(0.091), 0.091);
  EXPECT_EQ(after(0.112), 0.056);
  EXPECT_EQ(after(0.088), 0.176);
}

TEST(Reallocation, LeavesEveryWeightItsLargest) {
  const RunSetup run = sparse_run(0.1);
  Pools pools(run);
  Reallocator reallocator(pools.program(), run.sparsity, 3);
  pools.randomize(1, 0.01f);
  pools.threshold() = 100;
  const std::vector<Dense> before = pools.read();
  reallocator.run(1);
  const std::vector<Dense> after = pools.read();
  const Change change = check_change(before, after);
  for (size_t w = 0; w < before.size(); ++w) {
    EXPECT_EQ(change.survivors[w], 1);
    const auto larger = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const auto largest = std::max_element(before[w].value.begin(), before[w].value.end(), larger);
    EXPECT_TRUE(after[w].there[static_cast<size_t>(largest - before[w].value.begin())]);
  }
}

TEST(Reallocation, MovesNoMoreThanThereIsRoomFor) {
  for (const double density : {0.9, 1.0}) {
    const RunSetup run = sparse_run(density);
    Pools pools(run);
    Reallocator reallocator(pools.program(), run.sparsity, 3);
    pools.randomize(1, 0.01f);
    pools.threshold() = 100;
    const std::vector<Dense> before = pools.read();
    const Reallocation result = reallocator.run(1);
    const Change change = check_change(before, pools.read());
    EXPECT_EQ(result.moved, sum(change.zeros_before));
    EXPECT_EQ(change.grown, change.zeros_before);  // every place that was free
    EXPECT_GT(result.below, result.moved);
  }
}

TEST(Reallocation, ByMagnitudeEveryWeightKeepsItsCount) {
  RunSetup run = sparse_run(0.3, SparseMethod::magnitude);
  run.sparsity.target = 0.2;
  Pools pools(run);
  Reallocator reallocator(pools.program(), run.sparsity, 3);
  for (uint32_t round = 1; round <= 5; ++round) {
    pools.randomize(round, 0.01f);
    const std::vector<Dense> before = pools.read();
    reallocator.run(round);
    const std::vector<Dense> after = pools.read();
    const Change change = check_change(before, after);
    EXPECT_EQ(change.pruned, change.grown);
    for (size_t w = 0; w < before.size(); ++w) {
      EXPECT_EQ(change.pruned[w], std::llround(0.2 * static_cast<double>(before[w].nonzeros())));
      float largest_gone = 0, smallest_left = 1e9f;
      for (size_t i = 0; i < before[w].there.size(); ++i) {
        if (!before[w].there[i]) continue;
        const float size = std::abs(before[w].value[i]);
        if (after[w].there[i]) smallest_left = std::min(smallest_left, size);
        if (!after[w].there[i]) largest_gone = std::max(largest_gone, size);
      }
      EXPECT_LE(largest_gone, smallest_left);
    }
  }
}

TEST(Reallocation, GrowsElsewhereWithAnotherSeedOrStep) {
  const RunSetup run = sparse_run(0.3);
  const auto grown = [&](uint64_t seed, int64_t step) {
    Pools pools(run);
    pools.randomize(1, 0.01f);
    Reallocator(pools.program(), run.sparsity, seed).run(step);
    return pools.read()[0].there;
  };
  EXPECT_EQ(grown(3, 1), grown(3, 1));
  EXPECT_NE(grown(3, 1), grown(4, 1));
  EXPECT_NE(grown(3, 1), grown(3, 2));
}

TEST(Reallocation, AllocatesNothing) {
  if (!kHeapIsCounted) GTEST_SKIP() << "sanitizers have a heap of their own";
  for (const SparseMethod method : {SparseMethod::dynamic, SparseMethod::magnitude}) {
    const RunSetup run = sparse_run(0.3, method);
    Pools pools(run);
    Reallocator reallocator(pools.program(), run.sparsity, 3);
    EXPECT_EQ(allocations_in([&] { reallocator.run(1); }), 0);
  }
}

TEST(Reallocation, FollowsItsSchedule) {
  const ReallocationSchedule usual = reallocation_schedule(0, 500, 100'000);  // 200 epochs
  const auto count = [](const ReallocationSchedule& schedule, int64_t from, int64_t to) {
    int64_t due = 0;
    for (int64_t step = from + 1; step <= to; ++step) due += schedule.due(step);
    return due;
  };
  EXPECT_FALSE(usual.due(0));
  EXPECT_TRUE(usual.due(100));
  EXPECT_FALSE(usual.due(150));
  EXPECT_EQ(count(usual, 0, 12'499), 12'499 / 100);
  EXPECT_FALSE(usual.due(12'700));
  EXPECT_TRUE(usual.due(12'800));
  EXPECT_TRUE(usual.due(40'400));
  EXPECT_FALSE(usual.due(40'600));
  EXPECT_EQ(count(usual, 70'000, 95'000), 95'000 / 800 - 70'000 / 800);
  EXPECT_EQ(count(usual, 95'000, 100'000), 0);  // from epoch 190 on
  EXPECT_EQ(count(reallocation_schedule(7, 500, 100), 0, 100), 95 / 7);
}

TEST(Apportion, GivesWholeSharesThenTheRestAtRandom) {
  const std::vector<int64_t> shares = {1000, 10, 1, 500, 0, 77}, room(6, 1 << 20);
  std::vector<int64_t> given(6);
  for (int64_t total = 0; total < 3000; total += 37) {
    allocate_in_proportion(total, shares, room, {1, 2}, total, given);
    EXPECT_EQ(sum(given), total);
    for (size_t i = 0; i < given.size(); ++i) {
      const double exact = static_cast<double>(total * shares[i]) / 1588;
      EXPECT_LT(std::abs(static_cast<double>(given[i]) - exact), 1 + 1e-9);
    }
  }
}

TEST(Apportion, WhatHasNoRoomGoesToTheOthers) {
  const std::vector<int64_t> shares = {1000, 10, 1, 0}, room = {5, 7, 100, 9};
  std::vector<int64_t> given(4);
  for (int64_t total = 0; total <= 121; ++total) {
    allocate_in_proportion(total, shares, room, {1, 2}, total, given);
    EXPECT_EQ(sum(given), total);
    for (size_t i = 0; i < given.size(); ++i) EXPECT_LE(given[i], room[i]);
  }
}

TEST(MagnitudeThreshold, TakesWhatSortingWould) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> numbers(1 + random() % 300);
    for (float& number : numbers) {  // many that are equal, some zeros
      number = std::ldexp(static_cast<float>(random() % 16), static_cast<int>(random() % 40) - 30);
      if (random() % 2 == 0) number = -number;
    }
    const auto wanted = static_cast<int64_t>(random() % (numbers.size() + 1));
    MagnitudeThreshold smallest(wanted, std::ssize(numbers),
                                [&](int64_t i) { return numbers[static_cast<size_t>(i)]; });
    std::vector<float> taken, sorted;
    for (const float number : numbers) {
      if (wanted > 0 && smallest.takes(number)) taken.push_back(std::abs(number));
      sorted.push_back(std::abs(number));
    }
    std::sort(taken.begin(), taken.end());
    std::sort(sorted.begin(), sorted.end());
    sorted.resize(static_cast<size_t>(wanted));
    EXPECT_EQ(taken, sorted);
  }
}

// A borrowed mapping is dropped at once, not when the reallocator goes: that must not fail again.
TEST(Reallocate, ALostDeviceGetsNothingBack) {
  const RunSetup setup = sparse_run(0.4);
  TrainingRun run(setup, {.steps = 1, .evaluate = false});
  LostDevice device(run.planned().backend(), true);
  const auto arena = device.allocate(run.planned().plan().arena);
  Program program(run.program().graph(), run.planned().plan(), device, *arena);
  initialize(program, 5);
  for (const int copies : {0, 3, 1000}) {
    Reallocator reallocator(program, setup.sparsity, 5);
    device.lose_after(copies);
    int64_t step = 0;
    EXPECT_THROW(while (true) reallocator.run(++step), DeviceError);
  }
}

}  // namespace
}  // namespace thimble
