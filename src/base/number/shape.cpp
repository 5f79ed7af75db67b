#include "base/number/shape.h"

#include <algorithm>

namespace thimble {

namespace {

// Far above any memory, and low enough that the bytes of all values of a graph (kMostValues in
// graph/builder.cpp) add up without overflow.
constexpr int64_t kMostElements = int64_t{1} << 40;

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  user_check(dims.size() <= kMaxRank, "a tensor has at most {} axes, not {}", kMaxRank,
             dims.size());
  for (const int64_t extent : dims)
    user_check(extent >= 0, "a tensor axis cannot have {} elements", extent);
  int64_t elements = 1;
  for (const int64_t extent : dims) {
    const bool overflow = __builtin_mul_overflow(elements, std::max<int64_t>(1, extent), &elements);
    user_check(!overflow && elements <= kMostElements,
               "a tensor of shape [{}] is beyond any memory", fmt::join(dims, ","));
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

int64_t Shape::elements() const { return product(0, rank_); }

int64_t Shape::product(int begin, int end) const {
  int64_t result = 1;
  for (int axis = begin; axis < end; ++axis) result *= (*this)[axis];
  return result;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ","));
}

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", name_of(type.dtype), to_string(type.shape));
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view op) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int n = 1; n <= rank; ++n) {
    const int64_t in_a = n <= a.rank() ? a.back(n) : 1;
    const int64_t in_b = n <= b.rank() ? b.back(n) : 1;
    user_check(in_a == in_b || in_a == 1 || in_b == 1, "[{}] shapes {} and {} do not broadcast", op,
               to_string(a), to_string(b));
    dims[static_cast<size_t>(rank - n)] = in_a == 1 ? in_b : in_a;
  }
  return Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
}

}  // namespace thimble
