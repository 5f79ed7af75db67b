#include "data/labelled_images.h"

#include "base/error.h"
#include "base/io/sha256.h"

namespace thimble {

std::vector<DataConstant> pixel_constants(const std::vector<float>& mean,
                                          const std::vector<float>& deviation) {
  std::vector<float> inverse;
  for (const float one : deviation) inverse.push_back(1 / one);
  return {{std::string(kPixelMean), mean}, {std::string(kPixelInverseDeviation), inverse}};
}

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

void LabelledImages::measure() {
  std::vector<uint8_t> bytes(static_cast<size_t>(image().elements()));
  PixelSums sums(image().back());
  const auto read_into = [&](Split split, int64_t index, Sha256& hash) {
    int32_t label = 0;
    read_image(split, index, bytes, label);
    hash.update(std::as_bytes(std::span(bytes)));
    hash.update(std::as_bytes(std::span(&label, 1)));
  };
  Sha256 of_training, of_test;
  for (int64_t i = 0; i < info_.train_count; ++i) {
    read_into(Split::train, i, of_training);
    sums.add(bytes);
  }
  for (int64_t i = 0; i < info_.test_count; ++i) read_into(Split::test, i, of_test);
  set_sha256(of_training.hex(), of_test.hex());
  set_statistics(sums.means(), sums.deviations());
}

}  // namespace thimble
