#include "report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/markup.h"

namespace thimble {
namespace {

constexpr std::string_view kInk = "#2d3748", kFaint = "#718096", kRule = "#e2e8f0";

// By Role: colours of the page (report/page/theme.css), in its light theme.
constexpr std::array<std::string_view, kRoles> kColours = {"#9aa5b1", "#3b5bdb", "#e8a33d",
                                                           "#8a63d2", "#2a9d8f", "#6b7b8c",
                                                           "#d9644a", "#c3cad2", "#5aa9d6"};

std::string line(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

}  // namespace

double round_distance(double range, int count) {
  const double rough = std::max(range, 1e-12) / count;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= rough * (1 - 1e-9)) return factor * decade;
  }
  return 10 * decade;
}

std::vector<Tick> decimal_ticks(double low, double high, int count) {
  const double distance = round_distance(high - low, count);
  std::vector<Tick> ticks;
  for (double n = std::ceil(low / distance - 1e-9); n * distance <= high * (1 + 1e-9); ++n) {
    const double at = n * distance + 0.0;  // no minus zero
    ticks.push_back({at, fmt::format("{:g}", at)});
  }
  return ticks;
}

std::vector<Tick> byte_ticks(double low, double high, int count) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double one = 1;
  while (high / one >= 1024 && unit + 1 < kUnits.size()) {
    one *= 1024;
    ++unit;
  }
  const double distance = std::exp2(std::ceil(std::log2(std::max(high - low, 1.0) / count)));
  std::vector<Tick> ticks;
  for (double n = std::ceil(low / distance); n * distance <= high; ++n) {
    ticks.push_back(
        {n * distance, n == 0 ? "0" : fmt::format("{:g} {}", n * distance / one, kUnits[unit])});
  }
  return ticks;
}

std::string_view colour_of(Role role) { return kColours[static_cast<size_t>(role)]; }

std::string label_of(Role role) {
  if (role == Role::workspace) return "scratch";
  if (role == Role::input) return "data";
  std::string name(name_of(role));
  std::ranges::replace(name, '_', ' ');
  return name;
}

SvgChart::SvgChart(std::string_view title, Box box, double right, double bottom)
    : box_(box), width_(box.left + box.width + right), height_(box.top + box.height + bottom) {
  text(box.left, box.top - 18, "start", title, " font-size=\"15\"");
}

void SvgChart::x_axis(double low, double high, const std::vector<Tick>& ticks,
                      std::string_view name, bool rule) {
  x_low_ = low;
  x_range_ = high > low ? high - low : 1;
  const double floor = box_.top + box_.height;
  for (const Tick& tick : ticks) {
    if (rule) body_ += line(x(tick.at), box_.top, x(tick.at), floor, kRule);
    body_ += line(x(tick.at), floor, x(tick.at), floor + 5, kInk);
    text(x(tick.at), floor + 19, "middle", tick.label);
  }
  text(box_.left + box_.width / 2, floor + 38, "middle", name, fmt::format(" fill=\"{}\"", kFaint));
}

void SvgChart::y_axis(double low, double high, const std::vector<Tick>& ticks,
                      std::string_view name, bool rule) {
  y_low_ = low;
  y_range_ = high > low ? high - low : 1;
  for (const Tick& tick : ticks) {
    if (rule) body_ += line(box_.left, y(tick.at), box_.left + box_.width, y(tick.at), kRule);
    body_ += line(box_.left - 5, y(tick.at), box_.left, y(tick.at), kInk);
    text(box_.left - 9, y(tick.at) + 4, "end", tick.label);
  }
  if (name.empty()) return;
  const double middle = box_.top + box_.height / 2;
  text(16, middle, "middle", name,
       fmt::format(" fill=\"{}\" transform=\"rotate(-90 16 {:.1f})\"", kFaint, middle));
}

void SvgChart::text(double x, double y, std::string_view anchor, std::string_view words,
                    std::string_view more) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                       anchor, more, escaped_markup(words));
}

void SvgChart::legend(const std::vector<std::pair<std::string, std::string>>& entries) {
  double x = box_.left;
  const double y = box_.top + box_.height + 54;
  for (const auto& [name, colour] : entries) {
    body_ += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{}\"/>\n", x, y,
        colour);
    text(x + 16, y + 10, "start", name);
    x += 36 + 6.6 * static_cast<double>(name.size());
  }
}

void SvgChart::roles_legend(const std::vector<bool>& shown) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (size_t r = 0; r < shown.size(); ++r) {
    const Role role = static_cast<Role>(r);
    if (shown[r]) entries.emplace_back(label_of(role), colour_of(role));
  }
  legend(entries);
}

std::string SvgChart::finish() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n{3}"
      "<rect x=\"{4:.1f}\" y=\"{5:.1f}\" width=\"{6:.1f}\" height=\"{7:.1f}\" fill=\"none\" "
      "stroke=\"{2}\"/>\n</svg>\n",
      width_, height_, kInk, body_, box_.left, box_.top, box_.width, box_.height);
}

}  // namespace thimble
