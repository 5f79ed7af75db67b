// layer_norm_backward: a row at a time; the gradients of scale and shift are summed along the way.
#include "backend/cpu/normalise/channel_sums.h"
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"

namespace thimble {
namespace {

// Rows [begin, end). dx may be dy.
THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end,
                               double* __restrict dgamma, double* __restrict dbeta) {
  const int64_t columns = args.inputs[0].type.shape.back();
  const float* gamma = args.inputs[3].as<const float>();
  const float share = 1 / static_cast<float>(columns);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    const float* dy = args.inputs[4].as<const float>() + r * columns;
    float* dx = args.outputs[0].as<float>() + r * columns;
    const float mean = args.inputs[1].as<const float>()[r];
    const float rstd = args.inputs[2].as<const float>()[r];
    for (int64_t c = 0; c < columns; ++c) {
      dgamma[c] += static_cast<double>(dy[c] * ((x[c] - mean) * rstd));
      dbeta[c] += static_cast<double>(dy[c]);
    }
    const float mean_d =
        static_cast<float>(row_sum(columns, [=](int64_t c) { return dy[c] * gamma[c]; })) * share;
    const float mean_d_normalized =
        static_cast<float>(row_sum(
            columns, [=](int64_t c) { return dy[c] * gamma[c] * ((x[c] - mean) * rstd); })) *
        share;
    map_range(dx, 0, columns, args.adds_into(0), [=](int64_t c) {
      const float normalized = (x[c] - mean) * rstd;
      return rstd * (dy[c] * gamma[c] - mean_d - normalized * mean_d_normalized);
    });
  }
}

class LayerNormBackward final : public Kernel {
 public:
  explicit LayerNormBackward(const Shape& x)
      : parts_(x.elements() / x.back(), x.back() * 4), sums_(parts_.count(), x.back()) {
    name = "own";
    workspace = sums_.bytes();
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int part, int64_t begin, int64_t end) {
      sums_.clear(args.workspace, part);
      loop(args, begin, end, sums_.first(args.workspace, part), sums_.second(args.workspace, part));
    });
    sums_.write(args.workspace, args, 1);
  }

 private:
  const Parts parts_;
  const ChannelSums sums_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  return all_f32(s) ? std::make_unique<LayerNormBackward>(s.inputs[0].shape) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_layer_norm_backward;
const CpuKernel cpu_layer_norm_backward{"layer_norm_backward", make};

}  // namespace thimble
