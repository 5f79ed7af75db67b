#include "backend/backend.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda_library.h"
#include "backend/null/null_backend.h"
#include "base/error.h"

namespace thimble {

DeviceTraits device_traits(std::string_view name) {
  return {.runs = name != "null", .has_memory = name == "cuda"};
}

std::unique_ptr<Backend> make_backend(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return make_cpu_backend(options.threads);
  if (name == "null") return make_null_backend();
  if (name == "cuda") return load_cuda_library(find_cuda_library()).make(options);
  user_error("there is no device '{}'; known: cpu, cuda, null", name);
}

}  // namespace thimble
