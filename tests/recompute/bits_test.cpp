// Recomputation on the CPU changes no bit.
#include "support/recompute_bits.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, Bits,
                         ::testing::Combine(::testing::Values("cpu"), ::testing::ValuesIn(nets())),
                         [](const auto& test) { return std::get<1>(test.param).label; });
INSTANTIATE_TEST_SUITE_P(Cpu, RandomBits,
                         ::testing::Combine(::testing::Values("cpu"), ::testing::Range(0u, 8u)),
                         [](const auto& test) { return std::to_string(std::get<1>(test.param)); });

}  // namespace
}  // namespace thimble
