// Machines that give less than a run asks for: fewer threads, older processors.
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

class Machines : public testing::Test {
 protected:
  Outcome train(const Words& words, const Words& environment) {
    const std::string out = folder_ / std::to_string(runs_++);
    return thimble_says(Words{"train", "--json", "--steps", "5", "--out", out} + words,
                        {.environment = environment});
  }
  std::string weights(const Words& words, const Words& environment = {}) {
    const Outcome outcome = train(words, environment);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.json()["weights_sha256"].get<std::string>() : "";
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(Machines, WhatTheEnvironmentSaysOfTeamsChangesNoBit) {
  for (const Words& net : {Words{"mlp"}, Words{"wrn-10-1", "--batch", "8"}}) {
    SCOPED_TRACE(net[0]);
    const Words words = net + Words{"--threads", "2"};
    const std::string expected = weights(words);
    for (const char* setting : {"OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_NESTED=true",
                                "OMP_NUM_THREADS=1", "OMP_THREAD_LIMIT=2", "GOMP_SPINCOUNT=0"}) {
      EXPECT_EQ(weights(words, {setting}), expected) << setting;
    }
  }
}

TEST_F(Machines, ThreadsThatCannotBeHadAreRefused) {
  expect_mistake(train({"mlp", "--threads", "2"}, {"OMP_THREAD_LIMIT=1"}),
                 "2 threads cannot be had", "OMP_THREAD_LIMIT allows 1", "--threads 1");
}

TEST_F(Machines, TheDefaultIsLoweredAndSaid) {
  const Outcome lowered = train({"mlp"}, {"OMP_NUM_THREADS=2", "OMP_THREAD_LIMIT=1"});
  EXPECT_EQ(lowered.code, 0) << lowered.err;
  EXPECT_NE(lowered.err.find("on 1 of 2 threads, since OMP_THREAD_LIMIT allows 1"),
            std::string::npos)
      << lowered.err;
  EXPECT_EQ(lowered.json()["weights_sha256"], weights({"mlp", "--threads", "1"}));
}

#ifndef __SANITIZE_ADDRESS__  // which maps terabytes of its own
TEST_F(Machines, ThreadsThatTheSystemDoesNotGiveAreRefused) {
  // Room for a hundred stacks or so; more than that many threads per core are refused anyway.
  const Outcome outcome =
      thimble_says({"plan", "mlp", "--threads", "1024"}, {.address_limit = rlim_t{1} << 30});
  expect_mistake(outcome, "1024 threads cannot be had", "--threads ");
  const Outcome fewer =
      thimble_says({"plan", "mlp", "--threads", "64"}, {.address_limit = rlim_t{384} << 20});
  expect_mistake(fewer, "64 threads cannot be had: the system starts ", "--threads ");
}
#endif

// oneDNN searches for an implementation among more candidates there, and its sums are in another
// order: a loss of 2.3 keeps five digits over five steps.
TEST_F(Machines, OlderProcessorsPlanAndTrain) {
  const Words unet = {"unet", "--layers", "1", "--hidden", "4", "--batch", "4"};
  for (const Words& net : {Words{"mlp"}, Words{"wrn-10-1", "--batch", "8"}}) {
    SCOPED_TRACE(net[0]);
    const Words words = net + Words{"--threads", "1"};
    const double expected = train(words, {}).json()["train_loss"].get<double>();
    for (const char* isa : {"ONEDNN_MAX_CPU_ISA=AVX2", "ONEDNN_MAX_CPU_ISA=SSE41"}) {
      SCOPED_TRACE(isa);
      const Outcome outcome = train(words, {isa});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_NEAR(outcome.json()["train_loss"].get<double>(), expected, 1e-4);
      for (int again = 0; again < 4; ++again) {
        const Outcome plan =
            thimble_says(Words{"plan", "--threads", "1"} + unet, {.environment = {isa}});
        EXPECT_EQ(plan.code, 0) << plan.signal << plan.err;
      }
    }
  }
}

}  // namespace
}  // namespace thimble
