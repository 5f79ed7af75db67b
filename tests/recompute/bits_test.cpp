// Recomputation on the CPU changes no bit.
#include "support/recompute_bits.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, Bits,
                         ::testing::Combine(::testing::Values("cpu"), ::testing::ValuesIn(nets())),
                         [](const auto& info) { return std::get<1>(info.param).label; });
INSTANTIATE_TEST_SUITE_P(Cpu, RandomBits,
                         ::testing::Combine(::testing::Values("cpu"), ::testing::Range(0u, 8u)),
                         [](const auto& info) {
                           return std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace thimble
