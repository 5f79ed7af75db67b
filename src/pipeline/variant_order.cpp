#include "pipeline/variant_order.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {

void VariantOrder::put_first(size_t place, Bytes arena) {
  internal_check(!at_last(), "no variant of the step takes the most memory");
  if (arena > arena_) {
    arena_ = arena;
    largest_ = shapes_;
  }
  const auto at = shapes_.begin() + static_cast<ptrdiff_t>(place);
  std::rotate(shapes_.begin(), at, at + 1);
  if (++tries_ == most_tries_) shapes_ = largest_;
}

}  // namespace thimble
