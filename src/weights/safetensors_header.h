// The JSON header of a safetensors file, as text on one side and as a checked table on the other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/shape.h"

namespace thimble {

struct SafetensorsRow {
  std::string name;
  TensorType type;             // where `foreign` is empty
  int64_t begin = 0, end = 0;  // counted from the end of the header
  std::string foreign = {};    // the format's name of an element type that there is no DType for
};

struct SafetensorsHeader {
  std::vector<SafetensorsRow> rows;
  std::map<std::string, std::string> metadata;
};

// Without the eight length bytes; padded with spaces so that the data after both starts at a
// multiple of eight.
std::string print_safetensors_header(const SafetensorsHeader& header);

// Parses and checks `text`, which precedes `data_bytes` bytes of data: structure, types, sizes;
// and that the tensors, in order of their offsets, cover the data with neither hole nor overlap.
// Throws UserError naming `path`. The text may be hostile.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& path);

}  // namespace thimble
