// Which fields of records are labels, by name: the same in every data set.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/number/record.h"

namespace thimble {

inline bool is_label_field(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames = {"label", "targets"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// Rows of a batch that stand for no record have labels that no loss and no metric counts.
inline void pad_as_label(RecordField& field) {
  if (field.dtype == DType::i32 && is_label_field(field.name)) field.pad = -1;
}

}  // namespace thimble
