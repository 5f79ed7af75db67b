// Shared by all kernels of a CUDA device: its stream and the libraries' handles. Vendor types stay
// in this folder.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string>

#include "comm/communicator.h"

namespace thimble {

constexpr int kMostStreams = 64;

struct CudaDevice {
  cudaStream_t stream = nullptr;  // every kernel and copy is in its order
  int stream_number = 0;          // of several that run at the same time, below kMostStreams
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  int multiprocessors = 1;
  int architecture = 0;           // 90: compute capability 9.0
  bool tf32 = true;               // products of f32 may round their factors to 10 bits
  Communicator* ranks = nullptr;  // for bytes on the card; null: this process stands for all
};

// UserError when the device cannot go on (out of memory, lost), naming what was tried.
void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);
// After a launch: whether it could be queued. Later errors show at the next synchronise().
void check_launch(const char* kernel);

}  // namespace thimble
