// A CUDA kernel for an op: one file of this folder, named as the op it runs; the file name is the
// registration (see cmake/tables.cmake).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backend/cuda/device.h"
#include "backend/kernel.h"

namespace thimble {

struct CudaKernel {
  std::string_view op;
  // Null when this signature does not fit (a dtype, a shape). The device outlives the kernel.
  std::unique_ptr<Kernel> (*make)(const Signature& signature, CudaDevice& device) = nullptr;
};

std::span<const CudaKernel* const> all_cuda_kernels();

// A kernel that is a function of its arguments: `launch` puts it on the device's stream.
template <class Launch>
class OwnKernel final : public Kernel {
 public:
  OwnKernel(Launch launch, Bytes scratch) : launch_(std::move(launch)) {
    name = "own";
    workspace = scratch;
  }
  void run(const KernelArgs& args) override { launch_(args); }

 private:
  Launch launch_;
};

template <class Launch>
std::unique_ptr<Kernel> own_kernel(Launch launch, Bytes scratch = {}) {
  return std::make_unique<OwnKernel<Launch>>(std::move(launch), scratch);
}

}  // namespace thimble
