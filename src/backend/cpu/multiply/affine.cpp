// affine: rows begin as the bias and what is added, and the product adds to them. Results in 16 bits
// are made in f32 a few rows at a time, and rounded once.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/parallel.h"

namespace thimble {
namespace {

constexpr int64_t kRows = 256;  // of a chunk

THIMBLE_FOR_EACH_ISA void add_row(const float* __restrict x, float* __restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i];
}
// y may be x.
THIMBLE_FOR_EACH_ISA void sum_rows(const float* x, const float* __restrict bias, float* y,
                                   int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] + bias[i];
}

class Affine final : public Kernel {
 public:
  explicit Affine(const Signature& s)
      : dtype_(s.inputs[0].dtype),
        columns_(s.inputs[1].shape[0]),
        width_(s.inputs[1].shape[1]),
        rows_(s.outputs[0].elements() / columns_),
        chunk_(dtype_ == DType::f32 ? rows_ : std::min(rows_, kRows)) {
    const auto of = [&](int64_t rows) {
      return Product({.m = rows,
                      .n = columns_,
                      .k = width_,
                      .transpose_b = true,
                      .add = true,
                      .a = dtype_,
                      .b = dtype_});
    };
    whole_ = of(chunk_);
    if (rows_ % chunk_ != 0) rest_ = of(rows_ % chunk_);
    WorkspaceParts parts;
    bias_at_ = parts.take(bytes_of(dtype_ == DType::f32 ? 0 : columns_));
    sums_at_ = parts.take(bytes_of(dtype_ == DType::f32 ? 0 : chunk_ * columns_));
    scratch_at_ = parts.take(std::max(whole_.scratch_bytes(), rest_.scratch_bytes()));
    name = whole_.name();
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    const auto room = [&](int64_t at) { return reinterpret_cast<float*>(args.workspace + at); };
    const float* const bias = as_f32(args.inputs[2], 0, columns_, room(bias_at_));
    const TensorRef& y = args.outputs[0];
    for (int64_t first = 0; first < rows_; first += chunk_) {
      const int64_t rows = std::min(chunk_, rows_ - first);
      float* const sums = room_for(y, first * columns_, room(sums_at_));
      Parts(rows, columns_ * 8).run([&](int, int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          begin_row(args, bias, (first + r) * columns_, sums + r * columns_);
        }
      });
      const auto* const x = args.inputs[0].as<const std::byte>() + first * width_ * size_of(dtype_);
      (rows == chunk_ ? whole_ : rest_)
          .run(x, args.inputs[1].data, sums, args.workspace + scratch_at_);
      if (dtype_ == DType::f32) continue;
      Parts(rows * columns_, 4).run([&](int, int64_t begin, int64_t end) {
        narrow(sums + begin, y, first * columns_ + begin, end - begin);
      });
    }
  }

 private:
  static size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

  void begin_row(const KernelArgs& args, const float* bias, int64_t at, float* row) const {
    if (args.inputs.size() < 4) {
      std::copy_n(bias, columns_, row);
    } else if (dtype_ == DType::f32) {
      sum_rows(args.inputs[3].as<const float>() + at, bias, row, columns_);
    } else {
      widen(args.inputs[3], at, columns_, row);
      add_row(bias, row, columns_);
    }
  }

  const DType dtype_;
  const int64_t columns_, width_, rows_, chunk_;
  Product whole_, rest_;
  int64_t bias_at_ = 0, sums_at_ = 0, scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_affine{"affine", make_if_supported_where<Affine, one_stageable_type>};

}  // namespace thimble
