// embed: rows of a table.
#include "backend/cuda/embed/row_lookup.cuh"

namespace thimble {

extern const CudaKernel cuda_embed{"embed", make_row_lookup};

}  // namespace thimble
