#include "backend/about.h"
#include "backend/cuda_library.h"

namespace thimble {

std::string about_cuda() {
  try {
    const std::filesystem::path file = find_cuda_library();
    load_cuda_library(file);
    return file.string();
  } catch (const DeviceError& error) {
    return error.what();
  }
}

}  // namespace thimble
