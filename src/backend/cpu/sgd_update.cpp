// sgd_update: one pass over weight, gradient and momentum.
#include "backend/cpu/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto momentum = static_cast<float>(args.attrs->real("momentum"));
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  const bool nesterov = args.attrs->integer("nesterov", 0) != 0;
  const float rate = *args.inputs[3].as<const float>();
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* m_before = args.inputs[2].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* m_after = args.outputs[1].as<float>();
  // The step is along share_d * d + share_m * m.
  const float share_d = nesterov ? 1.0f : 0.0f, share_m = nesterov ? momentum : 1.0f;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float w = w_before[i];
    const float d = gradient[i] + decay * w;
    const float m = momentum * m_before[i] + d;
    w_after[i] = w - rate * (share_d * d + share_m * m);
    m_after[i] = m;
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop); }

}  // namespace

extern const CpuKernel cpu_sgd_update;
const CpuKernel cpu_sgd_update{"sgd_update", make};

}  // namespace thimble
