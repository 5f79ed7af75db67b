// How the threads of kernels wait follows what else the processors have to do.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cpu/thread_waiting.h"
#include "base/host/cores.h"

namespace thimble {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void spin() {
  for (;;) std::atomic_signal_fence(std::memory_order_seq_cst);  // a turn that is not left out
}

// Processes that never rest, two for each processor.
class Neighbours {
 public:
  Neighbours() {
    for (int i = 0; i < 2 * usable_cores(); ++i) {
      processes_.push_back(fork());
      if (processes_.back() == 0) spin();
    }
  }
  ~Neighbours() {
    for (const pid_t process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
};

// Of this process.
int threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Threads of this process that may run on one processor only.
int placed_threads() {
  int placed = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(std::stoi(task.path().filename()), sizeof allowed, &allowed);
    placed += CPU_COUNT(&allowed) == 1;
  }
  return placed;
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
  // One that leads, one more than processors, and the team's others.
  EXPECT_EQ(threads(), before + 2 + usable_cores() - 1);
}

TEST_F(WaitingTest, BesideNeighboursThreadsHaveTheirPlacesTheFirstWhileAStepRuns) {
  const int cores = usable_cores();
  if (cores < 2) GTEST_SKIP() << "a team of one never waits";
  auto waiting = std::make_unique<Waiting>(cores);
  const Neighbours neighbours;
  ASSERT_TRUE(becomes_short(*waiting));
  EXPECT_EQ(placed_threads(), cores - 1);
  waiting->begin_step();
  EXPECT_EQ(placed_threads(), cores);
  waiting->end_step();
  EXPECT_EQ(placed_threads(), cores - 1);
  waiting.reset();
  EXPECT_EQ(placed_threads(), 0);
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
