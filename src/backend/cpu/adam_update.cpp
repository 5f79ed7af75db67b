// adam_update: one pass over weight, gradient and both moments.
#include <cmath>

#include "backend/cpu/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const double beta1 = args.attrs->real("beta1", 0.9), beta2 = args.attrs->real("beta2", 0.999);
  const double rate = static_cast<double>(*args.inputs[4].as<const float>());
  const double step = static_cast<double>(*args.inputs[5].as<const float>());
  const double decay = args.attrs->real("weight_decay", 0);
  const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
  const auto keep1 = static_cast<float>(beta1), take1 = static_cast<float>(1 - beta1);
  const auto keep2 = static_cast<float>(beta2), take2 = static_cast<float>(1 - beta2);
  const auto shrink = static_cast<float>(decoupled ? 1 - rate * decay : 1.0);
  const auto penalty = static_cast<float>(decoupled ? 0.0 : decay);
  const auto step_size = static_cast<float>(rate / (1 - std::pow(beta1, step)));
  const auto correction = static_cast<float>(std::sqrt(1 - std::pow(beta2, step)));
  const auto epsilon = static_cast<float>(args.attrs->real("epsilon", 1e-8));
  const float* gradient = args.inputs[1].as<const float>();
  const float* w_before = args.inputs[0].as<const float>();
  const float* m_before = args.inputs[2].as<const float>();
  const float* v_before = args.inputs[3].as<const float>();
  float* w_after = args.outputs[0].as<float>();
  float* m_after = args.outputs[1].as<float>();
  float* v_after = args.outputs[2].as<float>();
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const float w = w_before[i];
    const float g = gradient[i] + penalty * w;
    const float m = keep1 * m_before[i] + take1 * g;
    const float v = keep2 * v_before[i] + take2 * g * g;
    w_after[i] = shrink * w - step_size * m / (__builtin_sqrtf(v) / correction + epsilon);
    m_after[i] = m;
    v_after[i] = v;
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop, 4); }

}  // namespace

extern const CpuKernel cpu_adam_update;
const CpuKernel cpu_adam_update{"adam_update", make};

}  // namespace thimble
