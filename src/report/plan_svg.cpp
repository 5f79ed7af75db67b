#include "report/plan_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "plan/bytes/allocation_timeline.h"
#include "report/svg_chart.h"

namespace thimble {
namespace {

constexpr SvgChart::Box kBox = {.left = 92, .top = 48, .width = 850, .height = 380};
constexpr double kRight = 24, kBottom = 78;
constexpr double kSmallest = 0.25;  // of a pixel: anything thinner would only blur

// The longest-lived roles lie lowest.
constexpr std::array<Role, kRoles> kStack = {
    Role::frozen,   Role::weight, Role::optimizer_state, Role::statistic, Role::constant,
    Role::gradient, Role::input,  Role::activation,      Role::workspace};

std::vector<bool> shown_roles(const std::vector<Allocation>& allocations) {
  std::vector<bool> shown(kRoles, false);
  for (const Allocation& allocation : allocations)
    shown[static_cast<size_t>(allocation.role)] = true;
  return shown;
}

SvgChart chart_of(const Graph& graph, const Plan& plan, std::string_view what, double most,
                  std::string_view upwards) {
  SvgChart chart(fmt::format("{}: {}, an arena of {} bytes ({})", graph.name, what,
                             plan.arena.count, to_string(plan.arena)),
                 kBox, kRight, kBottom);
  const double calls = static_cast<double>(std::max<size_t>(1, plan.calls.size()));
  chart.y_axis(0, most, byte_ticks(0, most, 8), upwards);
  chart.x_axis(0, calls, decimal_ticks(0, calls, 10), "call of the step");
  return chart;
}

using ByRole = std::array<int64_t, kRoles>;

std::vector<ByRole> live_by_role(const std::vector<Allocation>& allocations, size_t calls) {
  std::vector<ByRole> live(calls + 1, ByRole{});
  for (const Allocation& allocation : allocations) {
    const size_t role = static_cast<size_t>(allocation.role);
    live[static_cast<size_t>(allocation.first)][role] += allocation.size.count;
    live[static_cast<size_t>(allocation.last) + 1][role] -= allocation.size.count;
  }
  for (size_t s = 1; s < live.size(); ++s) {
    for (size_t r = 0; r < kRoles; ++r) live[s][r] += live[s - 1][r];
  }
  live.resize(calls);
  return live;
}

// Bytes over calls as the corners of a line; a stretch that stays level has two.
class Staircase {
 public:
  explicit Staircase(const SvgChart& chart) : chart_(chart) {}

  void add(size_t first, size_t end, int64_t bytes) {
    if (end_ > 0 && bytes == bytes_) {
      end_ = end;
      return;
    }
    close();
    begin_ = first;
    end_ = end;
    bytes_ = bytes;
  }

  std::vector<std::string> finish() {
    close();
    return std::move(corners_);
  }

 private:
  void close() {
    if (end_ == 0) return;
    for (const size_t call : {begin_, end_}) {
      corners_.push_back(fmt::format("{:.1f},{:.1f}", chart_.x(static_cast<double>(call)),
                                     chart_.y(static_cast<double>(bytes_))));
    }
  }

  const SvgChart& chart_;
  size_t begin_ = 0, end_ = 0;  // of the stretch so far; end 0: none
  int64_t bytes_ = 0;
  std::vector<std::string> corners_;
};

// The outline of a band from `low` to `high`, by call. Calls that share a pixel with a fuller one are
// left out.
std::string band(const SvgChart& chart, const std::vector<int64_t>& low,
                 const std::vector<int64_t>& high, std::string_view colour) {
  const size_t calls = low.size();
  const size_t step = std::max<size_t>(1, calls / 1000);
  Staircase up(chart), down(chart);
  for (size_t s = 0; s < calls; s += step) {
    size_t fullest = s;
    for (size_t t = s; t < std::min(calls, s + step); ++t) {
      if (high[t] > high[fullest]) fullest = t;
    }
    up.add(s, std::min(calls, s + step), high[fullest]);
    down.add(s, std::min(calls, s + step), low[fullest]);
  }
  std::vector<std::string> corners = up.finish(), back = down.finish();
  corners.insert(corners.end(), back.rbegin(), back.rend());
  return fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", fmt::join(corners, " "), colour);
}

}  // namespace

std::string plan_svg(const Graph& graph, const Plan& plan) {
  const std::vector<Allocation> allocations = allocations_of(graph, plan);
  const double most = static_cast<double>(std::max<int64_t>(1, plan.arena.count));
  SvgChart chart = chart_of(graph, plan, "one training step", most, "address in the arena");
  for (const Allocation& allocation : allocations) {
    const double top = chart.y(static_cast<double>((allocation.at + allocation.size).count));
    const double height = chart.y(static_cast<double>(allocation.at.count)) - top;
    if (height < kSmallest) continue;
    const double left = chart.x(allocation.first);
    chart.add(fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "stroke=\"#fff\" stroke-width=\"0.3\"/>\n",
        left, top, chart.x(allocation.last + 1) - left, height, colour_of(allocation.role)));
  }
  chart.roles_legend(shown_roles(allocations));
  return chart.finish();
}

std::string memory_svg(const Graph& graph, const Plan& plan, Bytes budget) {
  const std::vector<Allocation> allocations = allocations_of(graph, plan);
  const std::vector<ByRole> live = live_by_role(allocations, plan.calls.size());
  const double most = 1.04 * static_cast<double>(std::max(plan.arena, budget).count);
  SvgChart chart = chart_of(graph, plan, "memory over one step", most, "live bytes");
  std::vector<int64_t> low(live.size(), 0);
  for (const Role role : kStack) {
    std::vector<int64_t> high = low;
    for (size_t s = 0; s < live.size(); ++s) high[s] += live[s][static_cast<size_t>(role)];
    if (high != low) chart.add(band(chart, low, high, colour_of(role)));
    low = std::move(high);
  }
  const auto limit = [&](Bytes bytes, std::string_view name, std::string_view colour) {
    const double y = chart.y(static_cast<double>(bytes.count));
    chart.add(
        fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                    "stroke=\"{}\" stroke-dasharray=\"5 3\"/>\n",
                    kBox.left, y, kBox.left + kBox.width, y, colour));
    chart.text(kBox.left + kBox.width - 6, y - 5, "end", name);
  };
  limit(plan.arena, "arena", "#2d3748");
  if (budget.count > 0) limit(budget, "budget", "#c53030");
  chart.roles_legend(shown_roles(allocations));
  return chart.finish();
}

}  // namespace thimble
