// encode_groups: a group is a row; every thread a range of them.
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/pointwise/random_words.h"
#include "backend/cpu/rows.h"
#include "base/number/group_quantization.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const RandomStream random(args.inputs[1].as<const int64_t>(), args.attrs->integer("stream"));
  const int64_t elements = args.inputs[0].elements();
  const int64_t bits = args.attrs->integer("bits");
  const bool zeros = args.attrs->integer("zeros", 0) != 0;
  for (int64_t group = begin; group < end; ++group) {
    const int64_t first = group * kCodeGroup;
    uint32_t words[kCodeGroup];
    for (int64_t at = 0; at < kCodeGroup; at += kRandomGroup) {
      random_words(random, (first + at) / kRandomGroup, words + at);
    }
    CodeRange range;
    with_group_code(
        bits, zeros, [&](auto kBits, auto kZeros) __attribute__((always_inline)) {
          range = encode_group<kBits, kZeros>(
              args.inputs[0].as<const float>() + first, std::min(kCodeGroup, elements - first),
              args.outputs[0].as<uint8_t>() + packed_bytes(first, kBits),
              [&words](int64_t i) { return uniform_of(words[i]); });
        });
    args.outputs[1].as<float>()[2 * group] = range.low;
    args.outputs[1].as<float>()[2 * group + 1] = range.step;
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const int64_t elements = s.inputs[0].elements();
  const bool fits = s.inputs[0].dtype == DType::f32 && elements > 0;
  return fits ? std::make_unique<UnitKernel>(code_groups(elements), 8 * kCodeGroup, loop) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_encode_groups{"encode_groups", make};

}  // namespace thimble
