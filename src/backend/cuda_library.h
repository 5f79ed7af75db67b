// The CUDA backend lies in a library of its own, libthimble_cuda.so, which is loaded when a GPU is
// asked for: cuDNN and cuBLAS cost a process 150 MiB from the moment they are linked, and one
// program serves machines with and without them.
#pragma once

#include <filesystem>
#include <memory>

#include "backend/backend.h"

namespace thimble {

// All that the library shows: `thimble_cuda_entry`, a function of this type.
struct CudaEntry {
  const char* build;  // its build_id(); where it is another than ours, nothing else can be trusted
  std::unique_ptr<Backend> (*make)(const DeviceOptions& options);
};
using CudaEntryFunction = const CudaEntry*();

// Where the library is: what THIMBLE_CUDA_LIBRARY names, or the first of `.`, `lib` and `../lib`
// beside the program (or the library that this code is linked into). DeviceError: nowhere.
std::filesystem::path find_cuda_library();

// Loads it, for as long as the process lives. DeviceError, saying what to do, where it cannot be
// loaded or is of another build.
const CudaEntry& load_cuda_library(const std::filesystem::path& file);

extern const DeviceDef device_cuda;

}  // namespace thimble
