// Handwritten digits, 8x8 and grey, inside the program itself: 1,797 real images that need no
// download. From E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI
// Machine Learning Repository, 1998, CC BY 4.0.
#include <array>
#include <iterator>

#include "data/labelled_images.h"

namespace thimble {
namespace {

constexpr size_t kPixelsOfOne = 64;

// The digit, then its pixels row by row, 'A' for 0 up to 'Q' for 16.
constexpr char kRows[][1 + kPixelsOfOne + 1] = {
#include "generated/assets/digits.inc"
};

class Digits final : public LabelledImages {
 public:
  // Of each class, in the order of the file, every fifth image is for testing: 1,442 and 355.
  Digits() : LabelledImages("digits", {8, 8, 1}, 10) {
    std::array<int, 10> seen{};
    for (int16_t row = 0; row < std::ssize(kRows); ++row) {
      const auto digit = static_cast<size_t>(kRows[row][0] - '0');
      (seen[digit]++ % 5 == 4 ? test_ : train_).push_back(row);
    }
    set_counts(std::ssize(train_), std::ssize(test_));
    measure();
  }

 private:
  // Values 0..16 become 0..255.
  void read_image(Split split, int64_t index, std::span<uint8_t> image,
                  int32_t& label) const override {
    const char* row = kRows[(split == Split::train ? train_ : test_)[static_cast<size_t>(index)]];
    label = row[0] - '0';
    for (size_t i = 0; i < kPixelsOfOne; ++i) {
      image[i] = static_cast<uint8_t>(((row[1 + i] - 'A') * 255 + 8) / 16);
    }
  }

  std::vector<int16_t> train_;  // rows of the table
  std::vector<int16_t> test_;
};

}  // namespace

extern const DatasetDef data_digits{
    "digits", "1,797 handwritten digits, 8x8 grey, 10 classes; built in, the default",
    [](const DataRequest&) -> std::unique_ptr<Dataset> { return std::make_unique<Digits>(); }};

}  // namespace thimble
