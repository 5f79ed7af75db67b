// Memory against time as a picture: the plans that a budget chooses from as a line, every other
// policy as a point with its name beside it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/frontier.h"

namespace thimble {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 64, kRight = 24, kTop = 52, kBottom = 56;

// From 1, 2, 5, 10, 20, ... the one that cuts `range` into about five.
double round_distance(double range) {
  const double rough = std::max(range, 1e-9) / 5;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= rough) return factor * decade;
  }
  return 10 * decade;
}

// Memory to the right by its logarithm, time upward from a round number at or below the fastest.
struct Frame {
  explicit Frame(const std::vector<FrontierPoint>& points) {
    double least_time = 1e300, most_time = 0;
    for (const FrontierPoint& p : points) {
      const double memory = std::log2(static_cast<double>(p.arena.count));
      least_memory = std::min(least_memory, memory - 0.12);
      most_memory = std::max(most_memory, memory + 0.12);
      least_time = std::min(least_time, p.milliseconds);
      most_time = std::max(most_time, p.milliseconds);
    }
    tick = round_distance(most_time - least_time);
    bottom = tick * std::floor(least_time / tick);
    top = tick * std::ceil(most_time / tick + 0.05);
    if (most_memory - least_memory > 12) notch = 2;
  }
  double x(double bytes) const {
    return kLeft + (std::log2(bytes) - least_memory) / (most_memory - least_memory) *
                       (kWidth - kLeft - kRight);
  }
  double y(double milliseconds) const {
    return kTop + (top - milliseconds) / (top - bottom) * (kHeight - kTop - kBottom);
  }

  double least_memory = 1e300, most_memory = -1e300;  // base-two logarithms
  double bottom = 0, top = 1, tick = 1;               // milliseconds
  int notch = 1;                                      // doublings between two ticks of memory
};

std::string text(double x, double y, std::string_view anchor, std::string_view words,
                 std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, words);
}

std::string grid(const Frame& frame) {
  constexpr std::string_view kLine =
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e2e8f0\"/>\n";
  std::string svg;
  const double floor = frame.y(frame.bottom), ceiling = frame.y(frame.top);
  for (double at = frame.bottom; at < frame.top + frame.tick / 2; at += frame.tick) {
    svg += fmt::format(kLine, kLeft, frame.y(at), kWidth - kRight, frame.y(at));
    svg += text(kLeft - 8, frame.y(at) + 4, "end", fmt::format("{:g}", at));
  }
  for (int power = static_cast<int>(std::ceil(frame.least_memory)); power <= frame.most_memory;
       power += frame.notch) {
    const double bytes = std::exp2(power);
    svg += fmt::format(kLine, frame.x(bytes), floor, frame.x(bytes), ceiling);
    svg +=
        text(frame.x(bytes), floor + 18, "middle", to_string(Bytes(static_cast<int64_t>(bytes))));
  }
  svg += text((kLeft + kWidth - kRight) / 2, floor + 40, "middle", "arena");
  svg += text(kLeft - 8, ceiling - 10, "end", "ms");
  return svg;
}

// The names of all points that share a place, once.
std::string names_at(const std::vector<FrontierPoint>& points, const FrontierPoint& here) {
  std::vector<std::string> names;
  for (const FrontierPoint& p : points) {
    const bool same = p.arena == here.arena && p.milliseconds == here.milliseconds;
    if (p.policy == kBudgetPolicy) continue;  // the line has its name
    if (same && std::ranges::find(names, p.policy) == names.end()) names.push_back(p.policy);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Puts names beside points where no other name is: above or below, to the right or to the left.
class Labels {
 public:
  std::string add(double x, double y, std::string_view name) {
    const double width = 6.6 * static_cast<double>(name.size());
    for (const auto& [right, dy] :
         {std::pair(true, -8.0), {true, 18.0}, {false, -8.0}, {false, 18.0}}) {
      const Box box = {right ? x + 6 : x - 6 - width, y + dy, width};
      const bool inside = box.x > kLeft && box.x + box.width < kWidth;
      if (!inside || std::ranges::any_of(boxes_, [&](const Box& b) { return overlap(b, box); })) {
        continue;
      }
      boxes_.push_back(box);
      return text(right ? x + 6 : x - 6, y + dy, right ? "start" : "end", name);
    }
    return text(x, y - 8, "middle", name);
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

}  // namespace

std::string frontier_svg(const std::string& title, const std::vector<FrontierPoint>& points) {
  const Frame frame(points);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#2d3748\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += text(kLeft, 28, "start", title, " font-size=\"15\"");
  svg += grid(frame);

  std::vector<FrontierPoint> chosen;  // what a budget chooses from
  for (const FrontierPoint& p : points) {
    if (p.policy == kBudgetPolicy) chosen.push_back(p);
  }
  std::ranges::sort(chosen, {}, [](const FrontierPoint& p) { return p.arena; });
  std::string line;
  for (const FrontierPoint& p : chosen) {
    line += fmt::format("{:.1f},{:.1f} ", frame.x(static_cast<double>(p.arena.count)),
                        frame.y(p.milliseconds));
  }
  svg += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"#2b6cb0\" stroke-width=\"2\"/>\n", line);
  Labels labels;
  for (const FrontierPoint& p : points) {
    const bool on_line = p.policy == kBudgetPolicy;
    const double x = frame.x(static_cast<double>(p.arena.count)), y = frame.y(p.milliseconds);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: {}, {:.3g} ms, "
        "{:.1f} % more FLOPs</title></circle>\n",
        x, y, on_line ? "3" : "5", on_line ? "#2b6cb0" : "#dd6b20", p.policy, to_string(p.arena),
        p.milliseconds, 100 * p.extra_flops_ratio);
    const std::string names = names_at(points, p);
    if (on_line || !names.starts_with(p.policy)) continue;
    svg += labels.add(x, y, names);
  }
  if (!chosen.empty()) {
    const FrontierPoint& p = chosen[chosen.size() / 3];
    svg += text(frame.x(static_cast<double>(p.arena.count)) - 8, frame.y(p.milliseconds) + 16,
                "end", kBudgetPolicy, " fill=\"#2b6cb0\" font-weight=\"bold\"");
  }
  return svg + "</svg>\n";
}

}  // namespace thimble
