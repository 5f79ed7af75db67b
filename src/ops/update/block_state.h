// Shared by updates with 8-bit state. The state of a weight is two tensors: u8 codes of the
// weight's shape, and f32 scales, one per block of them (base/number/dynamic_quantization.h). An
// update decodes a block, works on it in f32, and encodes it again.
#pragma once

#include <array>

#include "base/number/dynamic_quantization.h"
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/update/update.h"

namespace thimble {

inline void check_block_state(std::string_view op, std::string_view what, const TensorType& codes,
                              const TensorType& scales, const TensorType& weight) {
  check_type(op, fmt::format("codes of the {}", what), codes, {weight.shape, DType::u8});
  check_type(op, fmt::format("scales of the {}", what), scales,
             {{code_blocks(weight.elements())}, DType::f32});
}

// A block while it is worked on.
using StateBlock = std::array<float, kCodeBlock>;

// Calls body(block, first, count) for the blocks of `elements` numbers; the last may be shorter.
template <class Body>
void for_each_block(int64_t elements, Body&& body) {
  for (int64_t block = 0; block < code_blocks(elements); ++block) {
    const int64_t first = block * kCodeBlock;
    body(block, first, std::min(kCodeBlock, elements - first));
  }
}

// How samples fill the two tensors of a state.
inline constexpr Fill kAnyCodes = {Fill::Kind::bytes};
inline constexpr Fill kAnyScales = {Fill::Kind::uniform, 0.1, 1};

}  // namespace thimble
