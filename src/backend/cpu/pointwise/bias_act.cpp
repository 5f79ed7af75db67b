// bias_act: one pass.
#include "backend/cpu/pointwise/activation.h"
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  const float* x = args.inputs[0].as<const float>();
  const float* bias = args.inputs[1].as<const float>();
  float* y = args.outputs[0].as<float>();
  with_activation(
      *args.attrs, [&](auto act) __attribute__((always_inline)) {
        for (int64_t at = begin * columns; at < end * columns; at += columns) {
          const float* row = x + at;
          map_range(y + at, 0, columns, false, [=](int64_t c) { return act(row[c] + bias[c]); });
        }
      });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  constexpr uint32_t kBias = 2;
  return make_rows(s, loop, 2, kBias);
}

}  // namespace

extern const CpuKernel cpu_bias_act{"bias_act", make};

}  // namespace thimble
