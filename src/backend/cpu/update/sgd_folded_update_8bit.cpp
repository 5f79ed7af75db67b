// sgd_folded_update_8bit: block by block, decoded in cache.
#include "backend/cpu/update/state_blocks.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const float rate = *args.inputs[3].as<const float>();
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    float m[kCodeBlock], room[kCodeBlock];
    decode_block<SignedCode>(args.inputs[1].as<const uint8_t>() + first,
                             args.inputs[2].as<const float>()[block], count, m);
    const float* before = as_f32(args.inputs[0], first, count, room);
    float* after = room_for(args.outputs[0], first, room);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) after[i] = before[i] - rate * m[i];
    commit_weights(args, after, first, count);
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_state_blocks(s, loop, kOwnInputs); }

}  // namespace

extern const CpuKernel cpu_sgd_folded_update_8bit;
const CpuKernel cpu_sgd_folded_update_8bit{"sgd_folded_update_8bit", make};

}  // namespace thimble
