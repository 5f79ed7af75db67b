// How long OpenMP's threads wait for each other with their eyes open. They spin for milliseconds,
// which is the fastest way where nobody else wants the processors. Where somebody does, each spins
// away the time that the others of its team need, and a step takes hundreds of times as long.
// OpenMP reads its settings before main(), but while there are more of its threads than processors,
// it spins for some microseconds only and then sleeps. So while others are seen, threads are kept
// that do nothing but be counted. And a team as large as the machine is kept in its places: moved
// about, two of its threads meet on one processor while the neighbour has another to itself.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

namespace thimble {

class Waiting {
 public:
  // Of teams of this size. Leaves everything as it is where the caller has chosen other settings
  // (GOMP_SPINCOUNT, OMP_WAIT_POLICY).
  explicit Waiting(int team);
  ~Waiting();

  // Between steps: looks whether others took processors away from this process, and has the next
  // waits be short or long. REQUIRES: one thread at a time, outside of parallel regions.
  void look();
  bool is_short() const { return crowd_ != nullptr; }

  // While a step runs, the team's first thread, which calls this, has its place, too. Between steps
  // it goes where it likes: what it starts there would inherit the place.
  void begin_step() const;
  void end_step() const;

 private:
  class Crowd;
  using Clock = std::chrono::steady_clock;

  // Whether threads are kept in their places: a smaller team is better moved to where nobody is.
  bool places() const { return is_short() && team_ == std::ssize(processors_); }
  // Every thread of the team but the first to a processor of its own, or all of them to any.
  void place(bool fixed) const;

  const int team_;
  std::vector<int> processors_;  // that this process may run on
  int needed_ = 0;               // threads that make it a crowd; 0: nothing is to be decided
  Clock::time_point since_;
  double others_ = 0;  // seconds until then
  std::unique_ptr<Crowd> crowd_;
};

}  // namespace thimble
