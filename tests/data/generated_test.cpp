#include "data/generated.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/io/sha256.h"

namespace thimble {
namespace {

// The share of test records whose nearest class mean (over some training records) is their own: a
// model that cannot beat this learns nothing.
template <class Read>
double nearest_mean_accuracy(size_t size, size_t classes, const Read& read) {
  std::vector<std::vector<double>> means(classes, std::vector<double>(size));
  std::vector<double> counts(classes), record(size);
  for (int64_t i = 0; i < 1000; ++i) {
    const auto label = static_cast<size_t>(read(Split::train, i, record));
    ++counts[label];
    for (size_t p = 0; p < size; ++p) means[label][p] += record[p];
  }
  for (size_t k = 0; k < classes; ++k) {
    for (double& mean : means[k]) mean /= counts[k];
  }
  int right = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const auto label = static_cast<size_t>(read(Split::test, i, record));
    size_t best = 0;
    double best_distance = INFINITY;
    for (size_t k = 0; k < classes; ++k) {
      double distance = 0;
      for (size_t p = 0; p < size; ++p) {
        distance += (record[p] - means[k][p]) * (record[p] - means[k][p]);
      }
      if (distance < best_distance) best = k, best_distance = distance;
    }
    right += best == label;
  }
  return right / 500.0;
}

TEST(Generated, IsLearnable) {
  for (const Shape& image : {Shape{8, 8, 1}, Shape{32, 32, 3}}) {
    const ImageSpec spec = {.image = image};
    std::vector<uint8_t> bytes(static_cast<size_t>(image.elements()));
    const double accuracy =
        nearest_mean_accuracy(bytes.size(), 10, [&](Split split, int64_t i, auto& record) {
          int32_t label = -1;
          generated_image(spec, 0, split, i, bytes, label);
          record.assign(bytes.begin(), bytes.end());
          return label;
        });
    EXPECT_GT(accuracy, 0.95) << to_string(image);
  }
}

TEST(Generated, SaysItsStatisticsTruly) {
  const ImageSpec spec = {.image = {16, 16, 3}, .classes = 100};
  std::vector<uint8_t> image(16 * 16 * 3);
  int32_t label = -1;
  std::array<double, 3> sums{}, squares{};
  for (int64_t i = 0; i < 2000; ++i) {
    generated_image(spec, 0, Split::train, i, image, label);
    for (size_t p = 0; p < image.size(); ++p) {
      sums[p % 3] += image[p];
      squares[p % 3] += image[p] * image[p];
    }
  }
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sums[c] / (2000 * 256), square = squares[c] / (2000 * 256);
    EXPECT_NEAR(mean, kGeneratedMean, 4);
    EXPECT_NEAR(std::sqrt(square - mean * mean), kGeneratedDeviation, 4);
  }
}

TEST(Generated, IsTheSameEverywhereAndEndless) {
  const ImageSpec spec = {.image = {7, 5, 3}, .classes = 4};
  Sha256 sha;
  std::vector<uint8_t> image(7 * 5 * 3);
  int32_t label = -1;
  for (const int64_t index : {int64_t{0}, int64_t{9}, int64_t{1} << 40}) {
    for (const Split split : {Split::train, Split::test}) {
      generated_image(spec, 0, split, index, image, label);
      EXPECT_GE(label, 0);
      EXPECT_LT(label, 4);
      sha.update(std::as_bytes(std::span(image)));
    }
  }
  EXPECT_EQ(sha.hex(), "68aad7ccb801ea2650d9784945a1bfebf4312e65a3c9b50181975db99292f69e");
}

TEST(Generated, SplitsSeedsAndRecordsDiffer) {
  const auto bytes_of = [](uint64_t seed, Split split, int64_t index) {
    std::vector<uint8_t> image(64);
    int32_t label = -1;
    generated_image({.image = {8, 8, 1}}, seed, split, index, image, label);
    return image;
  };
  const std::vector<uint8_t> one = bytes_of(0, Split::train, 0);
  EXPECT_EQ(one, bytes_of(0, Split::train, 0));
  EXPECT_NE(one, bytes_of(1, Split::train, 0));
  EXPECT_NE(one, bytes_of(0, Split::test, 0));
  EXPECT_NE(one, bytes_of(0, Split::train, 1));
  EXPECT_NE(one, bytes_of(0, Split::train, int64_t{1} << 32));
}

TEST(Generated, EveryClassOccurs) {
  std::vector<int> counts(10);
  std::vector<uint8_t> image(1);
  int32_t label = -1;
  for (int64_t i = 0; i < 10'000; ++i) {
    generated_image({.image = {1, 1, 1}, .classes = 10}, 0, Split::train, i, image, label);
    ++counts.at(static_cast<size_t>(label));
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five deviations of 30
}

std::unique_ptr<Dataset> generated(const Shape& image, int64_t classes, int64_t train) {
  return open_dataset("generated",
                      {.wanted = {{.name = "pixels", .dtype = DType::u8, .shape = image},
                                  {.name = "label", .dtype = DType::i32, .limit = classes}},
                       .train_count = train});
}

TEST(Generated, RefusesAnEmptySet) {
  EXPECT_THROW(generated({0, 8, 1}, 10, 10), UserError);
  EXPECT_THROW(generated({8, 8}, 10, 10), UserError);
  EXPECT_THROW(generated({8, 8, 1}, 0, 10), UserError);
  EXPECT_THROW(generated({8, 8, 1}, 10, 0), UserError);
}

TEST(GeneratedSequence, IsLearnable) {
  for (const int64_t features : {1, 8}) {
    const SequenceSpec spec{.length = 24, .features = features, .classes = 10};
    std::vector<float> values(static_cast<size_t>(24 * features));
    const double accuracy =
        nearest_mean_accuracy(values.size(), 10, [&](Split split, int64_t i, auto& record) {
          int32_t label = -1;
          generated_sequence(spec, 0, split, i, values, features, label);
          record.assign(values.begin(), values.end());
          return label;
        });
    EXPECT_GT(accuracy, 0.9) << features;
  }
}

TEST(GeneratedSequence, FillsItsColumnOfABatchOnly) {
  constexpr int64_t kLength = 6, kBatch = 3, kFeatures = 5;
  const SequenceSpec spec{.length = kLength, .features = kFeatures, .classes = 4};
  std::vector<float> alone(kLength * kFeatures), batch(kLength * kBatch * kFeatures, 99.f);
  int32_t label = -1, batch_label = -1;
  generated_sequence(spec, 1, Split::train, 17, alone, kFeatures, label);
  generated_sequence(spec, 1, Split::train, 17, std::span(batch).subspan(2 * kFeatures),
                     kBatch * kFeatures, batch_label);
  EXPECT_EQ(label, batch_label);
  for (size_t t = 0; t < kLength; ++t) {
    for (size_t b = 0; b < kBatch; ++b) {
      for (size_t i = 0; i < kFeatures; ++i) {
        EXPECT_EQ(batch[(t * kBatch + b) * kFeatures + i],
                  b == 2 ? alone[t * kFeatures + i] : 99.f);
      }
    }
  }
  for (const float value : alone) EXPECT_LE(std::abs(value), 2.f);
  EXPECT_THROW(
      generated_sequence(spec, 1, Split::train, 0, std::span(alone).first(29), kFeatures, label),
      InternalError);
}

}  // namespace
}  // namespace thimble
