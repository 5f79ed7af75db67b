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

std::string frontier_svg(const std::string& title, const std::vector<FrontierPoint>& points) {
  constexpr double kWidth = 720, kHeight = 420, kMargin = 70;
  static const std::vector<std::string> kColours = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2",
                                                    "#59a14f", "#edc948", "#b07aa1", "#9c755f",
                                                    "#ff9da7", "#bab0ac", "#1b1b1b", "#86bcb6"};
  const Axes axes(points);
  const std::vector<std::string> names = policies_of(points);
  const auto x_at = [&](const FrontierPoint& p) {
    return kMargin + axes.x(p) * (kWidth - 2 * kMargin);
  };
  const auto y_at = [&](const FrontierPoint& p) {
    return kHeight - kMargin - axes.y(p) * (kHeight - 2 * kMargin);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"30\" font-size=\"16\">{3}</text>\n"
      "<path d=\"M{2} {2} V{4} H{5}\" fill=\"none\" stroke=\"#888\"/>\n",
      kWidth, kHeight, kMargin, title, kHeight - kMargin, kWidth - kMargin);
  const auto label = [&](double x, double y, const char* anchor, const std::string& text) {
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, text);
  };
  label(kMargin, kHeight - kMargin + 18, "start", bytes_at(axes.least_memory));
  label(kWidth - kMargin, kHeight - kMargin + 18, "end", bytes_at(axes.most_memory));
  label(kWidth / 2, kHeight - kMargin + 18, "middle", "arena (logarithmic)");
  label(kMargin - 6, kMargin + 4, "end", fmt::format("{:.0f} ms", axes.most_time));
  label(kMargin - 6, kHeight - kMargin, "end", fmt::format("{:.0f} ms", axes.least_time));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& colour = kColours[i % kColours.size()];
    for (const FrontierPoint& p : points) {
      if (p.policy != names[i]) continue;
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{} {} {:.1f} "
          "ms</title></circle>\n",
          x_at(p), y_at(p), colour, p.policy, to_string(p.arena), p.milliseconds);
    }
    const double y = kMargin + 16 * static_cast<double>(i);
    svg += fmt::format("<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"4\" fill=\"{}\"/>\n",
                       kWidth - kMargin - 110, y - 4, colour);
    label(kWidth - kMargin - 100, y, "start", names[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace thimble
