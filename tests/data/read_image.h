// Labelled images of a data set, one at a time.
#pragma once

#include <array>

#include "data/dataset.h"

namespace thimble {

inline void read_image(const Dataset& data, Split split, int64_t index, std::span<uint8_t> image,
                       int32_t& label) {
  const int64_t rows = data.info().field("pixels").shape[0];
  const int64_t row = std::ssize(image) / rows;
  const std::array<RecordPart, 2> parts = {
      {{std::as_writable_bytes(image).data(), row, row, rows},
       {reinterpret_cast<std::byte*>(&label), sizeof(label), sizeof(label), 1}}};
  data.read(split, index, parts);
}

}  // namespace thimble
