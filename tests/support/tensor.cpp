#include "support/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "base/number/philox.h"

namespace thimble {
namespace {

constexpr size_t kGuard = kTensorGuard;
constexpr size_t kPage = 4096;
constexpr std::byte kGuardByte{0xA5};
constexpr std::byte kUnwritten{0xCD};

double uniform01(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

double draw(const Fill& fill, uint64_t seed, int64_t index) {
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(index), 0, 0, 0}, philox_key(seed * 2654435761u + 1));
  const double u = uniform01(words[0]);
  switch (fill.kind) {
    case Fill::Kind::normal:
      return (fill.low + fill.high) / 2 +
             std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform01(words[1]));
    case Fill::Kind::uniform:
      return fill.low + u * (fill.low == fill.high ? 1.0 : fill.high - fill.low);
    case Fill::Kind::labels:
      return std::floor(fill.low + u * (fill.high - fill.low));
    case Fill::Kind::zeros:
      return 0;
    case Fill::Kind::ones:
      return 1;
    case Fill::Kind::bytes:
      return static_cast<double>(words[0] & 0xffu);
  }
  return 0;
}

}  // namespace

Tensor::Tensor(TensorType type, int shift) : type_(std::move(type)) {
  const size_t offset = kPage + static_cast<size_t>(shift) * kGuard;
  const size_t total = offset + size() + kGuard + kPage;
  storage_ = std::make_unique<std::byte[]>(total);
  void* start = storage_.get();
  size_t space = total;
  std::align(kPage, 1, start, space);
  data_ = static_cast<std::byte*>(start) + offset;
  std::fill_n(data_ - kGuard, kGuard, kGuardByte);
  std::fill_n(data_, size(), kUnwritten);
  std::fill_n(data_ + size(), kGuard, kGuardByte);
}

Tensor::Tensor(const Tensor& other, int shift) : Tensor(other.type_, shift) {
  std::memcpy(data_, other.data_, size());
}

Tensor& Tensor::operator=(Tensor other) {
  type_ = other.type_;
  storage_ = std::move(other.storage_);
  data_ = other.data_;
  return *this;
}

double Tensor::get(int64_t index) const {
  double result = 0;
  with_any_type(type_.dtype, [&]<class T>(TypeTag<T>) {
    result = static_cast<double>(reinterpret_cast<const T*>(data_)[index]);
  });
  return result;
}

void Tensor::set(int64_t index, double value) {
  with_any_type(type_.dtype, [&]<class T>(TypeTag<T>) {
    reinterpret_cast<T*>(data_)[index] = static_cast<T>(value);
  });
}

double Tensor::largest() const {
  double result = 0;
  for (int64_t i = 0; i < elements(); ++i) result = std::max(result, std::abs(get(i)));
  return result;
}

bool Tensor::guards_intact() const {
  const auto intact = [](std::byte b) { return b == kGuardByte; };
  return std::all_of(data_ - kGuard, data_, intact) &&
         std::all_of(data_ + size(), data_ + size() + kGuard, intact);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::ranges::equal(a.bytes(), b.bytes());
}

void fill_tensor(Tensor& tensor, const Fill& fill, uint64_t seed) {
  // Random integers without a stated range are small.
  const bool integers = !is_floating(tensor.type().dtype) && fill.kind == Fill::Kind::normal;
  const Fill used = integers ? Fill{Fill::Kind::labels, 0, 8} : fill;
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, draw(used, seed, i));
}

Tensor converted(const Tensor& from, DType dtype) {
  Tensor result(TensorType{from.type().shape, dtype});
  for (int64_t i = 0; i < from.elements(); ++i) result.set(i, from.get(i));
  return result;
}

}  // namespace thimble
