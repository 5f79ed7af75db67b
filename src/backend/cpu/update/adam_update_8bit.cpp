// adam_update_8bit: block by block, decoded, moved and encoded in cache.
#include <cmath>

#include "backend/cpu/update/state_blocks.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 8;

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const double beta1 = args.attrs->real("beta1", 0.9), beta2 = args.attrs->real("beta2", 0.999);
  const double rate = static_cast<double>(*args.inputs[6].as<const float>());
  const double step = static_cast<double>(*args.inputs[7].as<const float>());
  const double decay = args.attrs->real("weight_decay", 0);
  const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
  const auto keep1 = static_cast<float>(beta1), take1 = static_cast<float>(1 - beta1);
  const auto keep2 = static_cast<float>(beta2), take2 = static_cast<float>(1 - beta2);
  const auto shrink = static_cast<float>(decoupled ? 1 - rate * decay : 1.0);
  const auto penalty = static_cast<float>(decoupled ? 0.0 : decay);
  const auto step_size = static_cast<float>(rate / (1 - std::pow(beta1, step)));
  const auto correction = static_cast<float>(std::sqrt(1 - std::pow(beta2, step)));
  const auto epsilon = static_cast<float>(args.attrs->real("epsilon", 1e-8));
  const float factor = gradient_factor(args, kOwnInputs);
  const int64_t rng[] = {0, static_cast<int64_t>(step), 0};
  const RandomStream random(rng, args.attrs->integer("stream"));
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    float w_room[kCodeBlock], g_room[kCodeBlock];
    const float* w_before = as_f32(args.inputs[0], first, count, w_room);
    const float* gradient = as_f32(args.inputs[1], first, count, g_room);
    float* w_after = room_for(args.outputs[0], first, w_room);
    float first_moment[kCodeBlock], second_moment[kCodeBlock];
    decode_block<SignedCode>(args.inputs[2].as<const uint8_t>() + first,
                             args.inputs[3].as<const float>()[block], count, first_moment);
    decode_block<UnsignedCode>(args.inputs[4].as<const uint8_t>() + first,
                               args.inputs[5].as<const float>()[block], count, second_moment);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float w = w_before[i];
      const float g = gradient[i] * factor + penalty * w;
      const float m = keep1 * first_moment[i] + take1 * g;
      const float v = keep2 * second_moment[i] + take2 * g * g;
      w_after[i] = shrink * w - step_size * m / (__builtin_sqrtf(v) / correction + epsilon);
      first_moment[i] = m;
      second_moment[i] = v;
    }
    commit_weights(args, w_after, first, count);
    args.outputs[2].as<float>()[block] =
        encode_block<SignedCode>(first_moment, count, args.outputs[1].as<uint8_t>() + first);
    uint32_t words[kCodeBlock];
    block_words(random, first, words);
    args.outputs[4].as<float>()[block] =
        encode_block<UnsignedCode>(second_moment, count, args.outputs[3].as<uint8_t>() + first,
                                   [&words](int64_t i) { return uniform_of(words[i]); });
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_state_blocks(s, loop, kOwnInputs); }

}  // namespace

extern const CpuKernel cpu_adam_update_8bit;
const CpuKernel cpu_adam_update_8bit{"adam_update_8bit", make};

}  // namespace thimble
