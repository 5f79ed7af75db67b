#include "backend/cuda/device.h"

#include "base/error.h"

namespace thimble {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) {
    user_error(
        "the GPU has too little free memory for {}; give a smaller --memory, or see with "
        "nvidia-smi what else uses the card",
        what);
  }
  int driver = 0;
  const bool none = status == cudaErrorNoDevice ||
                    (status == cudaErrorInsufficientDriver &&
                     (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0));
  if (none) {
    user_error("there is no CUDA device here; train with --device cpu, or plan with --device null");
  }
  if (status == cudaErrorInsufficientDriver) {
    user_error(
        "the GPU's driver is too old for this build (CUDA {}.{}): update it, or use "
        "--device cpu",
        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  user_error(
      "the GPU failed at {}: {} ({}); checkpoints saved so far are good: fix the device and "
      "go on with --resume",
      what, cudaGetErrorString(status), cudaGetErrorName(status));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  user_error("cuDNN failed at {}: {}", what, cudnnGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  user_error("cuBLAS failed at {}: {}", what, cublasLtGetStatusString(status));
}

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace thimble
