// A set of labelled images that stays where it is: records are read one at a time, straight into
// the caller's bytes, and the set is never resident in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"

namespace thimble {

enum class Split : uint8_t { train, test };

std::string_view name_of(Split split);  // "train", "test"

struct DatasetInfo {
  std::string name;
  int64_t train_count = 0;
  int64_t test_count = 0;
  Shape image;  // [H,W,C]
  int64_t classes = 0;
  // Per channel, over the training images, in units of a pixel (0..255); stddev is at least 1,
  // so that a channel which hardly changes is not blown up.
  std::vector<float> mean = {};
  std::vector<float> stddev = {};
  // Over the images and labels of each split, in order. Empty where the rest says it all: records
  // that are computed.
  std::string train_sha256 = {};
  std::string test_sha256 = {};

  int64_t count(Split split) const { return split == Split::train ? train_count : test_count; }
};

// Constant after construction: any number of threads may read at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual const DatasetInfo& info() const = 0;
  // Record `index` of the split: `image` gets H*W*C bytes, channels innermost; `label` is in
  // [0, classes). Allocates nothing. Throws UserError when a file changed or failed meanwhile.
  // REQUIRES: 0 <= index < info().count(split), image.size() == info().image.elements().
  virtual void read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const = 0;
};

// Checks the REQUIRES of Dataset::read.
void check_read(const DatasetInfo& info, Split split, int64_t index,
                std::span<const uint8_t> image);

// Reads every record of both splits once, so that a bad one is found before training starts, and
// fills `mean` and `stddev` from the training images and both sha256.
void measure(const Dataset& dataset, DatasetInfo& info);

}  // namespace thimble
