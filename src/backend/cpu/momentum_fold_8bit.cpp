// momentum_fold_8bit: block by block, decoded, added to and encoded in cache.
#include "backend/cpu/state_blocks.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const RandomStream random(args.inputs[3].as<const int64_t>(), args.attrs->integer("stream"));
  for (int64_t block = begin; block < end; ++block) {
    const auto [first, count] = BlockRange(block, args.inputs[0].elements());
    const float* gradient = args.inputs[2].as<const float>() + first;
    float m[kCodeBlock];
    decode_block<SignedCode>(args.inputs[0].as<const uint8_t>() + first,
                             args.inputs[1].as<const float>()[block], count, m);
    for (int64_t i = 0; i < count; ++i) m[i] += gradient[i];
    uint32_t words[kCodeBlock];
    block_words(random, first, words);
    args.outputs[1].as<float>()[block] =
        encode_block<SignedCode>(m, count, args.outputs[0].as<uint8_t>() + first,
                                 [&words](int64_t i) { return uniform_of(words[i]); });
  }
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_state_blocks(s, loop); }

}  // namespace

extern const CpuKernel cpu_momentum_fold_8bit;
const CpuKernel cpu_momentum_fold_8bit{"momentum_fold_8bit", make};

}  // namespace thimble
