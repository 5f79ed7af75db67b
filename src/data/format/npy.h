// NumPy's files of one array, read where they lie.
//
//   "\x93NUMPY" │ version 2 bytes │ length of the header │ {'descr': '<f4', 'fortran_order': False,
//                'shape': (60000, 28, 28), }             │ the numbers, row after row
#pragma once

#include <cstdint>
#include <string>

#include "base/io/file.h"
#include "base/number/shape.h"

namespace thimble {

class NpyFile {
 public:
  // UserError, naming the file, where it is none, is truncated, in Fortran's order, of another byte
  // order, or of numbers that there is no DType for.
  explicit NpyFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t rows() const { return rows_; }
  const TensorType& row() const { return row_; }  // the type of one
  // Bytes of row `index`, all of them. Allocates nothing; from any thread.
  void read(int64_t index, std::span<std::byte> out) const;

 private:
  ReadFile file_;
  int64_t begin_ = 0;  // of the numbers
  int64_t rows_ = 0;
  TensorType row_;
};

}  // namespace thimble
