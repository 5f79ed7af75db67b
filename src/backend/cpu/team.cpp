#include "backend/cpu/team.h"

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/host/cores.h"

namespace thimble {
namespace {

// A limit per processor: more threads wait for each other nearly all of the time.
constexpr int kMostPerCore = 64;

struct Limit {
  int threads;
  std::string reason;
};

void set_team(int size) {
  omp_set_dynamic(0);
  if (omp_get_max_active_levels() < 1) omp_set_max_active_levels(1);
  omp_set_num_threads(size);
}

int counted() {
  int count = 1;
#pragma omp parallel
#pragma omp single
  count = omp_get_num_threads();
  return count;
}

// The team's size, and what kept it from being `wanted`.
Limit form_team(int wanted) {
  const int allowed = omp_get_thread_limit();
  if (allowed < wanted) return {allowed, fmt::format("OMP_THREAD_LIMIT allows {}", allowed)};
  const int most = kMostPerCore * usable_cores();
  if (most < wanted) {
    return {most, fmt::format("{} cores are here to share, {} threads on each at most",
                              usable_cores(), kMostPerCore)};
  }
  const int given = startable(wanted);
  // Half of them: what else the process needs has to have room beside the team.
  if (given < wanted) {
    return {std::max(1, given / 2), fmt::format("the system starts {} at most", given)};
  }
  set_team(wanted);
  const int came = counted();
  return {came, came < wanted ? fmt::format("OpenMP gives {}", came) : ""};
}

int default_size() {
  const char* named = std::getenv("OMP_NUM_THREADS");
  if (named != nullptr && *named != '\0') return std::max(1, omp_get_max_threads());
  return usable_cores();
}

}  // namespace

int startable(int wanted) {
  std::latch done(1);
  std::vector<std::thread> threads;
  try {
    while (static_cast<int>(threads.size()) + 1 < wanted) {
      threads.emplace_back([&] { done.wait(); });
    }
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  done.count_down();
  for (std::thread& thread : threads) thread.join();
  return static_cast<int>(threads.size()) + 1;
}

Team::Team(int asked) {
  const int wanted = asked > 0 ? asked : default_size();
  size_ = wanted;
  std::string reason;
  for (Limit team = form_team(size_); team.threads < size_; team = form_team(size_)) {
    user_check(asked == 0, "{} threads cannot be had: {}; give --threads {}, or lift the limit",
               wanted, team.reason, team.threads);
    size_ = team.threads;
    reason = team.reason;
  }
  waiting_ = std::make_unique<Waiting>(size_);
  if (size_ == wanted) return;
  const std::string said =
      fmt::format("thimble: on {} of {} threads, since {}\n", size_, wanted, reason);
  std::fputs(said.c_str(), stderr);
}

void Team::enter() const {
  set_team(size_);
  waiting_->look();
}

void Team::begin_step() const {
  enter();
  waiting_->begin_step();
}

}  // namespace thimble
