// Handwritten digits, 8x8 and grey, inside the program itself: 1,797 real images that need no
// download. From E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI
// Machine Learning Repository, 1998, CC BY 4.0.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace thimble {

class Digits final : public Dataset {
 public:
  // Of each class, in the order of the file, every fifth image is for testing: 1,442 and 355.
  // Values 0..16 become 0..255.
  Digits();

  const DatasetInfo& info() const override { return info_; }
  void read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const override;

 private:
  DatasetInfo info_;
  std::vector<int16_t> train_;  // rows of the table
  std::vector<int16_t> test_;
};

}  // namespace thimble
