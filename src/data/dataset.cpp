#include "data/dataset.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/sha256.h"

namespace thimble {

std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

void check_read(const DatasetInfo& info, Split split, int64_t index,
                std::span<const uint8_t> image) {
  internal_check(index >= 0 && index < info.count(split), "Dataset::read: no such record");
  internal_check(std::ssize(image) == info.image.elements(), "Dataset::read: wrong image size");
}

void measure(const Dataset& dataset, DatasetInfo& info) {
  const auto channels = static_cast<size_t>(info.image.back());
  std::vector<uint8_t> image(static_cast<size_t>(info.image.elements()));
  // Whole numbers, so that neither the order nor the machine matters.
  std::vector<uint64_t> sums(channels), squares(channels);
  const auto read_into = [&](Split split, int64_t index, Sha256& hash) {
    int32_t label = 0;
    dataset.read(split, index, image, label);
    hash.update(std::as_bytes(std::span(image)));
    hash.update(std::as_bytes(std::span(&label, 1)));
  };
  Sha256 of_training, of_test;
  for (int64_t i = 0; i < info.train_count; ++i) {
    read_into(Split::train, i, of_training);
    for (size_t channel = 0; channel < channels; ++channel) {
      uint64_t sum = 0, square = 0;
      for (size_t at = channel; at < image.size(); at += channels) {
        const uint32_t pixel = image[at];
        sum += pixel;
        square += pixel * pixel;
      }
      sums[channel] += sum;
      squares[channel] += square;
    }
  }
  for (int64_t i = 0; i < info.test_count; ++i) read_into(Split::test, i, of_test);
  info.train_sha256 = of_training.hex();
  info.test_sha256 = of_test.hex();

  const double pixels = static_cast<double>(info.train_count) * static_cast<double>(image.size()) /
                        static_cast<double>(channels);
  info.mean.clear();
  info.stddev.clear();
  for (size_t channel = 0; channel < channels; ++channel) {
    const double mean = static_cast<double>(sums[channel]) / pixels;
    const double variance = static_cast<double>(squares[channel]) / pixels - mean * mean;
    info.mean.push_back(static_cast<float>(mean));
    info.stddev.push_back(static_cast<float>(std::sqrt(std::max(variance, 1.0))));
  }
}

}  // namespace thimble
