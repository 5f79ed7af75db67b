// Every technique learns the digits as fp32 with dense weights does: mean test accuracy over three
// seeds, within a point of it (3.55 of the 355 test digits).
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

struct Case {
  std::string name;
  Words flags;
};

constexpr int kSeeds = 3;

double mean_accuracy(const Words& flags) {
  double sum = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const TemporaryFolder folder;
    const Outcome outcome = thimble_says(Words{"train",          "wrn-10-1",
                                               "--data",         "digits",
                                               "--batch",        "32",
                                               "--epochs",       "6",
                                               "--lr",           "0.05",
                                               "--optimizer",    "sgd",
                                               "--weight-decay", "5e-4",
                                               "--threads",      "1",
                                               "--save-every",   "0",
                                               "--seed",         std::to_string(seed),
                                               "--out",          folder / "run",
                                               "--json"} +
                                         flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return 0;
    EXPECT_EQ(outcome.json()["measured_arena_bytes"], outcome.json()["arena_bytes"]);
    sum += outcome.json()["test_accuracy"].get<double>();
  }
  return sum / kSeeds;
}

// Three standard deviations of the difference of two such means: with seeds 1 to 6, accuracies of
// dense fp32 have a deviation of 0.004.
constexpr double kNoise = 0.01;

void expect_as_good_as_dense_fp32(const std::vector<Case>& cases) {
  const double dense = mean_accuracy({});
  EXPECT_GT(dense, 0.97);
  for (const Case& c : cases) {
    const double got = mean_accuracy(c.flags);
    EXPECT_GT(got, dense - kNoise) << c.name << "; dense fp32: " << dense;
    testing::Test::RecordProperty(c.name, fmt::format("{:.4f} of {:.4f}", got, dense));
  }
}

TEST(Accuracy, OfSixteenBits) {
  expect_as_good_as_dense_fp32(
      {{"fp16", {"--precision", "fp16"}},
       {"bf16", {"--precision", "bf16"}},
       {"bf16_stochastic", {"--precision", "bf16", "--rounding", "stochastic"}},
       {"bf16_kahan", {"--precision", "bf16", "--rounding", "kahan"}}});
}

TEST(Accuracy, OfMicrobatchesAndState) {
  expect_as_good_as_dense_fp32(
      {{"microbatch", {"--microbatch", "8"}},
       {"fold", {"--microbatch", "8", "--fold"}},
       {"state_8bit", {"--state-bits", "8"}},
       {"state_8bit_fold", {"--state-bits", "8", "--microbatch", "8", "--fold"}}});
}

TEST(Accuracy, OfCodecs) {
  expect_as_good_as_dense_fp32({{"codec_fp16", {"--codec", "fp16"}},
                                {"codec_int8", {"--codec", "int8"}},
                                {"codec_int4", {"--codec", "int4"}},
                                {"codec_int3", {"--codec", "int3"}},
                                {"codec_int2", {"--codec", "int2"}}});
}

TEST(Accuracy, OfSparseWeightsAndAllTogether) {
  const Words sparse = {"--density", "0.3", "--reallocate-every", "20"};
  expect_as_good_as_dense_fp32(
      {{"sparse", sparse},
       {"combined", sparse + Words{"--precision", "bf16", "--microbatch", "8", "--fold"}}});
}

}  // namespace
}  // namespace thimble
