// The one symbol of libthimble_cuda.so that the program sees; all others are hidden.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda_library.h"
#include "base/build_id.h"

extern "C" __attribute__((visibility("default"))) const thimble::CudaEntry* thimble_cuda_entry() {
  static const thimble::CudaEntry entry = {thimble::build_id(), thimble::make_cuda_backend};
  return &entry;
}
