#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/format/picture.h"

namespace thimble {
namespace {

constexpr int64_t kOne = 1 << 14;  // weights are in parts of this

// Which pixels of a line make one of the result, and how much each counts; in all kOne.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

// A line of `from` pixels beginning at `begin`, as `to`: a triangle about each new pixel's middle, one
// new pixel wide to both sides, but of one old pixel at least.
std::vector<Taps> taps_of(int64_t begin, int64_t from, int64_t to, int64_t whole) {
  std::vector<Taps> all(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(1.0, scale);
  for (int64_t i = 0; i < to; ++i) {
    Taps& taps = all[static_cast<size_t>(i)];
    const double middle = static_cast<double>(begin) + (static_cast<double>(i) + 0.5) * scale - 0.5;
    const int64_t last = std::min(whole - 1, static_cast<int64_t>(middle + reach));
    taps.first = std::clamp<int64_t>(static_cast<int64_t>(middle - reach) + 1, 0, last);
    double sum = 0;
    std::vector<double> exact;
    for (int64_t p = taps.first; p <= last; ++p) {
      const double away = static_cast<double>(p) - middle;
      exact.push_back(std::max(1e-9, 1 - (away < 0 ? -away : away) / reach));
      sum += exact.back();
    }
    int64_t left = kOne;
    for (const double one : exact) {
      taps.weights.push_back(static_cast<int32_t>(one / sum * static_cast<double>(kOne)));
      left -= taps.weights.back();
    }
    taps.weights[taps.weights.size() / 2] += static_cast<int32_t>(left);
  }
  return all;
}

}  // namespace

bool is_picture(std::string_view name) {
  const auto ends = [&](std::string_view suffix) {
    return name.size() > suffix.size() &&
           std::ranges::equal(name.substr(name.size() - suffix.size()), suffix, {},
                              [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  };
  return ends(".jpg") || ends(".jpeg") || ends(".png");
}

void resize_and_crop(const Picture& picture, const Shape& image_hwc, std::span<uint8_t> out) {
  const int64_t height = image_hwc[0], width = image_hwc[1], channels = image_hwc[2];
  internal_check(picture.channels == channels && std::ssize(out) == image_hwc.elements(),
                 "resize_and_crop: another size");
  // The largest part with the shape of the result.
  int64_t tall = picture.height, wide = picture.width;
  if (tall * width > wide * height) {
    tall = std::max<int64_t>(1, wide * height / width);
  } else {
    wide = std::max<int64_t>(1, tall * width / height);
  }
  const auto rows = taps_of((picture.height - tall) / 2, tall, height, picture.height);
  const auto columns = taps_of((picture.width - wide) / 2, wide, width, picture.width);
  std::vector<int32_t> line(static_cast<size_t>(picture.width * channels));
  for (int64_t y = 0; y < height; ++y) {
    const Taps& down = rows[static_cast<size_t>(y)];
    std::ranges::fill(line, 0);
    for (size_t k = 0; k < down.weights.size(); ++k) {
      const uint8_t* const from =
          picture.pixels.data() + (down.first + static_cast<int64_t>(k)) * picture.width * channels;
      for (size_t x = 0; x < line.size(); ++x) line[x] += down.weights[k] * from[x];
    }
    for (int64_t x = 0; x < width; ++x) {
      const Taps& across = columns[static_cast<size_t>(x)];
      for (int64_t channel = 0; channel < channels; ++channel) {
        int64_t sum = kOne * kOne / 2;
        for (size_t k = 0; k < across.weights.size(); ++k) {
          const int64_t at = (across.first + static_cast<int64_t>(k)) * channels + channel;
          sum += static_cast<int64_t>(across.weights[k]) * line[static_cast<size_t>(at)];
        }
        out[static_cast<size_t>((y * width + x) * channels + channel)] =
            static_cast<uint8_t>(std::clamp<int64_t>(sum / (kOne * kOne), 0, 255));
      }
    }
  }
}

}  // namespace thimble
