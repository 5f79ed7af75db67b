// batch_norm: one read and one write of every element.
#include <cmath>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

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
        parts_(rows_, columns_) {
    name = "own";
    workspace = Bytes(columns_ * static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    const float* x = args.inputs[0].as<const float>();
    const float* mean = args.inputs[1].as<const float>();
    const float* var = args.inputs[2].as<const float>();
    const float* gamma = args.inputs[3].as<const float>();
    const float* beta = args.inputs[4].as<const float>();
    float* y = args.outputs[0].as<float>();
    auto* scale = reinterpret_cast<float*>(args.workspace);
    for (int64_t c = 0; c < columns_; ++c) scale[c] = gamma[c] / std::sqrt(var[c] + epsilon_);
    parts_.run([&](int, int64_t begin, int64_t end) {
      const int64_t at = begin * columns_;
      (relu_ ? normalize_relu : normalize)(x + at, end - begin, columns_, mean, scale, beta,
                                           y + at);
    });
  }

 private:
  const int64_t columns_, rows_;
  const bool relu_;
  const float epsilon_;
  const Parts parts_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? std::make_unique<BatchNorm>(s) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_batch_norm;
const CpuKernel cpu_batch_norm{"batch_norm", make};

}  // namespace thimble
