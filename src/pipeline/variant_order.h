// Which variant of a step is planned first: its arena is the one that the others have to fit. Of
// batches by tokens all are about as large, so that one which does not fit goes first in turn.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "model/model.h"

namespace thimble {

class VariantOrder {
 public:
  // The one that should take most first.
  explicit VariantOrder(std::vector<VariantShape> shapes)
      : shapes_(shapes), largest_(std::move(shapes)) {}

  std::span<const VariantShape> shapes() const { return shapes_; }
  // Enough orders were tried: this is the one with the largest arena, and others have to fit it by any
  // means.
  bool at_last() const { return tries_ == kTries; }
  // The one at `place` did not fit the first's arena. REQUIRES: !at_last().
  void put_first(size_t place, Bytes arena);

 private:
  static constexpr int kTries = 4;

  std::vector<VariantShape> shapes_, largest_;
  Bytes arena_;  // of largest_
  int tries_ = 0;
};

}  // namespace thimble
