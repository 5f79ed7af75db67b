// The process around the arena: a run on the CPU lives within its arena and 48 MiB, also in a build
// whose CUDA backend could drag in cuDNN and cuBLAS.
#include "support/run_thimble.h"

namespace thimble {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kAround = 512 << 20;  // shadow memory and quarantine are the sanitizer's
#else
constexpr int64_t kAround = 48 << 20;
#endif

class Resident : public testing::TestWithParam<const char*> {};

TEST_P(Resident, TrainingStaysWithinItsArenaAnd48MiB) {
  const Outcome outcome = thimble_says({"train", GetParam(), "--data", "digits", "--batch", "64",
                                        "--steps", "2", "--threads", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json result = outcome.json();
  const int64_t arena = result["measured_arena_bytes"], peak = result["rss_peak_bytes"];
  EXPECT_GT(arena, 1 << 20);
  EXPECT_LE(peak, arena + kAround) << "around the arena: " << ((peak - arena) >> 20) << " MiB";
}

INSTANTIATE_TEST_SUITE_P(Nets, Resident, testing::Values("mlp", "wrn-10-1", "wrn-28-2"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::erase(text, '-');
                           return text;
                         });

TEST(ResidentList, NamingWhatThereIsNeeds48MiB) {
  const Outcome outcome = thimble_says({"list"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(outcome.resident, 1 << 20);
  EXPECT_LE(outcome.resident, kAround);
}

}  // namespace
}  // namespace thimble
