#include "backend/cpu/convolve/packed_weights.h"

#include <cstring>

#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {
namespace {

constexpr int64_t kPiece = 256;  // elements of a row that are converted at once

// Offsets of a blocked oneDNN layout. They add up over the axes: place(i, j) = i's + j's.
std::vector<int64_t> offsets_along(const dnnl::memory::desc& desc, int axis) {
  const dnnl_memory_desc_t& d = desc.data;
  const dnnl_blocking_desc_t& blocks = d.format_desc.blocking;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < d.dims[axis]; ++i) {
    int64_t rest = i, place = 0, inner = 1;
    for (int b = blocks.inner_nblks - 1; b >= 0; --b) {
      if (blocks.inner_idxs[b] == axis) {
        place += rest % blocks.inner_blks[b] * inner;
        rest /= blocks.inner_blks[b];
      }
      inner *= blocks.inner_blks[b];
    }
    offsets.push_back(place + rest * blocks.strides[axis]);
  }
  return offsets;
}

}  // namespace

PackedWeights::PackedWeights(const Convolution& all, const Convolution& block, DType storage,
                             const dnnl::memory::desc& layout, bool turned)
    : c_(block), row_pitch_(all.in_c / all.groups), turned_(turned), bytes_(layout.get_size()) {
  const Convolution& c = block;
  const bool as_stored = layout.data_type() == dnnl_type(storage) && storage != DType::f16;
  widens_ = !as_stored;
  in_place_ = as_stored && !turned && layout == c.weights();
  if (in_place_) return;
  if (as_stored && !turned) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    reorder_ = dnnl_reorder(engine, c.weights(), layout, false);
    return;
  }
  if (layout.data.format_kind != dnnl_blocked || layout.data.offset0 != 0) {
    throw dnnl::error(dnnl_unimplemented, "weights in an unknown layout");
  }
  const int first = c.groups == 1 ? 0 : 1;
  group_at_ = first == 1 ? offsets_along(layout, 0) : std::vector<int64_t>{0};
  out_at_ = offsets_along(layout, first + (turned ? 1 : 0));
  in_at_ = offsets_along(layout, first + (turned ? 0 : 1));
  h_at_ = offsets_along(layout, first + 2);
  w_at_ = offsets_along(layout, first + 3);
  in_sixteens_ = in_at_.size() % 16 == 0;
  for (size_t i = 0; i < in_at_.size(); ++i) {
    if (i % 16 != 0 && in_at_[i] != in_at_[i - 1] + 1) in_sixteens_ = false;
  }
  const size_t number = as_stored ? static_cast<size_t>(size_of(storage)) : sizeof(float);
  padded_ = bytes_ != c.weight_count() * number;
}

// Calls body(first element in our layout, offset when packed) for the rows along I, on all threads.
template <class Body>
void PackedWeights::for_each_row(int64_t first, const Body& body) const {
  const int64_t taps = c_.kernel_h * c_.kernel_w;
  const int64_t begin_at = turned_ ? first : first * taps * row_pitch_;
  const int64_t in = static_cast<int64_t>(in_at_.size()), out = c_.out_c / c_.groups;
  const Parts parts(c_.out_c, taps * in);
  parts.run([&](int, int64_t begin, int64_t end) {
    int64_t row = begin_at + begin * taps * row_pitch_;
    for (int64_t o = begin; o < end; ++o) {
      const int64_t at_out =
          group_at_[static_cast<size_t>(o / out)] + out_at_[static_cast<size_t>(o % out)];
      for (int64_t h = 0; h < c_.kernel_h; ++h) {
        for (int64_t v = 0; v < c_.kernel_w; ++v, row += row_pitch_) {
          const int64_t to_h = turned_ ? c_.kernel_h - 1 - h : h;
          const int64_t to_v = turned_ ? c_.kernel_w - 1 - v : v;
          body(row, at_out + h_at_[static_cast<size_t>(to_h)] + w_at_[static_cast<size_t>(to_v)]);
        }
      }
    }
  });
}

// Brings a row along I to where it lies when packed: read(first, count) gives numbers of it.
template <class Number, class Read>
void PackedWeights::place_row(const Read& read, Number* to) const {
  const int64_t in = static_cast<int64_t>(in_at_.size());
  for (int64_t begin = 0; begin < in; begin += kPiece) {
    const int64_t count = std::min(kPiece, in - begin);
    const Number* const from = read(begin, count);
    const int64_t* at = in_at_.data() + begin;
    if (in_sixteens_) {
      for (int64_t i = 0; i < count; i += 16) {
        std::memcpy(to + at[i], from + i, 16 * sizeof(Number));
      }
    } else {
      for (int64_t i = 0; i < count; ++i) to[at[i]] = from[i];
    }
  }
}

const void* PackedWeights::pack(const TensorRef& weights, int64_t first, std::byte* room) {
  if (in_place_) return weights.data;
  if (reorder_) {
    reorder_.run({weights.data, room});
    return room;
  }
  if (padded_) std::memset(room, 0, bytes_);
  for_each_row(first, [&](int64_t row, int64_t offset) {
    if (!widens_ && is_sixteen_bit(weights.type.dtype)) {
      const auto read = [&](int64_t begin, int64_t) {
        return weights.as<const uint16_t>() + row + begin;
      };
      place_row(read, reinterpret_cast<uint16_t*>(room) + offset);
      return;
    }
    float piece[kPiece];
    const auto read = [&](int64_t begin, int64_t count) {
      return as_f32(weights, row + begin, count, piece);
    };
    place_row(read, reinterpret_cast<float*>(room) + offset);
  });
  return room;
}

void PackedWeights::unpack(const float* packed, const TensorRef& gradient, int64_t first,
                           bool add) const {
  const int64_t in = static_cast<int64_t>(in_at_.size());
  for_each_row(first, [&](int64_t row, int64_t offset) {
    float piece[kPiece];
    for (int64_t begin = 0; begin < in; begin += kPiece) {
      const int64_t count = std::min(kPiece, in - begin);
      if (add) widen(gradient, row + begin, count, piece);
      const int64_t* at = in_at_.data() + begin;
      const float* from = packed + offset;
      for (int64_t i = 0; i < count; ++i) piece[i] = (add ? piece[i] : 0) + from[at[i]];
      narrow(piece, gradient, row + begin, count);
    }
  });
}

}  // namespace thimble
