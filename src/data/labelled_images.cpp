#include "data/labelled_images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/sha256.h"

namespace thimble {

LabelledImages::LabelledImages(std::string name, const Shape& image, int64_t classes)
    : info_{.name = std::move(name)} {
  info_.fields = {{.name = std::string(kPixels), .dtype = DType::u8, .shape = image, .image = true},
                  // No class is below zero, so that the padding of a batch is none of them.
                  {.name = std::string(kLabel), .dtype = DType::i32, .limit = classes, .pad = -1}};
}

void LabelledImages::set_counts(int64_t train, int64_t test) {
  info_.train_count = train;
  info_.test_count = test;
}

void LabelledImages::read(Split split, int64_t index, std::span<const RecordPart> parts) const {
  internal_check(index >= 0 && index < info_.count(split), "Dataset::read: no such record");
  internal_check(parts.size() == 2 && parts[0].data != nullptr && parts[0].whole() &&
                     parts[0].entry * parts[0].entries == image().elements(),
                 "Dataset::read: wrong image size");
  int32_t label = 0;
  read_image(split, index, parts[0].all<uint8_t>(), label);
  if (parts[1].data != nullptr) parts[1].all<int32_t>()[0] = label;
}

void LabelledImages::set_statistics(const std::vector<float>& mean,
                                    const std::vector<float>& deviation) {
  std::vector<float> inverse;
  for (const float one : deviation) inverse.push_back(1 / one);
  info_.constants = {{std::string(kPixelMean), mean},
                     {std::string(kPixelInverseDeviation), inverse}};
}

void LabelledImages::measure() {
  const auto channels = static_cast<size_t>(image().back());
  std::vector<uint8_t> bytes(static_cast<size_t>(image().elements()));
  // Whole numbers, so that neither the order nor the machine matters.
  std::vector<uint64_t> sums(channels), squares(channels);
  const auto read_into = [&](Split split, int64_t index, Sha256& hash) {
    int32_t label = 0;
    read_image(split, index, bytes, label);
    hash.update(std::as_bytes(std::span(bytes)));
    hash.update(std::as_bytes(std::span(&label, 1)));
  };
  Sha256 of_training, of_test;
  for (int64_t i = 0; i < info_.train_count; ++i) {
    read_into(Split::train, i, of_training);
    for (size_t channel = 0; channel < channels; ++channel) {
      uint64_t sum = 0, square = 0;
      for (size_t at = channel; at < bytes.size(); at += channels) {
        const uint32_t pixel = bytes[at];
        sum += pixel;
        square += pixel * pixel;
      }
      sums[channel] += sum;
      squares[channel] += square;
    }
  }
  for (int64_t i = 0; i < info_.test_count; ++i) read_into(Split::test, i, of_test);
  info_.train_sha256 = of_training.hex();
  info_.test_sha256 = of_test.hex();

  const double pixels = static_cast<double>(info_.train_count) * static_cast<double>(bytes.size()) /
                        static_cast<double>(channels);
  std::vector<float> means, deviations;
  for (size_t channel = 0; channel < channels; ++channel) {
    const double mean = static_cast<double>(sums[channel]) / pixels;
    const double variance = static_cast<double>(squares[channel]) / pixels - mean * mean;
    means.push_back(static_cast<float>(mean));
    deviations.push_back(static_cast<float>(std::sqrt(std::max(variance, 1.0))));
  }
  set_statistics(means, deviations);
}

}  // namespace thimble
