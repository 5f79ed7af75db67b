// momentum_decay: one pass over momentum and weight.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto momentum = static_cast<float>(args.attrs->real("momentum"));
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  map_pairs(args, begin, end, [=](float m, float w) { return momentum * m + decay * w; });
}

}  // namespace

extern const CpuKernel cpu_momentum_decay{"momentum_decay", elementwise<loop>};

}  // namespace thimble
