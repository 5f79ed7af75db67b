// Rows of a table by number: what embed, take_rows and their gradient share. A number that is no
// row of the table, or that stands for padding, has no row: zeros, and no gradient.
#pragma once

#include "ops/checks.h"

namespace thimble {

struct RowLookup {
  int64_t rows, width;
  int64_t pad;   // the number that stands for padding; -1: none
  double scale;  // of what is looked up

  RowLookup(int64_t table_rows, int64_t columns, const Attrs& attrs)
      : rows(table_rows),
        width(columns),
        pad(attrs.integer("pad", -1)),
        scale(attrs.real("scale", 1)) {}

  bool has(int32_t number) const { return number >= 0 && number < rows && number != pad; }
};

// Numbers [...] of rows [width] -> [..., width].
inline TensorType looked_up(std::string_view op, const TensorType& numbers, int64_t width,
                            DType dtype) {
  user_check(numbers.dtype == DType::i32 && numbers.shape.rank() < Shape::kMaxRank,
             "[{}] wants numbers of rows in i32, got {}", op, to_string(numbers));
  std::vector<int64_t> dims(numbers.shape.dims().begin(), numbers.shape.dims().end());
  dims.push_back(width);
  return {Shape(dims), dtype};
}

// The plain kernel of embed and take_rows: (table, numbers) -> rows.
void look_up_rows(const KernelArgs& args);

}  // namespace thimble
