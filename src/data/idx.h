// IDX files, the format of MNIST and its relatives (Fashion-MNIST, KMNIST, EMNIST).
//
//   images: 00 00 08 03 │ count │ rows │ columns │ count * rows * columns bytes
//   labels: 00 00 08 01 │ count │ count bytes              (numbers big-endian, 32 bits)
#pragma once

#include <string>

#include "base/file.h"
#include "data/dataset.h"

namespace thimble {

class Idx final : public Dataset {
 public:
  // `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
  // t10k-labels-idx1-ubyte, also spelled with a dot (train-images.idx3-ubyte), each plain or .gz.
  // A packed file is unpacked once, to a nameless file on disk. Throws UserError naming the file
  // that is missing or unsound.
  explicit Idx(const std::string& folder, std::string name = "idx", int64_t classes = 10);

  const DatasetInfo& info() const override { return info_; }
  void read(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const override;

 private:
  struct Part {
    ReadFile images;
    ReadFile labels;
    int64_t count = 0, rows = 0, columns = 0;
  };
  static Part open_part(const std::string& folder, const std::string& stem);

  Part train_;
  Part test_;
  DatasetInfo info_;
};

}  // namespace thimble
