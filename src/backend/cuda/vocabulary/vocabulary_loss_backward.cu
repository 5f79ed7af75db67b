#include "backend/cuda/vocabulary/vocabulary_backward.cuh"

namespace thimble {

extern const CudaKernel cuda_vocabulary_loss_backward{"vocabulary_loss_backward",
                                                      make_vocabulary_backward<true>};

}  // namespace thimble
