#include "base/host/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace thimble {
namespace {

TEST(StopSignals, RemembersTheFirstAndEndsOnTheSecond) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopSignals signals("");
    EXPECT_EQ(signals.received(), 0);
    ::raise(signal);
    EXPECT_EQ(signals.received(), signal);
  }
  EXPECT_EXIT(
      {
        const StopSignals signals("");
        ::raise(SIGINT);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
  // Nobody listens any more.
  EXPECT_EXIT(::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace thimble
