// Plans of several ranks on the card, by one process that stands for all of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/self.h"
#include "support/runs.h"

namespace thimble {
namespace {

RunSetup setup(Shard shard) {
  RunSetup run = wrn_run();
  run.model.norm = Norm::group;
  run.device = "cuda";
  run.ranks = {2, shard};
  return run;
}

struct Trained {
  std::string over;  // what joined the ranks
  std::vector<double> losses;
  std::string kept;  // weights and state
  Bytes planned, measured;
};

// Every phase of a step runs plainly once and is recorded then: all but the first step are replayed.
Trained train(RunSetup run, const char* nccl) {
  ::setenv("THIMBLE_NCCL", nccl, 1);
  Self all(run.ranks.count);
  run.comm = &all;
  TrainingRun training(run, {.steps = 5, .evaluate = false});
  ::unsetenv("THIMBLE_NCCL");
  const TrainResult result = training.run();
  return {.over = result.ranks_over,
          .losses = result.losses,
          .kept = persistent_bytes(training.program()),
          .planned = training.planned().plan().arena,
          .measured = result.measured_arena};
}

// NCCL's messages from this process to itself, within the captured step, give what copies give.
TEST(CudaRanks, RecordedWithNcclGiveTheBitsOfCopies) {
  for (const Shard shard : {Shard::none, Shard::state, Shard::gradients, Shard::weights}) {
    for (const int64_t microbatch : {8, 4}) {
      SCOPED_TRACE(fmt::format("{}, microbatches of {}", name_of(shard), microbatch));
      RunSetup run = setup(shard);
      run.microbatch = microbatch;
      const Trained sent = train(run, "on");
      if (sent.over != "nccl") GTEST_SKIP() << "NCCL is not here: libnccl.so.2";
      const Trained copied = train(run, "off");
      EXPECT_EQ(copied.over, "self");
      EXPECT_EQ(sent.losses, copied.losses);
      EXPECT_TRUE(sent.kept == copied.kept) << "weights or state have other bits";
      EXPECT_EQ(sent.measured, sent.planned);
    }
  }
}

}  // namespace
}  // namespace thimble
