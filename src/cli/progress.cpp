#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/console.h"

namespace thimble {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

// Columns of the terminal; a line that is longer would wrap, and then not redraw in place.
size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string bar(double done, size_t width) {
  const size_t filled =
      static_cast<size_t>(std::clamp(done, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] ";
}

// `text` behind as much of a bar as there is room for; cut where there is none.
std::string line_with_bar(double done, std::string text, size_t columns) {
  constexpr size_t kNarrowest = 6, kWidest = 30, kEnds = 4;  // "[", "] ", and the last column
  if (text.size() + kEnds + kNarrowest <= columns) {
    return bar(done, std::min(kWidest, columns - text.size() - kEnds)) + text;
  }
  text.resize(std::min(text.size(), columns - 1));
  return text;
}

// "acc 97.46%"
std::string brief(const Figure& metric) {
  return metric.share ? fmt::format("{} {:5.2f}%", metric.brief, 100 * metric.value)
                      : fmt::format("{} {:.4f}", metric.brief, metric.value);
}

}  // namespace

std::string spelt_out(const Figures& figures) {
  std::string text;
  for (const Figure& metric : figures.metrics) {
    text += text.empty() ? "" : ", ";
    text += metric.share ? fmt::format("{} {:.2f}%", metric.name, 100 * metric.value)
                         : fmt::format("{} {:.4f}", metric.name, metric.value);
  }
  return text.empty() ? fmt::format("loss {:.4f}", figures.loss) : text;
}

// "arena 12.4 MiB of 13.0 MiB, microbatch 10, equivalent"
std::string memory_text(const Progress& p) {
  std::string text = "arena " + to_string(p.arena);
  if (p.budget.count > 0) text += " of " + to_string(p.budget);
  if (p.microbatch > 0) text += fmt::format(", microbatch {}", p.microbatch);
  return text + fmt::format(", {}", name_of(p.tier));
}

void SearchDisplay::show() {
  constexpr double kAWhile = 2, kUsual = 10;  // seconds
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
  if (passed.count() < kAWhile) return;
  if (!line_) line_.emplace();
  line_->show(passed.count() / kUsual, fmt::format("looking for a plan, {:.0f} s", passed.count()));
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (drawn_) say("\r\033[K");
}

bool ProgressLine::due() const {
  const double since = std::chrono::duration<double>(Clock::now() - last_shown_).count();
  return since >= (terminal_ ? 0.1 : 10);
}

void ProgressLine::redraw(double done, const std::string& text) {
  if (!terminal_) return;
  say(std::string_view("\r\033[K" + line_with_bar(done, printable(text), terminal_width())));
  drawn_ = true;
  last_shown_ = Clock::now();
}

void ProgressLine::print(const std::string& text) {
  if (terminal_) say("\r\033[K");
  say("{}\n", text);
  drawn_ = false;
  last_shown_ = Clock::now();
}

void ProgressLine::show(double done, const std::string& text) {
  if (!due()) return;
  terminal_ ? redraw(done, text) : print(text);
}

void ProgressDisplay::show(const Progress& p) {
  const bool last = p.stopped || p.step == p.steps;
  if (!p.evaluated && !last && !line_.due()) return;
  const double epoch = static_cast<double>(p.step) / static_cast<double>(p.steps_per_epoch);
  const std::string where = fmt::format("epoch {:4.1f}  step {}/{}", epoch, p.step, p.steps);
  std::string figures = fmt::format("loss {:.4f}", p.train.loss);
  for (const Figure& metric : p.train.metrics) figures += "  " + brief(metric);
  const std::string scale =
      p.loss_scale == 0 ? ""
                        : fmt::format("  loss scale {:g}, {} skipped", p.loss_scale, p.skipped);
  const std::string pace = fmt::format("{:.0f}/s  ETA {}  {}", p.rows_per_second,
                                       duration(p.seconds_left), memory_text(p));
  if (p.evaluated) {
    std::string tested = "test";
    for (const Figure& metric : p.test.metrics) tested += fmt::format(" {} ", brief(metric));
    line_.print(fmt::format("{}  {}  {} loss {:.4f}  lr {:.4g}{}", where, figures, tested,
                            p.test.loss, p.rate, scale));
  } else if (!line_.terminal() || last) {
    line_.print(fmt::format("{}  {}  {}{}", where, figures, pace, scale));
  }
  if (!last) {
    line_.redraw(static_cast<double>(p.step) / static_cast<double>(p.steps),
                 fmt::format("{}/{}  {}  {}", p.step, p.steps, figures, pace));
  }
}

}  // namespace thimble
