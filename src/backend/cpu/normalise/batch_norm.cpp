// batch_norm: one read and one write of every element.
#include <cmath>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/staged_rows.h"

namespace thimble {
namespace {

// y may be x.
template <bool kRelu>
THIMBLE_INLINE void map_rows(const float* x, int64_t rows, int64_t columns,
                             const float* __restrict mean, const float* __restrict scale,
                             const float* __restrict beta, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) {
      const float z = (x[c] - mean[c]) * scale[c] + beta[c];
      y[c] = kRelu && z <= 0 ? 0 : z;
    }
  }
}

THIMBLE_FOR_EACH_ISA void normalize(const float* x, int64_t rows, int64_t columns,
                                    const float* mean, const float* scale, const float* beta,
                                    float* y) {
  map_rows<false>(x, rows, columns, mean, scale, beta, y);
}

THIMBLE_FOR_EACH_ISA void normalize_relu(const float* x, int64_t rows, int64_t columns,
                                         const float* mean, const float* scale, const float* beta,
                                         float* y) {
  map_rows<true>(x, rows, columns, mean, scale, beta, y);
}

class BatchNorm final : public Kernel {
 public:
  explicit BatchNorm(const Signature& s)
      : columns_(s.inputs[0].shape.back()),
        rows_(s.inputs[0].elements() / columns_),
        relu_(s.attrs.text("act", "none") == "relu"),
        epsilon_(static_cast<float>(s.attrs.real("epsilon", 1e-5))),
        rows_at_once_(staged_rows(s.inputs[0])),
        parts_(rows_, columns_) {
    name = "own";
    workspace = Bytes((1 + parts_.count() * rows_at_once_) * columns_ *
                      static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    const float* mean = args.inputs[1].as<const float>();
    const float* var = args.inputs[2].as<const float>();
    const float* gamma = args.inputs[3].as<const float>();
    const float* beta = args.inputs[4].as<const float>();
    auto* scale = reinterpret_cast<float*>(args.workspace);
    for (int64_t c = 0; c < columns_; ++c) scale[c] = gamma[c] / std::sqrt(var[c] + epsilon_);
    const auto apply = relu_ ? normalize_relu : normalize;
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* room = scale + columns_ + part * rows_at_once_ * columns_;
      const int64_t step = rows_at_once_ > 0 ? rows_at_once_ : std::max<int64_t>(end - begin, 1);
      for (int64_t row = begin; row < end; row += step) {
        const int64_t rows = std::min(step, end - row), at = row * columns_;
        const float* x = as_f32(args.inputs[0], at, rows * columns_, room);
        float* y = room_for(args.outputs[0], at, room);
        apply(x, rows, columns_, mean, scale, beta, y);
        commit(y, args.outputs[0], at, rows * columns_);
      }
    });
  }

 private:
  const int64_t columns_, rows_;
  const bool relu_;
  const float epsilon_;
  const int64_t rows_at_once_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_batch_norm{"batch_norm", make_where<BatchNorm, normalisable>};

}  // namespace thimble
