// Which numbers device kernels know: f32, f16 and bf16 in memory, float in registers.
#pragma once

#include "base/number/dtype.h"

namespace thimble {

constexpr bool on_device(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace thimble
