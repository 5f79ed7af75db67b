// Whole trainings by simulated ranks, against one process with as many microbatches.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "../file_support.h"
#include "support/runs.h"
#include "support/sanitized.h"
#include "support/simulated_ranks.h"
#include "weights/gather_shards.h"

namespace thimble {
namespace {

constexpr Shard kShards[] = {Shard::none, Shard::state, Shard::gradients, Shard::weights};

RunSetup wrn() {
  return {.model = {.name = "wrn-10-1", .batch = 24, .image = {8, 8, 1}, .norm = Norm::group},
          .augment = true};
}
RunSetup mlp() {
  return {.model = {.name = "mlp:hidden=33", .batch = 24, .dropout = 0.2}, .optimizer = "adam"};
}

// Weights, statistics and state by name, whole.
using Kept = std::map<std::string, std::string>;
Kept kept_by(Program& program) {
  Kept kept;
  const Graph& graph = program.graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role) || value.role == Role::constant) {
      continue;
    }
    std::string bytes(static_cast<size_t>(whole_type(value).bytes().count), '\0');
    read_whole(program, make_id<ValueId>(v), 0, std::as_writable_bytes(std::span(bytes)));
    kept[value.name] = bytes;
  }
  return kept;
}

struct Trained {
  Kept kept;
  TrainResult result;
  Bytes arena;
};

Trained alone(RunSetup run, int64_t rows, RunOptions options = {.steps = 4}) {
  run.microbatch = rows;
  TrainingRun training(run, options);
  Trained trained = {.result = training.run()};
  trained.kept = kept_by(training.program());
  return trained;
}

std::vector<Trained> by_ranks(RunSetup run, RanksSpec ranks, RunOptions options = {.steps = 4}) {
  std::vector<Trained> all(static_cast<size_t>(ranks.count));
  run.ranks = ranks;
  SimulatedRanks(ranks.count).run([&](Communicator& comm) {
    RunSetup own = run;
    own.comm = &comm;
    TrainingRun training(own, options);
    Trained& trained = all[static_cast<size_t>(comm.rank())];
    trained.result = training.run();
    trained.kept = kept_by(training.program());
    trained.arena = training.planned().plan().arena;
  });
  return all;
}

void expect_same(const Trained& got, const Trained& expected) {
  ASSERT_EQ(got.kept.size(), expected.kept.size());
  for (const auto& [name, bytes] : expected.kept) {
    ASSERT_TRUE(got.kept.contains(name)) << name;
    EXPECT_TRUE(got.kept.at(name) == bytes) << name << " has other bits";
  }
  EXPECT_EQ(got.result.losses, expected.result.losses);
  EXPECT_EQ(got.result.weights_sha256, expected.result.weights_sha256);
}

TEST(Ranks, HaveTheBitsOfAsManyMicrobatches) {
  for (const RunSetup& run : {wrn(), mlp()}) {
    for (const int count : {2, 3}) {
      const Trained expected = alone(run, 24 / count);
      for (const Shard shard : kShards) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, {}", run.model.name, count, name_of(shard)));
        for (const Trained& rank : by_ranks(run, {count, shard})) {
          expect_same(rank, expected);
          EXPECT_EQ(rank.result.measured_arena, rank.arena);
          EXPECT_EQ(rank.result.train["accuracy"], expected.result.train["accuracy"]);
        }
      }
    }
  }
}

// Where gradients are summed at once, the order is that of one process, however many microbatches each
// rank has. Where they are summed when the step ends, every rank's own come first.
TEST(Ranks, OfSeveralMicrobatchesSumInTheSameOrder) {
  RunSetup run = wrn();
  const Trained expected = alone(run, 4);
  run.microbatch = 4;
  for (const Shard shard : {Shard::gradients, Shard::weights}) {
    SCOPED_TRACE(name_of(shard));
    for (const Trained& rank : by_ranks(run, {2, shard})) expect_same(rank, expected);
  }
  for (const Shard shard : {Shard::none, Shard::state}) {
    SCOPED_TRACE(name_of(shard));
    const std::vector<Trained> ranks = by_ranks(run, {2, shard});
    for (size_t i = 0; i < expected.result.losses.size(); ++i) {
      EXPECT_NEAR(ranks[0].result.losses[i], expected.result.losses[i], 1e-5);
    }
    EXPECT_EQ(ranks[0].kept, ranks[1].kept);
  }
}

