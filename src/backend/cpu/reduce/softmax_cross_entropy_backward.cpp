// softmax_cross_entropy_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/vector_math.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  const int64_t ignored = args.attrs->integer("ignore_index", -1);
  const double smoothing = args.attrs->real("label_smoothing", 0);
  const float scale = *args.inputs[3].as<const float>() * *args.inputs[4].as<const float>();
  const auto everywhere = static_cast<float>(smoothing / static_cast<double>(columns));
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    const float lse = args.inputs[1].as<const float>()[r];
    const int64_t label = args.inputs[2].as<const int32_t>()[r];
    float* dx = args.outputs[0].as<float>() + r * columns;
    const bool counts = label != ignored && label >= 0 && label < columns;
    const float row_scale = counts ? scale : 0;
    map_range(dx, 0, columns, false,
              [=](int64_t c) { return row_scale * (vector_exp(x[c] - lse) - everywhere); });
    if (counts) dx[label] -= row_scale * static_cast<float>(1 - smoothing);
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  return s.accumulate == 0 ? make_rows(s, loop, 8) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_softmax_cross_entropy_backward{"softmax_cross_entropy_backward", make};

}  // namespace thimble
