#include "weights/average.h"

#include <gtest/gtest.h>

#include <array>

#include "../file_support.h"
#include "base/error.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

class Average : public testing::Test {
 protected:
  template <class T>
  std::string file(const char* name, std::vector<T> numbers, DType dtype,
                   const char* tensor = "w") {
    const std::string path = folder_ / name;
    const TensorToWrite one = {
        tensor, {{std::ssize(numbers)}, dtype}, std::as_bytes(std::span(numbers)), {}};
    write_safetensors(path, {&one, 1}, {{"model", "x"}});
    return path;
  }
  template <class T>
  std::vector<T> mean(std::vector<std::string> paths) {
    average_weights(paths, folder_ / "mean");
    const SafetensorsFile read(folder_ / "mean");
    EXPECT_EQ(read.metadata().at("model"), "x");
    std::vector<T> numbers(static_cast<size_t>(read.at("w").type.elements()));
    read.read_into("w", std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }
  TemporaryFolder folder_;
};

TEST_F(Average, IsTheMean) {
  const auto a = file<float>("a", {1, 2, 0.1f}, DType::f32);
  const auto b = file<float>("b", {3, 2, 0.1f}, DType::f32);
  const auto c = file<float>("c", {5, 2, 0.1f}, DType::f32);
  EXPECT_EQ(mean<float>({a, b, c}), (std::vector<float>{3, 2, 0.1f}));
  EXPECT_EQ(mean<float>({a}), (std::vector<float>{1, 2, 0.1f}));
  const auto h = file<Half>("h", {Half(1.0f), Half(4.0f)}, DType::f16);
  const auto k = file<Half>("k", {Half(2.0f), Half(8.0f)}, DType::f16);
  EXPECT_EQ(static_cast<float>(mean<Half>({h, k})[0]), 1.5f);
}

TEST_F(Average, OfLargeTensorsComesInPieces) {
  std::vector<float> ones(300'000, 1), threes(300'000, 3);
  const auto all = mean<float>({file("a", ones, DType::f32), file("b", threes, DType::f32)});
  for (const float number : all) ASSERT_EQ(number, 2);
}

TEST_F(Average, OfOtherModelsThereIsNone) {
  const auto a = file<float>("a", {1, 2}, DType::f32);
  const auto b = file<float>("b", {1, 2, 3}, DType::f32);
  const auto c = file<float>("c", {1, 2}, DType::f32, "v");
  for (const auto& other : {b, c}) {
    EXPECT_TRUE(throws_saying<UserError>([&] { mean<float>({a, other}); }, "different models"));
  }
  const auto i = file<int32_t>("i", {1, 2}, DType::i32);
  const auto j = file<int32_t>("j", {1, 3}, DType::i32);
  EXPECT_EQ(mean<int32_t>({i, i}), (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(throws_saying<UserError>([&] { mean<int32_t>({i, j}); }, "whole numbers"));
}

// Two weights, a of 10 elements and b of 3, whose nonzeros lie in one pool, in this order or the other.
class SparseAverage : public Average {
 protected:
  std::string packed(const char* name, std::vector<float> values, std::vector<uint8_t> mask_a,
                     int64_t first_a, uint8_t mask_b, int64_t first_b) {
    const std::string path = folder_ / name;
    const auto bytes = [](const auto& numbers) { return std::as_bytes(std::span(numbers)); };
    const std::array firsts = {first_a, first_b};
    const std::array tensors = {
        TensorToWrite{"sparse.values", {{std::ssize(values)}, DType::f32}, bytes(values), {}},
        TensorToWrite{"a.mask", {{2}, DType::u8}, bytes(mask_a), {}},
        TensorToWrite{"a.first", {{1}, DType::i64}, bytes(firsts).first(8), {}},
        TensorToWrite{"b.mask", {{1}, DType::u8}, std::as_bytes(std::span(&mask_b, 1)), {}},
        TensorToWrite{"b.first", {{1}, DType::i64}, bytes(firsts).last(8), {}}};
    write_safetensors(path, tensors, {});
    return path;
  }
};

TEST_F(SparseAverage, IsThatOfDenseWeightsWhereTheFirstFileHasNonzeros) {
  // a: 0, 3 and 9 against 3, 4; b: 1 against 0 and 1.
  const auto newest = packed("n", {2, 4, 6, 8}, {0b1001, 0b10}, 0, 0b010, 3);
  const auto older = packed("o", {10, 20, 30, 40}, {0b11000, 0}, 2, 0b011, 0);
  average_weights(std::vector{newest, older}, folder_ / "mean");
  const SafetensorsFile read(folder_ / "mean");
  std::vector<float> values(4);
  read.read_into("sparse.values", std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<float>{1, (4 + 30) / 2.f, 3, (8 + 20) / 2.f}));
  std::vector<uint8_t> mask(2);
  read.read_into("a.mask", std::as_writable_bytes(std::span(mask)));
  EXPECT_EQ(mask, (std::vector<uint8_t>{0b1001, 0b10}));
  int64_t first = 0;
  read.read_into("b.first", std::as_writable_bytes(std::span(&first, 1)));
  EXPECT_EQ(first, 3);
}

TEST_F(SparseAverage, OfADamagedFileIsRefused) {
  const auto good = packed("g", {2, 4, 6, 8}, {0b1001, 0b10}, 0, 0b010, 3);
  for (const int64_t first : {int64_t{2}, int64_t{-1}, INT64_MAX}) {
    const auto bad = packed("b", {2, 4, 6, 8}, {0b1001, 0b10}, first, 0b010, 3);
    EXPECT_TRUE(throws_saying<UserError>(
        [&] {
          average_weights(std::vector{good, bad}, folder_ / "mean");
        },
        "do not lie within"));
  }
}

}  // namespace
}  // namespace thimble
