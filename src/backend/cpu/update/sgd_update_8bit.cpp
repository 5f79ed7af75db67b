// sgd_update_8bit: block by block, decoded, moved and encoded in cache.
#include "backend/cpu/update/state_blocks.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 5;

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto momentum = static_cast<float>(args.attrs->real("momentum"));
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  const bool nesterov = args.attrs->integer("nesterov", 0) != 0;
  const float rate = *args.inputs[4].as<const float>();
  const float factor = gradient_factor(args, kOwnInputs);
  // The step is along share_d * d + share_m * m.
  const float share_d = nesterov ? 1.0f : 0.0f, share_m = nesterov ? momentum : 1.0f;
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    float moved[kCodeBlock], w_room[kCodeBlock], g_room[kCodeBlock];
    const float* w_before = as_f32(args.inputs[0], first, count, w_room);
    const float* gradient = as_f32(args.inputs[1], first, count, g_room);
    float* w_after = room_for(args.outputs[0], first, w_room);
    decode_block<SignedCode>(args.inputs[2].as<const uint8_t>() + first,
                             args.inputs[3].as<const float>()[block], count, moved);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float w = w_before[i];
      const float d = gradient[i] * factor + decay * w;
      const float m = momentum * moved[i] + d;
      w_after[i] = w - rate * (share_d * d + share_m * m);
      moved[i] = m;
    }
    commit_weights(args, w_after, first, count);
    args.outputs[2].as<float>()[block] =
        encode_block<SignedCode>(moved, count, args.outputs[1].as<uint8_t>() + first);
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_state_blocks(s, loop, kOwnInputs); }

}  // namespace

extern const CpuKernel cpu_sgd_update_8bit;
const CpuKernel cpu_sgd_update_8bit{"sgd_update_8bit", make};

}  // namespace thimble
