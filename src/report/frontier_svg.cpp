// Memory against time as a picture: the plans that a budget chooses from as a line, every other
// policy as a point with its name beside it, the plan at hand in a ring.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/frontier.h"
#include "report/svg_chart.h"

namespace thimble {
namespace {

constexpr SvgChart::Box kFrontierBox = {.left = 76, .top = 52, .width = 660, .height = 340};
constexpr double kFrontierRight = 24, kFrontierBottom = 50;

double log_bytes(const FrontierPoint& point) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, point.arena.count)));
}

// Of logarithms: doublings; of a narrow range, round numbers of the largest unit.
std::vector<Tick> memory_ticks(double low, double high) {
  std::vector<Tick> ticks;
  if (high - low > 2.5) {
    const double notch = high - low > 12 ? 2 : 1;
    for (double n = std::ceil(low / notch); n * notch <= high; ++n) {
      ticks.push_back({n * notch, to_string(Bytes(static_cast<int64_t>(std::exp2(n * notch))))});
    }
    return ticks;
  }
  const double unit = std::exp2(10 * std::floor(high / 10));
  for (const Tick& tick : decimal_ticks(std::exp2(low) / unit, std::exp2(high) / unit, 6)) {
    const Bytes bytes(static_cast<int64_t>(tick.at * unit));
    ticks.push_back({std::log2(tick.at * unit), to_string(bytes)});
  }
  return ticks;
}

// Memory to the right by its logarithm, time upward from a round number at or below the fastest.
SvgChart chart_of(const std::string& title, const std::vector<FrontierPoint>& points) {
  double least_memory = 1e300, most_memory = -1e300, least_time = 1e300, most_time = 0;
  for (const FrontierPoint& p : points) {
    least_memory = std::min(least_memory, log_bytes(p) - 0.12);
    most_memory = std::max(most_memory, log_bytes(p) + 0.12);
    least_time = std::min(least_time, p.milliseconds);
    most_time = std::max(most_time, p.milliseconds);
  }
  const double distance = round_distance(most_time - least_time, 5);
  const double bottom = distance * std::floor(least_time / distance);
  const double top = distance * std::ceil(most_time / distance + 0.05);
  SvgChart chart(title, kFrontierBox, kFrontierRight, kFrontierBottom);
  chart.y_axis(bottom, top, decimal_ticks(bottom, top, 6), "milliseconds a step");
  chart.x_axis(least_memory, most_memory, memory_ticks(least_memory, most_memory), "arena", true);
  return chart;
}

// The names of all points that share a place, once.
std::string names_at(const std::vector<FrontierPoint>& points, const FrontierPoint& here) {
  std::vector<std::string> names;
  for (const FrontierPoint& p : points) {
    const bool same = p.arena == here.arena && p.milliseconds == here.milliseconds;
    if (p.policy == budget_policy()) continue;  // the line has its name
    if (same && std::ranges::find(names, p.policy) == names.end()) names.push_back(p.policy);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Puts names beside points where no other name is: above or below, to the right or to the left.
class Labels {
 public:
  void add(SvgChart& chart, double x, double y, std::string_view name) {
    const double width = 6.6 * static_cast<double>(name.size());
    for (const auto& [right, dy] :
         {std::pair(true, -8.0), {true, 18.0}, {false, -8.0}, {false, 18.0}}) {
      const Box box = {right ? x + 6 : x - 6 - width, y + dy, width};
      const bool inside =
          box.x > kFrontierBox.left &&
          box.x + box.width < kFrontierBox.left + kFrontierBox.width + kFrontierRight;
      if (!inside || std::ranges::any_of(boxes_, [&](const Box& b) { return overlap(b, box); })) {
        continue;
      }
      boxes_.push_back(box);
      chart.text(right ? x + 6 : x - 6, y + dy, right ? "start" : "end", name);
      return;
    }
    chart.text(x, y - 8, "middle", name);
  }

 private:
  struct Box {
    double x, y, width;
  };
  static bool overlap(const Box& a, const Box& b) {
    return std::abs(a.y - b.y) < 13 && a.x < b.x + b.width && b.x < a.x + a.width;
  }

  std::vector<Box> boxes_;
};

// The plans that a budget chooses from: each is the best until the next one fits.
void draw_line(SvgChart& chart, const std::vector<FrontierPoint>& points) {
  std::vector<FrontierPoint> line;
  for (const FrontierPoint& p : points) {
    if (p.policy == budget_policy()) line.push_back(p);
  }
  if (line.empty()) return;
  std::ranges::sort(line, {}, [](const FrontierPoint& p) { return p.arena; });
  std::string corners;
  for (const FrontierPoint& p : line) {
    corners += fmt::format("{:.1f},{:.1f} ", chart.x(log_bytes(p)), chart.y(p.milliseconds));
  }
  chart.add(
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#3b5bdb\" "
                  "stroke-width=\"2\" stroke-linejoin=\"round\"/>\n",
                  corners));
  const FrontierPoint& named = line[line.size() / 3];
  chart.text(chart.x(log_bytes(named)) - 8, chart.y(named.milliseconds) + 16, "end",
             budget_policy(), " fill=\"#3b5bdb\" font-weight=\"bold\"");
}

}  // namespace

std::string frontier_svg(const std::string& title, const std::vector<FrontierPoint>& points,
                         const std::optional<FrontierPoint>& chosen) {
  std::vector<FrontierPoint> all = points;
  if (chosen) all.push_back(*chosen);
  SvgChart chart = chart_of(title, all);
  draw_line(chart, points);
  Labels labels;
  for (const FrontierPoint& p : points) {
    const bool on_line = p.policy == budget_policy();
    const double x = chart.x(log_bytes(p)), y = chart.y(p.milliseconds);
    chart.add(fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: {}, {:.3g} ms, "
        "{:.1f} % more FLOPs</title></circle>\n",
        x, y, on_line ? "2.5" : "4.5", on_line ? "#3b5bdb" : "#e8a33d", p.policy,
        to_string(p.arena), p.milliseconds, 100 * p.extra_flops_ratio));
    const std::string names = names_at(points, p);
    if (!on_line && names.starts_with(p.policy)) labels.add(chart, x, y, names);
  }
  if (chosen) {
    const double x = chart.x(log_bytes(*chosen)), y = chart.y(chosen->milliseconds);
    chart.add(
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"8\" fill=\"none\" "
                    "stroke=\"#d9644a\" stroke-width=\"2.5\"/>\n",
                    x, y));
    labels.add(chart, x + 4, y - 4, "this plan");
  }
  return chart.finish();
}

}  // namespace thimble
