// transpose: rows of neighbours where the last axis stays, else tiles that are turned in a cache; f32 by
// oneDNN's reorder.
#include <cstring>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/dnnl.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/shape/strided_rows.h"

namespace thimble {
namespace {

class Reorder final : public Kernel {
 public:
  explicit Reorder(const Signature& s) {
    const Shape& x = s.inputs[0].shape;
    dnnl::memory::dims dims, from, to;
    for (const int64_t axis : s.attrs.integers("perm")) {
      dims.push_back(x[static_cast<int>(axis)]);
      from.push_back(x.product(static_cast<int>(axis) + 1, x.rank()));
    }
    const Shape& y = s.outputs[0].shape;
    for (int axis = 0; axis < y.rank(); ++axis) to.push_back(y.product(axis + 1, y.rank()));
    constexpr auto kFloat = dnnl::memory::data_type::f32;
    move_ = dnnl_reorder(dnnl::engine(dnnl::engine::kind::cpu, 0), {dims, kFloat, from},
                         {dims, kFloat, to}, s.accumulate != 0);
    name = "onednn reorder";
  }
  void run(const KernelArgs& args) override {
    move_.run({args.inputs[0].data, args.outputs[0].data});
  }

 private:
  DnnlCall move_;
};

using Eight = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

// Eight rows of eight numbers become columns.
THIMBLE_INLINE void turn_eight(const uint16_t* x, int64_t x_pitch, uint16_t* y, int64_t y_pitch) {
  Eight a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Eight*>(x + i * x_pitch);
  for (int i = 0; i < 4; ++i) {  // pairs of rows, number by number
    b[2 * i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 8, 1, 9, 2, 10, 3, 11);
    b[2 * i + 1] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int h = 0; h < 2; ++h) {  // fours of rows, pair by pair
    const Eight *low = b + 4 * h, *high = low + 2;
    a[4 * h] = __builtin_shufflevector(low[0], high[0], 0, 1, 8, 9, 2, 3, 10, 11);
    a[4 * h + 1] = __builtin_shufflevector(low[0], high[0], 4, 5, 12, 13, 6, 7, 14, 15);
    a[4 * h + 2] = __builtin_shufflevector(low[1], high[1], 0, 1, 8, 9, 2, 3, 10, 11);
    a[4 * h + 3] = __builtin_shufflevector(low[1], high[1], 4, 5, 12, 13, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = __builtin_shufflevector(a[i], a[4 + i], 0, 1, 2, 3, 8, 9, 10, 11);
    b[2 * i + 1] = __builtin_shufflevector(a[i], a[4 + i], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < 8; ++i) *reinterpret_cast<Eight*>(y + i * y_pitch) = b[i];
}

constexpr int64_t kTile = 64;

// y[j * y_pitch + i] = x[i * x_pitch + j], a tile at a time.
void turn_tile(const uint16_t* x, int64_t x_pitch, int64_t rows, int64_t columns, uint16_t* y,
               int64_t y_pitch) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    int64_t j = 0;
    for (; j + 8 <= columns; j += 8) {
      turn_eight(x + i * x_pitch + j, x_pitch, y + j * y_pitch + i, y_pitch);
    }
    for (; j < columns; ++j) {
      for (int64_t k = i; k < i + 8; ++k) y[j * y_pitch + k] = x[k * x_pitch + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[j * y_pitch + i] = x[i * x_pitch + j];
  }
}

void add_row(DType dtype, const uint16_t* x, int64_t count, uint16_t* y) {
  float from[kTile], to[kTile];
  for (int64_t i = 0; i < count; i += kTile) {
    const int64_t some = std::min(kTile, count - i);
    widen(dtype, x + i, some, from);
    widen(dtype, y + i, some, to);
    for (int64_t j = 0; j < some; ++j) to[j] += from[j];
    narrow(dtype, to, some, y + i);
  }
}

// Of 16-bit numbers. y's rows are walked in its own order: a row is its last axis. Where that is not x's
// last axis, 64 numbers of x's last axis are turned at a time, for 64 of the row.
class Turn final : public Kernel {
 public:
  explicit Turn(const Signature& s) {
    const Shape &x = s.inputs[0].shape, &y = s.outputs[0].shape;
    const Strides of_x = row_major(x);
    Strides from{};
    const std::vector<int64_t>& perm = s.attrs.integers("perm");
    for (size_t axis = 0; axis < perm.size(); ++axis) {
      from[axis] = of_x[static_cast<size_t>(perm[axis])];
    }
    walk_ = StridedRows<2>(y, {from, row_major(y)});
    const auto last = [&](int axis) { return walk_.strides[0][static_cast<size_t>(axis)] == 1; };
    if (walk_.steps[0] != 1 && walk_.count > 1) {
      for (turned_ = walk_.rank - 1; turned_ > 0 && !last(turned_);) --turned_;
      wide_ = walk_.extents[static_cast<size_t>(turned_)];
      y_pitch_ = walk_.strides[1][static_cast<size_t>(turned_)];
      // The other axes, with tiles of the turned one in its place.
      walk_.rows = walk_.rows / wide_ * tiles(wide_);
      walk_.extents[static_cast<size_t>(turned_)] = tiles(wide_);
      for (Strides& strides : walk_.strides) strides[static_cast<size_t>(turned_)] *= kTile;
    }
    parts_ = Parts(walk_.rows, walk_.count * (turned_ < 0 ? 2 : 2 * kTile));
    name = "own";
  }

  void run(const KernelArgs& args) override {
    const DType dtype = args.outputs[0].type.dtype;
    const bool add = args.adds_into(0);
    parts_.run([&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto at = walk_.begin(row);
        const uint16_t* const x = args.inputs[0].as<const uint16_t>() + at[0];
        uint16_t* const y = args.outputs[0].as<uint16_t>() + at[1];
        if (turned_ >= 0) {
          turn(dtype, x, y, std::min(kTile, wide_ - tile_of(row) * kTile), add);
        } else if (add) {
          add_row(dtype, x, walk_.count, y);
        } else {
          std::memcpy(y, x, static_cast<size_t>(walk_.count) * sizeof(uint16_t));
        }
      }
    });
  }

 private:
  static int64_t tiles(int64_t extent) { return (extent + kTile - 1) / kTile; }

  int64_t tile_of(int64_t row) const {
    for (int axis = walk_.rank - 1; axis > turned_; --axis) {
      row /= walk_.extents[static_cast<size_t>(axis)];
    }
    return row % walk_.extents[static_cast<size_t>(turned_)];
  }

  void turn(DType dtype, const uint16_t* x, uint16_t* y, int64_t columns, bool add) const {
    uint16_t tile[kTile * kTile];
    for (int64_t i = 0; i < walk_.count; i += kTile) {
      const int64_t rows = std::min(kTile, walk_.count - i);
      const uint16_t* const from = x + i * walk_.steps[0];
      if (!add) {
        turn_tile(from, walk_.steps[0], rows, columns, y + i, y_pitch_);
        continue;
      }
      turn_tile(from, walk_.steps[0], rows, columns, tile, kTile);
      for (int64_t j = 0; j < columns; ++j) {
        add_row(dtype, tile + j * kTile, rows, y + j * y_pitch_ + i);
      }
    }
  }

  StridedRows<2> walk_;
  int turned_ = -1;  // the axis of the walk that is x's last
  int64_t wide_ = 0, y_pitch_ = 0;
  Parts parts_{0, 0};
};

std::unique_ptr<Kernel> make(const Signature& s) {
  if (!one_stageable_type(s) || s.inputs[0].shape.rank() == 0) return nullptr;
  if (s.outputs[0].dtype != DType::f32) return std::make_unique<Turn>(s);
  return make_if_supported<Reorder>(s);
}

}  // namespace

extern const CpuKernel cpu_transpose{"transpose", make};

}  // namespace thimble
