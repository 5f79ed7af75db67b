// A fast CPU kernel: one file of this folder, named as the op it runs; the file name is the
// registration (see cmake/tables.cmake). Ops without a file here run their reference kernel.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"

namespace thimble {

struct CpuKernel {
  std::string_view op;
  // Null when this signature does not fit (a dtype, a shape): the reference kernel runs it then.
  std::unique_ptr<Kernel> (*make)(const Signature& signature) = nullptr;
};

std::span<const CpuKernel* const> all_cpu_kernels();

}  // namespace thimble
