#include "report/frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace thimble {
namespace {

// Maps points to [0, 1] x [0, 1]: memory on a logarithmic axis, time on a linear one.
struct Axes {
  explicit Axes(const std::vector<FrontierPoint>& points) {
    for (const FrontierPoint& p : points) {
      const double memory = std::log(static_cast<double>(p.arena.count));
      least_memory = std::min(least_memory, memory);
      most_memory = std::max(most_memory, memory);
      least_time = std::min(least_time, p.milliseconds);
      most_time = std::max(most_time, p.milliseconds);
    }
  }
  double x(const FrontierPoint& p) const {
    const double memory = std::log(static_cast<double>(p.arena.count));
    return (memory - least_memory) / std::max(1e-9, most_memory - least_memory);
  }
  double y(const FrontierPoint& p) const {
    return (p.milliseconds - least_time) / std::max(1e-9, most_time - least_time);
  }

  double least_memory = 1e300, most_memory = -1e300;
  double least_time = 1e300, most_time = -1e300;
};

std::vector<std::string> policies_of(const std::vector<FrontierPoint>& points) {
  std::vector<std::string> names;
  for (const FrontierPoint& p : points) {
    if (std::find(names.begin(), names.end(), p.policy) == names.end()) names.push_back(p.policy);
  }
  return names;
}

std::string bytes_at(double log_bytes) {
  return to_string(Bytes(static_cast<int64_t>(std::exp(log_bytes))));
}

}  // namespace

double price_of_memory(const std::vector<FrontierPoint>& points, const FrontierPoint& chosen) {
  const FrontierPoint* next = nullptr;
  for (const FrontierPoint& p : points) {
    const bool faster = p.arena > chosen.arena && p.milliseconds < chosen.milliseconds;
    if (p.policy != budget_policy() || !faster) continue;
    if (next == nullptr || p.arena < next->arena) next = &p;
  }
  if (next == nullptr) return 0;
  const double mebibytes = static_cast<double>((next->arena - chosen.arena).count) / (1 << 20);
  return (chosen.milliseconds - next->milliseconds) / mebibytes;
}

std::string frontier_table(const std::vector<FrontierPoint>& points) {
  std::string text = fmt::format("  {:<18}{:>14}{:>12}{:>14}{:>14}\n", "planner", "arena bytes", "",
                                 "predicted ms", "extra FLOPs");
  for (const FrontierPoint& p : points) {
    text += fmt::format("  {:<18}{:>14}{:>12}{:>14.2f}{:>13.1f}%\n", p.policy, p.arena.count,
                        to_string(p.arena), p.milliseconds, 100 * p.extra_flops_ratio);
  }
  return text;
}

std::string frontier_plot(const std::vector<FrontierPoint>& points) {
  constexpr int kWidth = 72;
  constexpr int kHeight = 18;
  const Axes axes(points);
  const std::vector<std::string> names = policies_of(points);
  std::vector<std::string> grid(kHeight, std::string(kWidth, ' '));
  for (const FrontierPoint& p : points) {
    const auto name = std::find(names.begin(), names.end(), p.policy) - names.begin();
    const auto column = static_cast<size_t>(axes.x(p) * (kWidth - 1) + 0.5);
    const auto row = static_cast<size_t>((1 - axes.y(p)) * (kHeight - 1) + 0.5);
    grid[row][column] = static_cast<char>('a' + name);
  }
  std::string text = fmt::format("  {:.1f} ms\n", axes.most_time);
  for (const std::string& line : grid) text += fmt::format("  |{}\n", line);
  text += fmt::format("  +{}  {:.1f} ms\n", std::string(kWidth, '-'), axes.least_time);
  text += fmt::format("   {:<36}{:>36}\n  ", bytes_at(axes.least_memory),
                      bytes_at(axes.most_memory) + " (log)");
  for (size_t i = 0; i < names.size(); ++i) {
    text += fmt::format(" {} {} ", static_cast<char>('a' + static_cast<char>(i)), names[i]);
  }
  return text + "\n";
}

}  // namespace thimble
