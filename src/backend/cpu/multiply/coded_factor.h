// A coded matrix as the right factor of our own products: it decodes itself into panels, by the
// widest vectors that the processor has, to the bits of CodedNumbers::decode.
#pragma once

#include "backend/cpu/multiply/packed_product.h"
#include "graph/coded_weight.h"

namespace thimble {

// Numbers [first, first + count) of a row.
void decode_row(const CodedNumbers& numbers, int64_t row, int64_t first, int64_t count, float* to);

// Its rows are rows of the factor.
struct CodedRowsOfB {
  CodedNumbers numbers;
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};

// Its rows are columns of the factor.
struct CodedColumnsOfB {
  CodedNumbers numbers;
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};

}  // namespace thimble
