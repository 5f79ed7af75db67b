#include "report/curves_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/svg_chart.h"

namespace thimble {
namespace {

constexpr SvgChart::Box kCurvesBox = {.left = 76, .top = 48, .width = 660, .height = 320};
constexpr std::array<std::string_view, 4> kCurveColours = {"#3b5bdb", "#d9644a", "#2a9d8f",
                                                           "#8a63d2"};
constexpr size_t kMostCorners = 1200;

struct Range {
  double low = 1e300;
  double high = -1e300;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Of a long curve, means of as many values as share a corner.
std::string corners_of(const SvgChart& chart, const Curve& curve) {
  const size_t each = std::max<size_t>(1, curve.steps.size() / kMostCorners);
  std::string corners;
  for (size_t i = 0; i < curve.steps.size(); i += each) {
    double sum = 0;
    int count = 0;
    for (size_t k = i; k < std::min(i + each, curve.values.size()); ++k) {
      if (!std::isfinite(curve.values[k])) continue;
      sum += curve.values[k];
      ++count;
    }
    if (count == 0) continue;
    corners += fmt::format("{:.1f},{:.1f} ", chart.x(curve.steps[i]), chart.y(sum / count));
  }
  return corners;
}

}  // namespace

std::string curves_svg(const std::string& title, const std::vector<Curve>& curves) {
  Range steps, values;
  for (const Curve& curve : curves) {
    for (const double step : curve.steps) steps.take(step);
    for (const double value : curve.values) values.take(value);
  }
  if (steps.high < steps.low) steps = {0, 1};
  if (values.high < values.low) values = {0, 1};
  const double distance = round_distance(std::max(values.high - values.low, 1e-9), 5);
  values.low = distance * std::floor(values.low / distance);
  values.high = distance * std::ceil(values.high / distance + 1e-9);

  SvgChart chart(title, kCurvesBox, 24, 78);
  chart.y_axis(values.low, values.high, decimal_ticks(values.low, values.high, 6), "");
  chart.x_axis(0, steps.high, decimal_ticks(0, steps.high, 8), "step");
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string_view colour = kCurveColours[i % kCurveColours.size()];
    chart.add(
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                    "stroke-width=\"1.6\" stroke-linejoin=\"round\"/>\n",
                    corners_of(chart, curves[i]), colour));
    names.emplace_back(curves[i].name, colour);
  }
  chart.legend(names);
  return chart.finish();
}

}  // namespace thimble
