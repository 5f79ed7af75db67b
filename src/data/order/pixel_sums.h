// The mean and the deviation of pixels, channel by channel, from sums of whole numbers, so that
// neither the order nor the machine matters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace thimble {

class PixelSums {
 public:
  explicit PixelSums(int64_t channels)
      : sums_(static_cast<size_t>(channels)), squares_(sums_.size()) {}

  // Channels innermost.
  void add(std::span<const uint8_t> image) {
    for (size_t channel = 0; channel < sums_.size(); ++channel) {
      uint64_t sum = 0, square = 0;
      for (size_t at = channel; at < image.size(); at += sums_.size()) {
        const uint32_t pixel = image[at], squared = pixel * pixel;
        sum += pixel;
        square += squared;
      }
      sums_[channel] += sum;
      squares_[channel] += square;
    }
    const size_t pixels = image.size() / sums_.size();
    pixels_ += static_cast<double>(pixels);
  }

  std::vector<float> means() const {
    std::vector<float> means;
    for (const uint64_t sum : sums_) {
      means.push_back(static_cast<float>(static_cast<double>(sum) / pixels_));
    }
    return means;
  }
  // One at least.
  std::vector<float> deviations() const {
    std::vector<float> deviations;
    for (size_t channel = 0; channel < sums_.size(); ++channel) {
      const double mean = static_cast<double>(sums_[channel]) / pixels_;
      const double variance = static_cast<double>(squares_[channel]) / pixels_ - mean * mean;
      deviations.push_back(static_cast<float>(std::sqrt(std::max(variance, 1.0))));
    }
    return deviations;
  }

 private:
  std::vector<uint64_t> sums_, squares_;
  double pixels_ = 0;
};

}  // namespace thimble
