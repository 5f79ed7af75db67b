#include "backend/cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/build_id.h"
#include "base/host/library_place.h"

namespace thimble {
namespace {

constexpr const char* kName = "libthimble_cuda.so";
constexpr const char* kElse = "train with --device cpu, or plan with --device null";

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw DeviceError(fmt::format(format, std::forward<Args>(args)...));
}

// The package to install if `error`, a message of the loader, is about a missing library.
std::string remedy(std::string_view error) {
  if (error.find("cannot open shared object file") == std::string_view::npos) return "";
  if (error.starts_with("libcudnn")) return "install cuDNN 9, or ";
  if (error.starts_with("libcublas")) return "install CUDA's cuBLAS, or ";
  return "install it, or ";
}

}  // namespace

std::filesystem::path find_cuda_library() {
  if (const char* named = std::getenv("THIMBLE_CUDA_LIBRARY"); named != nullptr && *named != 0) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(named, ignored)) {
      return std::filesystem::absolute(named, ignored);
    }
    fail("THIMBLE_CUDA_LIBRARY names '{}', and no such file is there; name {}, or {}", named, kName,
         kElse);
  }
  const std::filesystem::path file = find_beside(kName);
  if (!file.empty()) return file;
  fail(
      "there is no CUDA backend here: no {} in {}, nor in lib or ../lib beside it; build it "
      "with `make build CUDA=ON` (docs/gpu.md), or {}",
      kName, own_folder().string(), kElse);
}

const CudaEntry& load_cuda_library(const std::filesystem::path& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    const std::string what = remedy(error);
    if (!what.empty()) {
      fail(
          "the CUDA backend {} needs {}, which is not here; {}put its folder into "
          "LD_LIBRARY_PATH; else {}",
          file.string(), error.substr(0, error.find(':')), what, kElse);
    }
    fail("the CUDA backend cannot be loaded: {}; build it anew with `make build CUDA=ON`, or {}",
         error, kElse);
  }
  auto* const entry = reinterpret_cast<CudaEntryFunction*>(dlsym(library, "thimble_cuda_entry"));
  if (entry == nullptr) fail("{} is not Thimble's CUDA backend; {}", file.string(), kElse);
  const CudaEntry& found = *entry();
  if (std::strcmp(found.build, build_id()) != 0) {
    fail(
        "{} belongs to another build, {}, and this one is {}; build both together with `make "
        "build CUDA=ON`, or {}",
        file.string(), found.build, build_id(), kElse);
  }
  return found;
}

extern const DeviceDef device_cuda{
    .name = "cuda",
    .make =
        [](const DeviceOptions& options) {
          return load_cuda_library(find_cuda_library()).make(options);
        },
    .traits = {.has_memory = true}};

}  // namespace thimble
