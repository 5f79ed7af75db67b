#include "data/digits.h"

#include <array>
#include <iterator>

namespace thimble {
namespace {

constexpr size_t kPixels = 64;

constexpr char kRows[][1 + kPixels + 1] = {
#include "data/digits_data.inc"
};

}  // namespace

Digits::Digits() {
  std::array<int, 10> seen{};
  for (int16_t row = 0; row < std::ssize(kRows); ++row) {
    const auto digit = static_cast<size_t>(kRows[row][0] - '0');
    (seen[digit]++ % 5 == 4 ? test_ : train_).push_back(row);
  }
  info_ = {.name = "digits",
           .train_count = std::ssize(train_),
           .test_count = std::ssize(test_),
           .image = Shape{8, 8, 1},
           .classes = 10};
  measure(*this, info_);
}

void Digits::read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const {
  check_read(info_, split, index, image);
  const char* row = kRows[(split == Split::train ? train_ : test_)[static_cast<size_t>(index)]];
  label = row[0] - '0';
  for (size_t i = 0; i < kPixels; ++i) {
    image[i] = static_cast<uint8_t>(((row[1 + i] - 'A') * 255 + 8) / 16);
  }
}

}  // namespace thimble
