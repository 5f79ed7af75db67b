// Kernels over 8-bit optimizer state: blocks do not depend on each other
// (base/number/dynamic_quantization.h), so every thread takes a range of them. 16-bit weights and
// gradients are staged block by block.
#pragma once

#include "backend/cpu/pointwise/random_words.h"
#include "backend/cpu/sixteen_bit.h"
#include "backend/cpu/update/update.h"
#include "base/number/dynamic_quantization.h"

namespace thimble {

// The elements [first, first + count) of a block.
struct BlockRange {
  int64_t first, count;
  BlockRange(int64_t block, int64_t elements)
      : first(block * kCodeBlock), count(std::min(kCodeBlock, elements - first)) {}
};

// Random words for the elements of the block that begins with `first`.
THIMBLE_INLINE void block_words(const RandomStream& random, int64_t first, uint32_t* words) {
  for (int64_t at = 0; at < kCodeBlock; at += kRandomGroup) {
    random_words(random, (first + at) / kRandomGroup, words + at);
  }
}

// Adds `share` to a block of the momentum (inputs and outputs 0 and 1) and rounds it at random.
THIMBLE_INLINE void fold_block(const KernelArgs& args, const RandomStream& random, int64_t block,
                               const float* share) {
  const auto [first, count] = BlockRange(block, args.inputs[0].elements());
  float m[kCodeBlock];
  decode_block<SignedCode>(args.inputs[0].as<const uint8_t>() + first,
                           args.inputs[1].as<const float>()[block], count, m);
  for (int64_t i = 0; i < count; ++i) m[i] += share[i];
  uint32_t words[kCodeBlock];
  block_words(random, first, words);
  args.outputs[1].as<float>()[block] =
      encode_block<SignedCode>(m, count, args.outputs[0].as<uint8_t>() + first,
                               [&words](int64_t i) { return uniform_of(words[i]); });
}

// Brings `count` weights of output 0 from `room` to where they belong, rounded as the op says.
inline void commit_weights(const KernelArgs& args, const float* room, int64_t first,
                           int64_t count) {
  if (is_sixteen_bit(args.outputs[0].type.dtype) &&
      args.attrs->text("rounding", "nearest") == "stochastic") {
    finish_stochastically(args, 0, room, first, count);
  } else {
    commit(room, args.outputs[0], first, count);
  }
}

// Blocks [begin, end).
using BlockLoop = void (*)(const KernelArgs& args, int64_t begin, int64_t end);

// Whether a kernel of blocks can run the signature.
inline bool fits_blocks(const Signature& s) {
  return std::ranges::all_of(s.inputs, [](const TensorType& type) {
    return type.elements() > 0 && (!is_floating(type.dtype) || is_stageable(type.dtype));
  });
}

class StateBlocks final : public Kernel {
 public:
  StateBlocks(int64_t elements, BlockLoop loop, size_t own_inputs)
      : loop_(loop), own_inputs_(own_inputs), parts_(code_blocks(elements), 16 * kCodeBlock) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    if (gradient_factor(args, own_inputs_) == 0) return;
    parts_.run([&](int, int64_t begin, int64_t end) { loop_(args, begin, end); });
  }

 private:
  const BlockLoop loop_;
  const size_t own_inputs_;
  const Parts parts_;
};

// A kernel of an op with that many inputs of its own (ops/update/update.h). Null: the reference
// kernel has to do it.
inline std::unique_ptr<Kernel> make_state_blocks(const Signature& s, BlockLoop loop,
                                                 size_t own_inputs) {
  if (!fits_blocks(s)) return nullptr;
  return std::make_unique<StateBlocks>(s.inputs[0].elements(), loop, own_inputs);
}
// The same as CpuKernel::make.
template <BlockLoop kLoop, size_t kOwnInputs>
std::unique_ptr<Kernel> by_state_blocks(const Signature& s) {
  return make_state_blocks(s, kLoop, kOwnInputs);
}

}  // namespace thimble
