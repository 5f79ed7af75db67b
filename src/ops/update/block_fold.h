// The common part of ops that add a gradient into a momentum in 8 bits (ops/update/block_state.h),
// so that the gradient can be freed at once. It may be far smaller than the distance of two levels.
// So rounding is stochastic, and the sum is right on average. Inputs 0 and 1, and the outputs, are
// codes and scales.
#pragma once

#include "base/number/random_stream.h"
#include "ops/update/block_state.h"

namespace thimble {

// `like`: what the momentum is kept of.
inline void check_fold(std::string_view op, const TensorType& codes, const TensorType& scales,
                       const TensorType& rng, const TensorType& like, const Attrs& attrs) {
  check_block_state(op, "momentum", codes, scales, like);
  check_type(op, "rng", rng, {{3}, DType::i64});
  user_check(like.elements() <= kMaxRandomElements, "[{}] {} has too many elements", op,
             to_string(like));
  attrs.integer("stream");
}

// Adds `share` to a block, as many numbers of it as the block has.
inline void fold_block(const KernelArgs& args, const RandomStream& random, int64_t block,
                       const StateBlock& share) {
  const int64_t first = block * kCodeBlock;
  const int64_t count = std::min(kCodeBlock, args.inputs[0].elements() - first);
  StateBlock m, thresholds;
  decode_block<SignedCode>(args.inputs[0].as<uint8_t>() + first, args.inputs[1].as<float>()[block],
                           count, m.data());
  for (int64_t i = 0; i < count; ++i) m[static_cast<size_t>(i)] += share[static_cast<size_t>(i)];
  random.uniform(first, thresholds);
  args.outputs[1].as<float>()[block] =
      encode_block<SignedCode>(m.data(), count, args.outputs[0].as<uint8_t>() + first,
                               [&](int64_t i) { return thresholds[static_cast<size_t>(i)]; });
}

}  // namespace thimble
