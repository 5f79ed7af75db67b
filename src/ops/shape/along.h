// Places along the last axis: what take_along, add_along and put_along share. Row r of `places`
// [R,M] names places in row r of a tensor [R,C]. A number that is no place of the row takes zero
// and gives nothing.
#pragma once

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {

// Throws UserError naming `op` unless places are i32 [R,M].
inline void check_places(std::string_view op, const TensorType& places, int64_t rows) {
  user_check(places.dtype == DType::i32 && places.shape.rank() == 2 && places.shape[0] == rows,
             "[{}] wants places i32 [{},M], got {}", op, rows, to_string(places));
}

inline void check_rows(std::string_view op, std::string_view what, const TensorType& rows) {
  user_check(rows.shape.rank() == 2, "[{}] wants {} with 2 axes, got {}", op, what,
             to_string(rows));
}

// Calls body(row, m, place) for every place that is one of `width`, row by row, in order.
template <class Body>
void for_each_place(const TensorRef& places, int64_t width, Body&& body) {
  const int32_t* numbers = places.as<int32_t>();
  const int64_t rows = places.type.shape[0], count = places.type.shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t m = 0; m < count; ++m) {
      const int64_t place = numbers[row * count + m];
      if (place >= 0 && place < width) body(row, m, place);
    }
  }
}

// Fills for samples: places of rows of `width`, one beyond either end among them.
inline Fill place_fill(int64_t width) {
  return {Fill::Kind::labels, -1, static_cast<double>(width + 1)};
}

}  // namespace thimble
