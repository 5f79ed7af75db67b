#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <vector>

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

// The first of the parts, as many as fit.
std::string as_fits(const std::vector<std::string>& parts, size_t columns) {
  constexpr std::string_view kGap = "  ";
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty() && text.size() + kGap.size() + part.size() > columns) break;
    text += text.empty() ? part : std::string(kGap) + part;
  }
  return text;
}

// "acc 97.46%"
std::string brief(const Figure& metric) {
  return metric.share ? fmt::format("{} {:5.2f}%", metric.brief, 100 * metric.value)
                      : fmt::format("{} {:.4f}", metric.brief, metric.value);
}

// "5321 rows/s", "0.25 rows/s"; of sequences "812 tok/s"
std::string speed(const Progress& p) {
  constexpr double kSlow = 10;
  const bool sequences = p.tokens_per_second > 0;
  const double pace = sequences ? p.tokens_per_second : p.rows_per_second;
  const std::string_view unit = sequences ? "tok/s" : "rows/s";
  return pace < kSlow ? fmt::format("{:.2f} {}", pace, unit) : fmt::format("{:.0f} {}", pace, unit);
}

// Loss and metrics, a part each.
std::vector<std::string> parts_of(const Figures& figures) {
  std::vector<std::string> parts = {fmt::format("loss {:.4f}", figures.loss)};
  for (const Figure& metric : figures.metrics) parts.push_back(brief(metric));
  return parts;
}

// How fast it goes and in how much memory, the dispensable last.
std::vector<std::string> pace_of(const Progress& p) {
  std::vector<std::string> parts = {speed(p), duration(p.seconds_left) + " left",
                                    "arena " + to_string(p.arena)};
  if (p.budget.count > 0) parts.back() += " of " + to_string(p.budget);
  if (p.microbatch > 0) parts.push_back(fmt::format("microbatch {}", p.microbatch));
  parts.emplace_back(name_of(p.tier));
  return parts;
}

std::vector<std::string> operator+(std::vector<std::string> parts,
                                   const std::vector<std::string>& more) {
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
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
  // A terminal has the parts that fit one of its lines, a file has all.
  const size_t columns =
      line_.terminal() ? terminal_width() - 1 : std::numeric_limits<size_t>::max();
  const std::string steps = fmt::format("{}/{}", p.step, p.steps);
  const double epoch = static_cast<double>(p.step) / static_cast<double>(p.steps_per_epoch);
  const std::vector<std::string> where = {fmt::format("epoch {:.1f}", epoch), "step " + steps};
  std::vector<std::string> scale;
  if (p.loss_scale != 0)
    scale.push_back(fmt::format("loss scale {:g}, {} skipped", p.loss_scale, p.skipped));
  if (p.evaluated) {
    std::vector<std::string> tested = parts_of(p.test);
    tested.front() = "test " + tested.front();
    const std::vector<std::string> rate = {fmt::format("lr {:.4g}", p.rate)};
    line_.print(as_fits(where + parts_of(p.train) + tested + rate + scale, columns));
  } else if (!line_.terminal() || last) {
    line_.print(as_fits(where + parts_of(p.train) + pace_of(p) + scale, columns));
  }
  if (!last) {
    line_.redraw(static_cast<double>(p.step) / static_cast<double>(p.steps),
                 as_fits(std::vector{steps} + parts_of(p.train) + pace_of(p), columns));
  }
}

}  // namespace thimble