// Synced statistics are those of the whole batch, as one process has them: the same sums, rounded
// otherwise. Statistics of each rank's rows are others by far.
TEST(Ranks, SyncedStatisticsAreThoseOfTheWholeBatch) {
  RunSetup run = wrn();
  run.model.norm = Norm::batch;
  const Trained expected = alone(run, 0);
  const auto furthest = [&](const Trained& rank) {
    double most = 0;
    for (size_t i = 0; i < expected.result.losses.size(); ++i) {
      most = std::max(most, std::abs(rank.result.losses[i] - expected.result.losses[i]));
    }
    return most;
  };
  for (const int count : {2, 3}) {
    run.model.norm = Norm::synced;
    for (const Shard shard : kShards) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", count, name_of(shard)));
      for (const Trained& rank : by_ranks(run, {count, shard})) {
        EXPECT_LT(furthest(rank), 1e-5);
        EXPECT_EQ(rank.result.measured_arena, rank.arena);
      }
    }
    run.model.norm = Norm::batch;
    EXPECT_GT(furthest(by_ranks(run, {count, Shard::none})[0]), 1e-3);
  }
}

TEST(Ranks, KeepTheirShareOfTheState) {
  const auto bytes = [](const RunSetup& run, Role role) {
    Recipe recipe;
    recipe.model = run.model;
    recipe.optimizer = parse_optimizer("adam");
    recipe.ranks = run.ranks;
    const PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
    int64_t sum = 0;
    for (const Value& value : planned.graph().values) {
      if (!value.producer.valid() && value.role == role) sum += value.type.bytes().count;
    }
    return sum;
  };
  RunSetup run = wrn();
  Graph graph = build_model(run.model).graph;
  for (const int count : {2, 4, 8}) {
    int64_t part = 0;  // of every weight, in lines of 64 bytes
    for (const Value& value : graph.values) {
      const int64_t lines = (value.type.elements() + 15) / 16;
      if (value.role == Role::weight) part += (lines + count - 1) / count * 64;
    }
    for (const Shard shard : {Shard::state, Shard::gradients, Shard::weights}) {
      run.ranks = {count, shard};
      EXPECT_EQ(bytes(run, Role::optimizer_state), 2 * part) << count << " " << name_of(shard);
    }
    EXPECT_EQ(bytes(run, Role::weight), part) << count;
  }
}

TEST(Ranks, TrainInTheArenaPlannedAtAnyBudget) {
  for (const Shard shard : kShards) {
    if (kSanitized && shard != Shard::weights) continue;
    RunSetup run = wrn();
    run.ranks = {2, shard};
    const Trained free = by_ranks(run, run.ranks, {.steps = 2})[0];
    run.planner = "optimal";
    run.memory = kLeastMemory;
    const Trained least = by_ranks(run, run.ranks, {.steps = 2})[0];
    EXPECT_LT(least.arena, free.arena);
    const Bytes middle((least.arena.count + free.arena.count) / 2);
    for (const Bytes budget :
         kSanitized ? std::vector{middle} : std::vector{least.arena, middle, free.arena}) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", name_of(shard), budget.count));
      run.memory = budget;
      for (const Trained& rank : by_ranks(run, run.ranks, {.steps = 2})) {
        EXPECT_LE(rank.arena, budget);
        EXPECT_EQ(rank.result.measured_arena, rank.arena);
        EXPECT_EQ(rank.kept, free.kept) << "a budget changes no bit";
      }
    }
  }
}

TEST(Ranks, GoOnFromWhatOthersSaved) {
  const RunSetup run = wrn();
  const Trained expected = alone(run, 8, {.steps = 6});
  for (const Shard shard : kShards) {
    SCOPED_TRACE(name_of(shard));
    const TemporaryFolder folder;
    const std::string out = folder / "run";
    by_ranks(run, {3, shard}, {.steps = 3, .out = out});
    // By one process, and by three ranks that keep other parts.
    RunSetup after = run;
    after.microbatch = 8;
    TrainingRun single(after, {.steps = 6, .out = out, .resume = true});
    const TrainResult result = single.run();
    EXPECT_EQ(result.weights_sha256, expected.result.weights_sha256);
    EXPECT_EQ(kept_by(single.program()), expected.kept);
  }
}

TEST(Ranks, GoOnWhereOneProcessStopped) {
  const RunSetup run = wrn();
  const Trained expected = alone(run, 8, {.steps = 6});
  for (const Shard shard : {Shard::state, Shard::weights}) {
    const TemporaryFolder folder;
    const std::string out = folder / "run";
    alone(run, 8, {.steps = 3, .out = out});
    for (const Trained& rank :
         by_ranks(run, {3, shard}, {.steps = 6, .out = out, .resume = true})) {
      EXPECT_EQ(rank.result.resumed_at, 3);
      EXPECT_EQ(rank.kept, expected.kept) << name_of(shard);
    }
  }
}

}  // namespace
}  // namespace thimble
