// Two hundred random budgets of thirty nets. THIMBLE_NETS=wrn: those whose names have that word.
#include "../select/monotone.h"

#include <cstdlib>
#include <string>

namespace thimble {
namespace {

TEST(Monotone, ThirtyNetsWithinTwoHundredRandomBudgets) {
  const char* const only = std::getenv("THIMBLE_NETS");
  const std::vector<SmallNet> nets = thirty_nets();
  ASSERT_EQ(nets.size(), 30u);
  for (size_t i = 0; i < nets.size(); ++i) {
    if (only != nullptr && nets[i].name.find(only) == std::string::npos) continue;
    expect_monotone(nets[i], 200, static_cast<uint32_t>(i + 1));
  }
}

}  // namespace
}  // namespace thimble
