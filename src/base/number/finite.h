// Whether a tensor holds an infinity or a NaN, told from exponent bits alone.
#pragma once

#include <cstddef>
#include <span>

#include "base/number/dtype.h"

namespace thimble {

// True of every type that is not floating. REQUIRES: whole elements.
bool all_finite(std::span<const std::byte> bytes, DType dtype);

// Element by element: for messages. False of every type that is not floating.
bool any_nan(std::span<const std::byte> bytes, DType dtype);

}  // namespace thimble
