// A tensor on the heap for tests: 64-byte aligned as in an arena, with guard bytes around it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "graph/op.h"

namespace thimble {

inline constexpr int64_t kTensorGuard = 64;  // bytes, on both sides

class Tensor {
 public:
  Tensor() : Tensor(TensorType{{0}}) {}
  // Filled with 0xCD bytes, so that what a kernel forgets to write shows. `shift` picks one of
  // several 64-byte alignments: the data begin shift * 64 bytes past a page.
  explicit Tensor(TensorType type, int shift = 0);
  // The same elements at another alignment.
  Tensor(const Tensor& other, int shift);
  Tensor(const Tensor& other) : Tensor(other, 0) {}
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor other);

  const TensorType& type() const { return type_; }
  int64_t elements() const { return type_.elements(); }
  std::span<std::byte> bytes() { return {data_, size()}; }
  std::span<const std::byte> bytes() const { return {data_, size()}; }
  TensorRef ref() { return {data_, type_}; }

  double get(int64_t index) const;
  void set(int64_t index, double value);  // rounds to the dtype
  double largest() const;                 // of the absolute values

  // False once anything wrote just outside of the data.
  bool guards_intact() const;

 private:
  size_t size() const { return static_cast<size_t>(type_.bytes().count); }

  TensorType type_;
  std::unique_ptr<std::byte[]> storage_;
  std::byte* data_ = nullptr;  // guards lie on both sides
};

// The same bits? (A NaN equals itself here.)
bool same_bits(const Tensor& a, const Tensor& b);

// Deterministic contents: the same seed gives the same elements on every machine.
void fill_tensor(Tensor& tensor, const Fill& fill, uint64_t seed);

// The elements in another dtype, rounded.
Tensor converted(const Tensor& from, DType dtype);

}  // namespace thimble
