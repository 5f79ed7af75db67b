// IDX files, the format of MNIST and its relatives (Fashion-MNIST, KMNIST, EMNIST).
//
//   images: 00 00 08 03 │ count │ rows │ columns │ count * rows * columns bytes
//   labels: 00 00 08 01 │ count │ count bytes              (numbers big-endian, 32 bits)
#pragma once

#include <memory>
#include <string>

#include "data/labelled_images.h"

namespace thimble {

// `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
// t10k-labels-idx1-ubyte, also spelled with a dot (train-images.idx3-ubyte), each plain or .gz.
// A packed file is unpacked once, to a nameless file on disk. Throws UserError naming the file
// that is missing or unsound.
std::unique_ptr<Dataset> open_idx(const std::string& folder, std::string name, int64_t classes);

}  // namespace thimble
