// Shows long work as it goes: one line that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "train/trainer.h"

namespace thimble {

// The line itself, on stderr.
class ProgressLine {
 public:
  ProgressLine();
  // The drawn line goes: whatever is said next begins a line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool terminal() const { return terminal_; }
  // Whether enough time has passed to show something again.
  bool due() const;
  // Draws over the line on a terminal, behind a bar of the share `done`.
  void redraw(double done, const std::string& text);
  // A line that stays; on a terminal it takes the place of what was drawn.
  void print(const std::string& text);
  // One or the other, where it is due.
  void show(double done, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool drawn_ = false;
  Clock::time_point last_shown_ = {};
};

// A search for a plan, once it has taken a while.
class SearchDisplay {
 public:
  explicit SearchDisplay(std::chrono::steady_clock::time_point began) : began_(began) {}
  void show();

 private:
  const std::chrono::steady_clock::time_point began_;
  std::optional<ProgressLine> line_;  // none: not yet
};

// Metrics by name: "accuracy 97.46%"; without any, the loss.
std::string spelt_out(const Figures& figures);

// Training: loss, metrics, pace, memory. A line of a terminal has as many of them as fit.
class ProgressDisplay {
 public:
  void show(const Progress& progress);

 private:
  ProgressLine line_;
};

}  // namespace thimble
