// The threads that kernels share. oneDNN splits work among as many as OpenMP promises, and a part
// that belongs to a thread which never comes is not done, or waited for without end. So a team is
// counted before any kernel is made for it, and its size is what every kernel goes by.
#pragma once

#include <memory>

#include "backend/cpu/thread_waiting.h"

namespace thimble {

// Of `wanted` threads, how many the system gives, this one among them. OpenMP ends the process
// where it cannot have one, so they are tried first.
int startable(int wanted);

class Team {
 public:
  // asked: 0 means OMP_NUM_THREADS, else one per usable core, lowered (and said, on stderr) to what
  // can be had. Throws UserError where more are asked for than OpenMP or the system gives.
  explicit Team(int asked);

  int size() const { return size_; }
  // Makes it the team of what the calling thread runs: OpenMP keeps its settings per thread, and
  // another backend may have set them. Between steps: it is when its threads' waiting is looked at.
  void enter() const;
  // Around a step, on the thread that runs it.
  void begin_step() const;
  void end_step() const { waiting_->end_step(); }

 private:
  int size_;
  std::unique_ptr<Waiting> waiting_;
};

}  // namespace thimble
