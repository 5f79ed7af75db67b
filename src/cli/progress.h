// Shows training as it goes: one line that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>

#include "train/trainer.h"

namespace thimble {

class ProgressDisplay {
 public:
  ProgressDisplay();
  void show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  Clock::time_point last_shown_ = {};
};

}  // namespace thimble
