// Kernels over 8-bit optimizer state: blocks do not depend on each other (base/dynamic_code.h), so
// every thread takes a range of them.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/random_words.h"
#include "base/dynamic_code.h"

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

// Blocks [begin, end).
using BlockLoop = void (*)(const KernelArgs& args, int64_t begin, int64_t end);

class StateBlocks final : public Kernel {
 public:
  StateBlocks(int64_t elements, BlockLoop loop)
      : loop_(loop), parts_(code_blocks(elements), 16 * kCodeBlock) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) { loop_(args, begin, end); });
  }

 private:
  const BlockLoop loop_;
  const Parts parts_;
};

inline std::unique_ptr<Kernel> make_state_blocks(const Signature& s, BlockLoop loop) {
  const bool fits = std::ranges::all_of(s.inputs, [](const TensorType& type) {
    return type.elements() > 0 && (!is_floating(type.dtype) || type.dtype == DType::f32);
  });
  return fits ? std::make_unique<StateBlocks>(s.inputs[0].elements(), loop) : nullptr;
}

}  // namespace thimble
