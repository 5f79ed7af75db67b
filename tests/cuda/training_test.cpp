// Whole training runs on the GPU, beside the same runs on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "../file_support.h"
#include "support/runs.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

RunSetup on_gpu(RunSetup run) {
  run.device = "cuda";
  return run;
}

// A node per time step, as on the CPU.
RunSetup lstm_cells_run() {
  RunSetup run = lstm_run();
  run.model.name += ",steps-at-once=1";
  return run;
}

std::vector<RunSetup> runs() {
  RunSetup microbatched = wrn_run();
  microbatched.microbatch = 6;  // 16 rows: the last microbatch is smaller
  RunSetup folded = microbatched;
  folded.fold = true;
  folded.optimizer = "sgd";
  RunSetup sparse = wrn_run();
  sparse.sparsity = {.density = 0.4, .target = 0.05};
  RunSetup half = wrn_run();
  half.model.storage = DType::f16;
  RunSetup coded = wrn_run();
  coded.codec = parse_codec_spec("int8");
  RunSetup half_lstm = lstm_runs_run();
  half_lstm.model.storage = DType::bf16;
  half_lstm.microbatch = 8;
  return {mlp_run(), wrn_run(), lstm_run(), adam_run(), microbatched,    folded,
          sparse,    half,      coded,      half_lstm,  lstm_runs_run(), lstm_cells_run()};
}

// Full fp32 on both: sums differ in order alone, at a rate that does not amplify it.
TEST(CudaTraining, LossesAreThoseOfTheCpu) {
  for (RunSetup run :
       {mlp_run(), wrn_run(), lstm_run(), lstm_runs_run(), lstm_cells_run(), adam_run()}) {
    run.rate /= 10;
    run.tf32 = false;
    const TrainResult cpu = TrainingRun(run, {.steps = 20}).run();
    const TrainResult gpu = TrainingRun(on_gpu(run), {.steps = 20}).run();
    for (size_t step = 0; step < cpu.losses.size(); ++step) {
      EXPECT_NEAR(gpu.losses[step], cpu.losses[step], 1e-3 * cpu.losses[step])
          << run.model.name << " at step " << step;
    }
    EXPECT_NEAR(gpu.test.loss, cpu.test.loss, 2e-3 * cpu.test.loss);
  }
}

TEST(CudaTraining, SameSeedSameBits) {
  for (const RunSetup& run : runs()) {
    const TrainResult a = TrainingRun(on_gpu(run), {.steps = 6}).run();
    const TrainResult b = TrainingRun(on_gpu(run), {.steps = 6}).run();
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.weights_sha256, b.weights_sha256);
    EXPECT_EQ(a.test.loss, b.test.loss);
  }
}

TEST(CudaTraining, EveryTechniqueLearns) {
  for (RunSetup run : runs()) {
    const TrainResult result = TrainingRun(on_gpu(run), {.steps = 60, .evaluate = false}).run();
    double first = 0, last = 0;
    for (size_t i = 0; i < 5; ++i) first += result.losses[i], last += result.losses[55 + i];
    EXPECT_TRUE(std::isfinite(last));
    EXPECT_LT(last, 0.9 * first) << run.model.name;
  }
}

TEST(CudaTraining, TheArenaIsThePlans) {
  TrainingRun run(on_gpu(wrn_run()), {.steps = 3});
  const TrainResult result = run.run();
  EXPECT_EQ(result.measured_arena, run.planned().plan().arena);
  // CUDA's context at the least, and less than any card has.
  ASSERT_TRUE(result.beside_arena.has_value());
  EXPECT_GT(*result.beside_arena, Bytes(1 << 20));
  EXPECT_LT(*result.beside_arena, Bytes(int64_t{1} << 40));
}

// Sparse weights move on the host's copy of the pools; everything goes into the checkpoint.
TEST(CudaTraining, ResumedRunsGoOnToTheSameBits) {
  for (RunSetup run : {wrn_run(), runs()[6]}) {
    const TemporaryFolder folder;
    RunOptions options = {.steps = 8, .save_every = 4, .reallocate_every = 2, .evaluate = false};
    const std::string expected = TrainingRun(on_gpu(run), options).run().weights_sha256;
    options.out = folder.path();
    RunOptions cut_off = options;
    cut_off.on_microbatch = [](MicrobatchId which, TrainingStep::Part&) {
      if (which.step == 6) throw std::runtime_error("pulled the plug");
    };
    EXPECT_THROW(TrainingRun(on_gpu(run), cut_off).run(), std::runtime_error);
    options.resume = true;
    EXPECT_EQ(TrainingRun(on_gpu(run), options).run().weights_sha256, expected);
  }
}

}  // namespace
}  // namespace thimble
