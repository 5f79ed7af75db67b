// Common parts of the pictures of reports: a frame, axes with ticks at round numbers, a legend,
// text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace thimble {

struct Tick {
  double at = 0;
  std::string label;
};
// About `count` round numbers in [low, high]: 1, 2 or 5 times a power of ten apart.
std::vector<Tick> decimal_ticks(double low, double high, int count);
// The same of bytes: a power of two apart, named in the largest unit that suits all of them.
std::vector<Tick> byte_ticks(double low, double high, int count);
// From 1, 2, 5, 10, 20, ... the one that cuts `range` into `count` at most.
double round_distance(double range, int count);

std::string_view colour_of(Role role);
std::string label_of(Role role);  // "optimizer state"

class SvgChart {
 public:
  struct Box {
    double left = 0, top = 0, width = 0, height = 0;  // of what the axes enclose
  };
  // `right` is room beside the frame.
  SvgChart(std::string_view title, Box box, double right, double bottom);

  // Ticks are in units of the axis, which runs from `low` to `high`; `rule` draws lines across.
  void x_axis(double low, double high, const std::vector<Tick>& ticks, std::string_view name,
              bool rule = false);
  void y_axis(double low, double high, const std::vector<Tick>& ticks, std::string_view name,
              bool rule = true);
  double x(double value) const { return box_.left + box_.width * (value - x_low_) / x_range_; }
  double y(double value) const {
    return box_.top + box_.height * (1 - (value - y_low_) / y_range_);
  }
  const Box& box() const { return box_; }

  void text(double x, double y, std::string_view anchor, std::string_view words,
            std::string_view more = "");
  // Elements as they are.
  void add(std::string_view svg) { body_ += svg; }
  // Names with a swatch each, below the axes.
  void legend(const std::vector<std::pair<std::string, std::string>>& names_and_colours);
  void roles_legend(const std::vector<bool>& shown);  // by Role

  // A complete SVG document.
  std::string finish() const;

 private:
  Box box_;
  double width_;
  double height_;
  double x_low_ = 0, x_range_ = 1, y_low_ = 0, y_range_ = 1;
  std::string body_;
};

}  // namespace thimble
