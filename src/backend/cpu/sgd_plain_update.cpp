// sgd_plain_update: one pass over weight and gradient.
#include "backend/cpu/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  const float rate = *args.inputs[2].as<const float>();
  map_pairs(args, begin, end, [=](float w, float d) { return w - rate * (d + decay * w); });
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop); }

}  // namespace

extern const CpuKernel cpu_sgd_plain_update;
const CpuKernel cpu_sgd_plain_update{"sgd_plain_update", make};

}  // namespace thimble
