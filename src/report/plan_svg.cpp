#include "report/plan_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace thimble {
namespace {

constexpr double kLeft = 70, kTop = 44, kWidth = 860, kHeight = 380, kBottom = 60;
constexpr double kSmallest = 0.25;  // of a pixel: anything thinner would only blur

// By Role.
constexpr std::array<std::string_view, kRoles> kColours = {
    "#8c8c8c", "#2b6cb0", "#d69e2e", "#2c5282", "#68b0ab", "#a0aec0", "#c05640", "#cbd5e0"};

// Bytes [at, at + size) from the call that writes them to the last that reads them.
struct Stay {
  int64_t at = 0;
  int64_t size = 0;
  int first = 0;
  int last = 0;
  Role role = Role::activation;
};

class Stays {
 public:
  void write(int64_t at, int64_t size, int call, Role role) {
    // Whoever held these bytes is gone.
    auto it = current_.lower_bound(at);
    if (it != current_.begin() && std::prev(it)->second.at + std::prev(it)->second.size > at) --it;
    while (it != current_.end() && it->first < at + size) {
      done_.push_back(it->second);
      it = current_.erase(it);
    }
    current_[at] = {at, size, call, call, role};
  }

  void read(int64_t at, int call) {
    const auto it = current_.find(at);
    if (it != current_.end()) it->second.last = std::max(it->second.last, call);
  }

  std::vector<Stay> finish() {
    for (const auto& [at, stay] : current_) done_.push_back(stay);
    return std::move(done_);
  }

 private:
  std::map<int64_t, Stay> current_;  // by address
  std::vector<Stay> done_;
};

std::vector<Stay> stays_of(const Graph& graph, const Plan& plan) {
  Stays stays;
  const int last = static_cast<int>(plan.calls.size()) - 1;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (plan.sources[v].count < 0) continue;
    stays.write(plan.sources[v].count, value.type.bytes().count, 0, value.role);
    if (is_persistent(value.role)) stays.read(plan.sources[v].count, last);
  }
  for (size_t s = 0; s < plan.calls.size(); ++s) {
    const PlannedCall& call = plan.calls[s];
    const Node& node = graph[call.node];
    const int now = static_cast<int>(s);
    for (const Bytes at : call.inputs) stays.read(at.count, now);
    if (call.workspace_size.count > 0) {
      stays.write(call.workspace_at.count, call.workspace_size.count, now, Role::workspace);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const Value& value = graph[node.outputs[k]];
      const bool lasts = is_persistent(value.role);
      stays.write(call.outputs[k].count, value.type.bytes().count, now, value.role);
      if (lasts) stays.read(call.outputs[k].count, last);
    }
  }
  return stays.finish();
}

std::string text(double x, double y, std::string_view anchor, std::string_view content) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     content);
}

std::string legend(const std::vector<Stay>& stays) {
  std::string svg;
  double x = kLeft;
  for (int r = 0; r < kRoles; ++r) {
    const Role role = static_cast<Role>(r);
    if (std::ranges::none_of(stays, [&](const Stay& s) { return s.role == role; })) continue;
    std::string name(name_of(role));
    std::replace(name.begin(), name.end(), '_', ' ');
    svg += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                       x, kTop + kHeight + 34, kColours[static_cast<size_t>(r)]);
    svg += text(x + 17, kTop + kHeight + 44, "start", name);
    x += 40 + 7.0 * static_cast<double>(name.size());
  }
  return svg;
}

}  // namespace

std::string plan_svg(const Graph& graph, const Plan& plan) {
  const std::vector<Stay> stays = stays_of(graph, plan);
  const double calls = static_cast<double>(std::max<size_t>(1, plan.calls.size()));
  const double bytes = static_cast<double>(std::max<int64_t>(1, plan.arena.count));
  const auto x = [&](int call) { return kLeft + kWidth * call / calls; };
  const auto y = [&](int64_t at) { return kTop + kHeight * (1 - static_cast<double>(at) / bytes); };

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"13\" fill=\"#2d3748\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
      kLeft + kWidth + 20, kTop + kHeight + kBottom);
  svg += text(kLeft, 26, "start",
              fmt::format("{}: one training step in an arena of {} bytes ({})", graph.name,
                          plan.arena.count, to_string(plan.arena)));
  for (const Stay& stay : stays) {
    const double height = y(stay.at) - y(stay.at + stay.size);
    if (height < kSmallest) continue;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "stroke=\"#fff\" stroke-width=\"0.3\"/>\n",
        x(stay.first), y(stay.at + stay.size), x(stay.last + 1) - x(stay.first), height,
        kColours[static_cast<size_t>(stay.role)]);
  }
  svg += fmt::format(
      "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"none\" "
      "stroke=\"#2d3748\"/>\n",
      kLeft, kTop, kWidth, kHeight);
  svg += text(kLeft - 6, kTop + 10, "end", to_string(plan.arena));
  svg += text(kLeft - 6, kTop + kHeight, "end", "0");
  svg += text(kLeft, kTop + kHeight + 18, "start", "call 1");
  svg +=
      text(kLeft + kWidth, kTop + kHeight + 18, "end", fmt::format("call {}", plan.calls.size()));
  svg += legend(stays);
  return svg + "</svg>\n";
}

}  // namespace thimble
