// A NumPy array in a file (.npy), read where it lies: rows of its first axis.
#pragma once

#include <string>

#include "base/file.h"
#include "base/record.h"

namespace thimble {

// Checked in full when it is opened: after that every row lies inside the file. int64 becomes i32.
class NpyFile {
 public:
  // UserError naming the file where it is not a little-endian array of float32, int32, int64, uint8
  // or bool in C order, or a whole number in it is beyond i32.
  explicit NpyFile(const std::string& path);

  int64_t rows() const { return rows_; }
  DType dtype() const { return wide_ ? DType::i32 : dtype_; }
  const Shape& row_shape() const { return row_shape_; }
  // Above all whole numbers that are not negative; 0: there are none, or numbers are not whole.
  int64_t limit() const { return limit_; }
  // Allocates nothing. REQUIRES: 0 <= row < rows(); the part is of row_shape().
  void read_row(int64_t row, const RecordPart& part) const;

 private:
  void parse_header();
  void find_limit();
  template <class Body>
  void for_each_chunk(int64_t begin, int64_t count, const Body& body) const;

  ReadFile file_;
  int64_t data_at_ = 0, rows_ = 0, limit_ = 0;
  Shape row_shape_;
  DType dtype_ = DType::f32;
  bool wide_ = false;  // int64 in the file
};

}  // namespace thimble
