// normalize_image: one pass over the bytes.
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t channels = args.inputs[0].type.shape[3];
  const uint8_t* x = args.inputs[0].as<const uint8_t>();
  const float* mean = args.inputs[1].as<const float>();
  const float* inverse_deviation = args.inputs[2].as<const float>();
  float* y = args.outputs[0].as<float>();
  for (int64_t c = 0; c < channels; ++c) {
    const float center = mean[c], scale = inverse_deviation[c];
    for (int64_t i = begin * channels + c; i < end * channels; i += channels) {
      y[i] = (static_cast<float>(x[i]) - center) * scale;
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  return s.outputs[0].dtype == DType::f64 ? nullptr : make_rows(s, loop, 1);
}

}  // namespace

extern const CpuKernel cpu_normalize_image{"normalize_image", make};

}  // namespace thimble
