// How the threads of kernels wait follows what else the processors have to do.
#include "backend/cpu/waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/cores.h"

namespace thimble {
namespace {

using namespace std::chrono_literals;

// Threads that never rest, two for each processor.
class Neighbours {
 public:
  Neighbours() {
    for (int i = 0; i < 2 * usable_cores(); ++i) {
      threads_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Neighbours() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

// Of this process.
int threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

class WaitingTest : public testing::Test {
 protected:
  void SetUp() override {  // tests run several at a time, and say so
    for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) unsetenv(name);
  }

  // Looks until waits are short, for five seconds at most.
  static bool becomes_short(Waiting& waiting) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (!waiting.is_short() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(5ms);
      waiting.look();
    }
    return waiting.is_short();
  }
};

TEST_F(WaitingTest, NeighboursMakeItShort) {
  if (usable_cores() < 2) GTEST_SKIP() << "a team of one never waits";
  const Neighbours neighbours;
  Waiting waiting(usable_cores());
  EXPECT_FALSE(waiting.is_short());
  const int before = threads();
  EXPECT_TRUE(becomes_short(waiting));
  EXPECT_EQ(threads(), before + 2);  // one that leads, and one more than processors
}

TEST_F(WaitingTest, ATeamOfOneNeverWaits) {
  const Neighbours neighbours;
  Waiting waiting(1);
  std::this_thread::sleep_for(200ms);
  waiting.look();
  EXPECT_FALSE(waiting.is_short());
}

TEST_F(WaitingTest, WhatTheCallerChoseStays) {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    setenv(name, name[0] == 'O' ? "active" : "1000", 1);
    const Neighbours neighbours;
    Waiting waiting(2);
    std::this_thread::sleep_for(200ms);
    waiting.look();
    EXPECT_FALSE(waiting.is_short()) << name;
    unsetenv(name);
  }
}

}  // namespace
}  // namespace thimble
