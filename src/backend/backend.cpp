#include "backend/backend.h"

#include "backend/cpu/cpu_backend.h"
#ifdef THIMBLE_HAS_CUDA
#include "backend/cuda/cuda_backend.h"
#endif
#include "backend/null/null_backend.h"
#include "base/error.h"

namespace thimble {

std::unique_ptr<Backend> make_backend(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return make_cpu_backend(options.threads);
  if (name == "null") return make_null_backend();
  if (name == "cuda") {
#ifdef THIMBLE_HAS_CUDA
    return make_cuda_backend(options);
#endif
    user_error("this build has no CUDA backend; plan with --device null, or run with --device cpu");
  }
  user_error("there is no device '{}'; known: cpu, cuda, null", name);
}

}  // namespace thimble
