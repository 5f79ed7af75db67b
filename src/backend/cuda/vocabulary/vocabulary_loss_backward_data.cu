#include "backend/cuda/vocabulary/vocabulary_backward.cuh"

namespace thimble {

extern const CudaKernel cuda_vocabulary_loss_backward_data{"vocabulary_loss_backward_data",
                                                           make_vocabulary_backward<false>};

}  // namespace thimble
