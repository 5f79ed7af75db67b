// The quick ones of thirty nets. tests/slow/monotone_test.cpp tries them all.
#include "monotone.h"

namespace thimble {
namespace {

TEST(Monotone, FewNetsWithinRandomBudgets) {
  const std::vector<SmallNet> nets = thirty_nets();
  for (size_t i = 0; i < (kSanitized ? 1u : 3u); ++i) {
    expect_monotone(nets[i], kSanitized ? 20 : 200, static_cast<uint32_t>(i + 1));
  }
}

}  // namespace
}  // namespace thimble
