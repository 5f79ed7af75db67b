#include "backend/cpu/waiting.h"

#include <omp.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <semaphore>
#include <thread>

#include "backend/cpu/team.h"

namespace thimble {
namespace {

using namespace std::chrono_literals;

// Alone, a process is interrupted a few times a second; beside one that never rests, at the end of
// every time slice: 70 to 200 times.
constexpr double kCrowded = 30, kAlone = 10;  // interruptions a second
constexpr int64_t kNoAccident = 3;            // interruptions
// Being slow to see others costs steps that take hundreds of times as long; being slow to see that
// they left, a few percent.
constexpr auto kShortLook = 20ms, kForgotten = 100ms, kLongLook = 500ms;

int64_t interruptions() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

// Threads of OpenMP, asleep as long as this lives.
class Waiting::Crowd {
 public:
  explicit Crowd(int threads) : thread_([this, threads] { gather(threads); }) { there_.acquire(); }
  ~Crowd() {
    leave_.release();
    thread_.join();
  }

 private:
  void gather(int threads) {
#pragma omp parallel num_threads(threads)
    came_.fetch_add(1, std::memory_order_relaxed);  // a region that does nothing is left out
    there_.release();
    leave_.acquire();
  }

  std::atomic<int> came_{0};
  std::binary_semaphore there_{0}, leave_{0};
  std::thread thread_;
};

Waiting::Waiting(int team) : since_(Clock::now()), interruptions_(interruptions()) {
  const bool chosen =
      std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  const int others = omp_get_num_procs() - team;
  constexpr int kMost = 256;
  if (chosen || team < 2 || others < 0 || others > kMost) return;
  needed_ = others + 2;  // one more than processors, and the first of a team is not counted
}

Waiting::~Waiting() = default;

void Waiting::look() {
  if (needed_ == 0) return;
  const auto now = Clock::now();
  const auto passed = now - since_;
  if (passed < (is_short() ? kLongLook : kShortLook)) return;
  const int64_t count = interruptions() - interruptions_;
  const double rate = static_cast<double>(count) / std::chrono::duration<double>(passed).count();
  const bool crowded = count >= kNoAccident && rate > kCrowded;
  if (is_short() && rate < kAlone) {
    crowd_.reset();
  } else if (!is_short() && crowded && startable(needed_ + 1) > needed_) {
    crowd_ = std::make_unique<Crowd>(needed_);
  } else if (!is_short() && passed < kForgotten) {
    return;
  }
  since_ = now;
  interruptions_ += count;
}

}  // namespace thimble
