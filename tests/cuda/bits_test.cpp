// Recomputation on the GPU changes no bit.
#include "support/recompute_bits.h"

namespace thimble {
namespace {

INSTANTIATE_TEST_SUITE_P(Cuda, Bits,
                         ::testing::Combine(::testing::Values("cuda"), ::testing::ValuesIn(nets())),
                         [](const auto& test) { return std::get<1>(test.param).label; });
INSTANTIATE_TEST_SUITE_P(Cuda, RandomBits,
                         ::testing::Combine(::testing::Values("cuda"), ::testing::Range(0u, 2u)),
                         [](const auto& test) { return std::to_string(std::get<1>(test.param)); });

}  // namespace
}  // namespace thimble
