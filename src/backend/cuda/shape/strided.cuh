// Walks over tensors whose elements are not met in storage order, `packs` of neighbours at a time.
// The geometry goes to the kernel by value; axes that lie behind each other in every tensor are
// merged first, so that few divisions are left.
#pragma once

#include <cstdint>
#include <limits>

#include "base/number/shape.h"

namespace thimble {

// Axis 0 is the outermost. Strides are in elements, for a step of one along the axis; the innermost
// axis counts packs.
template <int kTensors>
struct Strided {
  int rank = 0;
  uint32_t extent[Shape::kMaxRank] = {};
  int64_t stride[kTensors][Shape::kMaxRank] = {};
  uint32_t packs = 0;

  // Where pack `pack` begins in each tensor.
  __device__ void locate(uint32_t pack, int64_t (&at)[kTensors]) const {
#pragma unroll
    for (int k = 0; k < kTensors; ++k) at[k] = 0;
    uint32_t rest = pack;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const uint32_t outer = axis == 0 ? 0 : rest / extent[axis];
      const uint32_t here = rest - outer * extent[axis];
#pragma unroll
      for (int k = 0; k < kTensors; ++k) at[k] += here * stride[k][axis];
      rest = outer;
    }
  }
};

// An unmerged axis list: extents with the stride of each tensor.
template <int kTensors>
class StridedAxes {
 public:
  // From the outermost to the innermost.
  void add(int64_t extent, const int64_t (&stride)[kTensors]) {
    if (extent == 1) return;
    if (rank_ > 0 && continues(extent, stride)) {
      extent_[rank_ - 1] *= extent;
      for (int k = 0; k < kTensors; ++k) stride_[k][rank_ - 1] = stride[k];
      return;
    }
    extent_[rank_] = extent;
    for (int k = 0; k < kTensors; ++k) stride_[k][rank_] = stride[k];
    ++rank_;
  }

  int rank() const { return rank_; }
  int64_t extent(int axis) const { return extent_[axis]; }
  int64_t stride(int tensor, int axis) const { return stride_[tensor][axis]; }

  // Whether `pack` neighbours of the innermost axis are neighbours, or one element, in every
  // tensor, and packs begin at multiples of it.
  bool packs_of(int64_t pack) const {
    if (rank_ == 0 || extent_[rank_ - 1] % pack != 0) return false;
    for (int k = 0; k < kTensors; ++k) {
      const int64_t inner = stride_[k][rank_ - 1];
      if (inner != 0 && inner != 1) return false;
      for (int axis = 0; inner == 1 && axis < rank_ - 1; ++axis) {
        if (stride_[k][axis] % pack != 0) return false;
      }
    }
    return true;
  }

  // For packs of `pack` elements. `packs` is 0 when there are too many to count.
  Strided<kTensors> geometry(int64_t pack) const {
    Strided<kTensors> result;
    result.rank = rank_;
    int64_t packs = 1;
    for (int axis = 0; axis < rank_; ++axis) {
      const bool inner = axis == rank_ - 1;
      const int64_t extent = inner ? extent_[axis] / pack : extent_[axis];
      result.extent[axis] = static_cast<uint32_t>(extent);
      for (int k = 0; k < kTensors; ++k) {
        result.stride[k][axis] = stride_[k][axis] * (inner ? pack : 1);
      }
      packs *= extent;
    }
    if (packs <= std::numeric_limits<uint32_t>::max()) result.packs = static_cast<uint32_t>(packs);
    return result;
  }

 private:
  bool continues(int64_t extent, const int64_t (&stride)[kTensors]) const {
    bool result = true;
    for (int k = 0; k < kTensors; ++k) {
      result = result && stride_[k][rank_ - 1] == stride[k] * extent;
    }
    return result;
  }

  int rank_ = 0;
  int64_t extent_[Shape::kMaxRank] = {};
  int64_t stride_[kTensors][Shape::kMaxRank] = {};
};

}  // namespace thimble
