#include "train/average.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"
#include "train/safetensors.h"

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
  EXPECT_TRUE(throws_saying<UserError>([&] { mean<int32_t>({i, j}); }, "nonzeros", "moved"));
}

}  // namespace
}  // namespace thimble
