// momentum_decay_8bit: without weight decay the codes stay where they are.
#include <cstring>

#include "backend/cpu/update/state_blocks.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 3;

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto momentum = static_cast<float>(args.attrs->real("momentum"));
  const auto decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    const uint8_t* codes = args.inputs[0].as<const uint8_t>() + first;
    uint8_t* next = args.outputs[0].as<uint8_t>() + first;
    const float scale = momentum * args.inputs[1].as<const float>()[block];
    float& next_scale = args.outputs[1].as<float>()[block];
    if (decay == 0) {
      std::memmove(next, codes, static_cast<size_t>(count));
      next_scale = scale;
      continue;
    }
    float m[kCodeBlock], pull[kCodeBlock];
    const float* w = as_f32(args.inputs[2], first, count, pull);
    for (int64_t i = 0; i < count; ++i) pull[i] = decay * w[i];
    decode_block<SignedCode>(codes, scale, count, m);
    for (int64_t i = 0; i < count; ++i) m[i] += pull[i];
    next_scale = encode_block<SignedCode>(m, count, next);
  }
}

}  // namespace

extern const CpuKernel cpu_momentum_decay_8bit{"momentum_decay_8bit",
                                               by_state_blocks<loop, kOwnInputs>};

}  // namespace thimble
