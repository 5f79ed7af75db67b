// Says that it is of another build, so nothing else of it may be touched.
#include <cstdlib>

#include "backend/cuda_library.h"

extern "C" __attribute__((visibility("default"))) const thimble::CudaEntry* thimble_cuda_entry() {
  static const thimble::CudaEntry entry = {
      "0.0.9+000000000000, GNU 1.0",
      [](const thimble::DeviceOptions&) -> std::unique_ptr<thimble::Backend> { std::abort(); }};
  return &entry;
}
