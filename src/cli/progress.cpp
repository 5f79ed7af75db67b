#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace thimble {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string bar(double done) {
  constexpr size_t kWidth = 24;
  const size_t filled = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * kWidth);
  return std::string(filled, '=') + std::string(kWidth - filled, ' ');
}

}  // namespace

ProgressDisplay::ProgressDisplay(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressDisplay::show(const Progress& p) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_shown_).count();
  const bool last = p.step == p.steps;
  const double epoch = static_cast<double>(p.step) / static_cast<double>(p.steps_per_epoch);
  const std::string figures =
      fmt::format("loss {:.4f}  acc {:5.2f}%  {:.0f}/s", p.loss, 100 * p.accuracy, p.rows_per_second);
  if (terminal_ && (since >= 0.1 || last || p.evaluated)) {
    fmt::print(stderr, "\r\033[K[{}] {}/{} epoch {:.1f}  {}  ETA {}  arena {}",
               bar(static_cast<double>(p.step) / static_cast<double>(p.steps)), p.step, p.steps,
               epoch, figures, duration(p.seconds_left), to_string(p.arena));
    last_shown_ = now;
  }
  if (p.evaluated) {
    fmt::print(stderr, "{}step {}/{}  epoch {:.1f}  {}  test acc {:.2f}%  test loss {:.4f}  lr {:.4g}\n",
               terminal_ ? "\r\033[K" : "", p.step, p.steps, epoch, figures, 100 * p.test_accuracy,
               p.test_loss, p.rate);
  } else if (!terminal_ && since >= 10) {
    fmt::print(stderr, "step {}/{}  epoch {:.1f}  {}  ETA {}\n", p.step, p.steps, epoch, figures,
               duration(p.seconds_left));
    last_shown_ = now;
  }
  std::fflush(stderr);
}

}  // namespace thimble
