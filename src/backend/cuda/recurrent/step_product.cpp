#include "backend/cuda/recurrent/step_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace thimble {
namespace {

constexpr std::array<int64_t, 5> kParts = {1, 2, 4, 8, 16};
constexpr int kGuesses = 4;            // for each of them
constexpr int64_t kLeastDepth = 32;    // of a part
constexpr int64_t kLeastAligned = 16;  // bytes
constexpr int64_t kTile = 64;          // rows and columns that a block makes, about

ProductShape in_parts(ProductShape shape, int64_t parts, DType dtype) {
  shape.parts = parts;
  shape.alignment = alignment_in_parts(shape, dtype);
  return shape;
}

bool can_be_cut(const ProductShape& shape, int64_t parts, DType dtype) {
  return parts == 1 || (shape.k % parts == 0 && shape.k / parts >= kLeastDepth &&
                        in_parts(shape, parts, dtype).alignment >= kLeastAligned);
}

}  // namespace

StepProduct::StepProduct(CudaDevice& device, const ProductShape& shape, DType factors)
    : results_(shape.m * shape.n) {
  const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  const int64_t blocks = tiles(shape.m) * tiles(shape.n);
  std::vector<int64_t> counts;
  for (const int64_t parts : kParts) {
    if (can_be_cut(shape, parts, factors)) counts.push_back(parts);
  }
  // As many as the device has room for at a time, then fewer, then more.
  const auto more = std::ranges::find_if(
      counts, [&](int64_t parts) { return parts > 1 && blocks * parts > device.multiprocessors; });
  std::reverse(counts.begin(), more);
  for (const int64_t parts : counts) {
    products_.push_back(std::make_unique<CublasProduct>(device, in_parts(shape, parts, factors),
                                                        factors, DType::f32, false,
                                                        scratch_limit(shape, factors), kGuesses));
    for (int guess = 0; guess < products_.back()->guesses(); ++guess) {
      variants_.push_back({products_.back().get(), parts, guess});
    }
  }
  user_check(!variants_.empty(), "cuBLASLt has no deterministic product for a recurrent layer");
  use(0);
}

void StepProduct::use(int variant) {
  used_ = variant;
  current().product->use(current().guess);
}

std::string StepProduct::name() const {
  return fmt::format("cublaslt in {} parts, guess {}", current().parts, current().guess + 1);
}

}  // namespace thimble
