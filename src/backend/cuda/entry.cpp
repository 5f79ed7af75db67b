// What libthimble_cuda.so shows to the program that loads it; all else in it is hidden.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda_library.h"
#include "base/build_id.h"

extern "C" __attribute__((visibility("default"))) const thimble::CudaEntry* thimble_cuda_entry() {
  static const thimble::CudaEntry entry = {thimble::build_id(), thimble::make_cuda_backend};
  return &entry;
}
