// momentum_fold_8bit: block by block, decoded, added to and encoded in cache.
#include "backend/cpu/update/state_blocks.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const RandomStream random(args.inputs[3].as<const int64_t>(), args.attrs->integer("stream"));
  const float factor = gradient_factor(args, kOwnInputs);
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    float room[kCodeBlock], share[kCodeBlock];
    const float* gradient = as_f32(args.inputs[2], first, count, room);
    for (int64_t i = 0; i < count; ++i) share[i] = factor * gradient[i];
    fold_block(args, random, block, share);
  }
}

}  // namespace

extern const CpuKernel cpu_momentum_fold_8bit{"momentum_fold_8bit",
                                              by_state_blocks<loop, kOwnInputs>};

}  // namespace thimble
