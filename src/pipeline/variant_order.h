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
      : shapes_(shapes), largest_(std::move(shapes)), most_tries_(std::ssize(shapes_) + kTries) {}

  std::span<const VariantShape> shapes() const { return shapes_; }
  // Enough orders were tried: this is the one with the largest arena, and others have to fit it by any
  // means.
  bool at_last() const { return tries_ == most_tries_; }
  // The one at `place` did not fit the first's arena. REQUIRES: !at_last().
  void put_first(size_t place, Bytes arena);

 private:
  // In as little memory as each can do with, one after another may take a little more than the last.
  static constexpr int64_t kTries = 4;

  std::vector<VariantShape> shapes_, largest_;
  int64_t most_tries_;
  Bytes arena_;  // of largest_
  int64_t tries_ = 0;
};

}  // namespace thimble
