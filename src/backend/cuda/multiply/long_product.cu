#include <fmt/format.h>

#include "backend/cuda/multiply/long_product.h"
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {
namespace {

// y[i] = sums[0][i] + sums[1][i] + ..., kWide neighbours at a time.
template <class T, int kWide>
__global__ void __launch_bounds__(kBlockThreads)
    add_pieces(const float* sums, int pieces, int64_t results, T* y, bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x} * kWide;
  for (int64_t i = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) * kWide; i < results;
       i += threads) {
    float all[kWide] = {};
#pragma unroll 8
    for (int p = 0; p < pieces; ++p) {
      const auto piece = *reinterpret_cast<const Vec<float, kWide>*>(sums + p * results + i);
#pragma unroll
      for (int e = 0; e < kWide; ++e) all[e] += piece.at[e];
    }
    store_wide<T, kWide>(y + i, all, add);
  }
}

}  // namespace

LongProduct::LongProduct(CudaDevice& device, const ProductShape& shape, DType dtype, bool add)
    : device_(device), shape_(shape), dtype_(dtype), add_(add) {
  if (shape.batch == 1) {
    cut_up(product_cut(shape.m, shape.n, shape.k, dtype, device.multiprocessors));
  }
  if (product_ != nullptr) return;
  product_ = std::make_unique<CublasProduct>(device, shape, dtype, dtype, add,
                                             scratch_limit(shape, dtype));
}

// Stays whole where the library has no such products.
void LongProduct::cut_up(const ProductCut& cut) {
  if (cut.parts == 1) return;
  ProductShape shape = shape_;
  shape.parts = cut.parts;
  shape.part = cut.depth;
  shape.alignment = alignment_in_parts(shape, dtype_);
  const auto make = [&] {
    return std::make_unique<CublasProduct>(device_, shape, dtype_, DType::f32, false, Bytes());
  };
  auto parts = make();
  if (parts->guesses() == 0) return;
  if (cut.rest > 0) {
    shape.parts = 1;
    shape.part = cut.rest;
    auto rest = make();
    if (rest->guesses() == 0) return;
    rest_ = std::move(rest);
  }
  product_ = std::move(parts);
  cut_ = cut;
}

std::string LongProduct::name() const {
  return cut_.parts == 1 ? "cublaslt" : fmt::format("cublaslt in {} parts", cut_.parts);
}

Bytes LongProduct::sums_bytes() const {
  if (cut_.parts == 1) return {};
  return align_up(Bytes(cut_.pieces() * shape_.m * shape_.n * int64_t{sizeof(float)}));
}

Bytes LongProduct::scratch() const {
  const Bytes of_rest = rest_ == nullptr ? Bytes() : rest_->scratch();
  return sums_bytes() + std::max(product_->scratch(), of_rest);
}

void LongProduct::run(const void* a, const void* b, void* y, std::byte* scratch) const {
  if (cut_.parts == 1) return product_->run(a, b, y, scratch);
  auto* const sums = reinterpret_cast<float*>(scratch);
  std::byte* const room = scratch + sums_bytes().count;
  product_->run(a, b, sums, room);
  if (rest_ != nullptr) {
    const int64_t done = cut_.parts * cut_.depth * size_of(dtype_);
    rest_->run(static_cast<const std::byte*>(a) + done * (shape_.transpose_a ? shape_.m : 1),
               static_cast<const std::byte*>(b) + done * (shape_.transpose_b ? 1 : shape_.n),
               sums + cut_.parts * shape_.m * shape_.n, room);
  }
  add_up(sums, y);
}

void LongProduct::add_up(const float* sums, void* y) const {
  const int64_t results = shape_.m * shape_.n;
  with_device_type(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_wide(results, [&](auto wide) {
      add_pieces<T, wide.value>
          <<<blocks_for(results / wide.value, device_), kBlockThreads, 0, device_.stream>>>(
              sums, static_cast<int>(cut_.pieces()), results, static_cast<T*>(y), add_);
    });
  });
  check_launch("a product in parts");
}

}  // namespace thimble
