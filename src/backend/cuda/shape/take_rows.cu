// take_rows: rows of a table.
#include "backend/cuda/embed/row_lookup.cuh"

namespace thimble {

extern const CudaKernel cuda_take_rows{"take_rows", make_row_lookup};

}  // namespace thimble
