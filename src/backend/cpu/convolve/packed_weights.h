// Weights [O,kH,kW,I] of a convolution, in any storage type, brought into the layout that a oneDNN
// primitive likes best, in f32 or as they are; and gradients brought back. The copy is a thousandth
// of a convolution's work, and a second copy of all weights would cost memory for a whole step.
#pragma once

#include "backend/cpu/convolve/convolution.h"

namespace thimble {

class PackedWeights {
 public:
  PackedWeights() = default;
  // `turned`: inputs and outputs exchanged, kernels turned by 180 degrees, as the data gradient of
  // a convolution of stride 1 reads them. `block` is all of the convolution, or one with fewer
  // outputs (turned: fewer inputs), of which one block after the other is packed. `layout` says
  // which type they have when packed: f32, or `storage`. Throws dnnl::error for layouts that it
  // does not know.
  PackedWeights(const Convolution& all, const Convolution& block, DType storage,
                const dnnl::memory::desc& layout, bool turned);

  // Of the packed form; 0 where the weights can be used as they are.
  size_t bytes() const { return in_place_ ? 0 : bytes_; }
  // The block that begins at channel `first`, as the primitive reads it, in `room` or where it is.
  const void* pack(const TensorRef& weights, int64_t first, std::byte* room);
  // Writes (or adds) a packed gradient of 16-bit weights, which is f32, to where it belongs.
  void unpack(const float* packed, const TensorRef& gradient, int64_t first, bool add) const;

 private:
  template <class Number, class Read>
  void place_row(const Read& read, Number* to) const;
  template <class Body>
  void for_each_row(int64_t first, const Body& body) const;

  Convolution c_ = {};     // of a block
  int64_t row_pitch_ = 0;  // elements from one row along I to the next
  bool turned_ = false;
  bool in_place_ = false;
  bool widens_ = false;
  size_t bytes_ = 0;
  bool padded_ = false;
  DnnlCall reorder_;  // where the library can do it: f32, not turned
  // Where index i along an axis is; offsets of the axes add up.
  std::vector<int64_t> group_at_, out_at_, in_at_, h_at_, w_at_;
  bool in_sixteens_ = false;  // 16 neighbours along I are neighbours when packed
};

}  // namespace thimble
