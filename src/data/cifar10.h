// CIFAR-10 in its binary version: data_batch_1.bin ... data_batch_5.bin and test_batch.bin.
//
//   record, 3,073 bytes:  │ label │ red 32x32 │ green 32x32 │ blue 32x32 │
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"

namespace thimble {

class Cifar10 final : public Dataset {
 public:
  // `folder` holds the six files, or the folder cifar-10-batches-bin that does. Each file may have
  // any whole number of records. Throws UserError naming the file that is missing or unsound.
  explicit Cifar10(const std::string& folder);

  const DatasetInfo& info() const override { return info_; }
  void read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const override;

 private:
  DatasetInfo info_;
  std::vector<ReadFile> train_;
  std::vector<ReadFile> test_;
};

}  // namespace thimble
