#include "backend/cuda/device.h"

#include "backend/backend.h"
#include "backend/cuda/cuda_failure.h"

namespace thimble {
namespace {

// A lost card fails every call, also those of libraries, whose own words for it say less.
void check_not_lost(const char* what) {
  size_t free = 0, total = 0;
  const cudaError_t status = cudaMemGetInfo(&free, &total);
  if (is_lost(status)) check(status, what);
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) fail_for_room(what, Bytes());
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  throw DeviceError(failure_text(status, what, driver));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    fail_for_room("cuDNN", Bytes());
  }
  check_not_lost(what);
  throw DeviceError(fmt::format("cuDNN failed at {}: {}", what, cudnnGetErrorString(status)));
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) fail_for_room("cuBLAS", Bytes());
  check_not_lost(what);
  throw DeviceError(fmt::format("cuBLAS failed at {}: {}", what, cublasLtGetStatusString(status)));
}

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace thimble
