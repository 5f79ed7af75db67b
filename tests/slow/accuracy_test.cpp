// Every technique learns the digits as fp32 with dense weights does: mean test accuracy over three
// seeds, within a stated distance.
#include <cmath>

#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

struct Case {
  std::string name;
  Words flags;
  double distance;  // in accuracy; a point (0.01) is 3.55 of the 355 test digits
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr int kSeeds = 3;

double mean_accuracy(const Words& flags) {
  double sum = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const TemporaryFolder folder;
    const Outcome outcome = thimble_says(
        Words{"train", "wrn-10-1", "--data", "digits", "--batch", "32", "--epochs", "6", "--lr",
              "0.05", "--optimizer", "sgd", "--weight-decay", "5e-4", "--threads", "1",
              "--save-every", "0", "--seed", std::to_string(seed), "--out", folder / "run", "--json"} +
        flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return 0;
    EXPECT_EQ(outcome.json()["measured_arena_bytes"], outcome.json()["arena_bytes"]);
    sum += outcome.json()["test_accuracy"].get<double>();
  }
  return sum / kSeeds;
}

class Accuracy : public testing::TestWithParam<Case> {};

TEST_P(Accuracy, IsThatOfDenseFp32) {
  const double dense = mean_accuracy({});
  EXPECT_GT(dense, 0.97);
  const double got = mean_accuracy(GetParam().flags);
  EXPECT_GT(got, dense - GetParam().distance) << "dense fp32: " << dense;
  RecordProperty("accuracy", fmt::format("{:.4f} of {:.4f}", got, dense));
}

// Three standard deviations of the difference of two such means are one point: a run's accuracy
// varies by 0.4 from seed to seed.
constexpr double kNoise = 0.01;

INSTANTIATE_TEST_SUITE_P(
    Techniques, Accuracy,
    testing::Values(
        Case{"fp16", {"--precision", "fp16"}, kNoise},
        Case{"bf16", {"--precision", "bf16"}, kNoise},
        Case{"bf16_stochastic", {"--precision", "bf16", "--rounding", "stochastic"}, kNoise},
        Case{"bf16_kahan", {"--precision", "bf16", "--rounding", "kahan"}, kNoise},
        Case{"sparse", {"--density", "0.3", "--reallocate-every", "20"}, kNoise},
        Case{"microbatch", {"--microbatch", "8"}, kNoise},
        Case{"fold", {"--microbatch", "8", "--fold"}, kNoise},
        Case{"state_8bit", {"--state-bits", "8"}, kNoise},
        Case{"state_8bit_fold", {"--state-bits", "8", "--microbatch", "8", "--fold"}, kNoise},
        Case{"codec_fp16", {"--codec", "fp16"}, kNoise},
        Case{"codec_int8", {"--codec", "int8"}, kNoise},
        Case{"codec_int4", {"--codec", "int4"}, kNoise},
        Case{"codec_int2", {"--codec", "int2"}, kNoise},
        Case{"combined",
             {"--precision", "bf16", "--microbatch", "8", "--density", "0.3", "--reallocate-every",
              "20", "--fold"},
             kNoise}),
    [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace thimble
