// momentum_fold_8bit(m u8, scale f32 [blocks], g, rng i64 [3] = {seed, step, microbatch})
//   -> (m, scale) with g added; attr stream (Builder::next_random_stream).
// Adds the gradient of a microbatch into a momentum in one byte a number (ops/block_state.h), so
// that the gradient can go at once. It may be far smaller than the distance of two levels: rounding
// is stochastic, and what is added on average is the gradient.
#include "base/random_stream.h"
#include "ops/block_state.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("momentum_fold_8bit", inputs, 4);
  check_floating("momentum_fold_8bit", "gradient", inputs[2]);
  check_block_state("momentum_fold_8bit", "momentum", inputs[0], inputs[1], inputs[2]);
  check_type("momentum_fold_8bit", "rng", inputs[3], {{3}, DType::i64});
  user_check(inputs[2].elements() <= kMaxRandomElements,
             "[momentum_fold_8bit] {} has too many elements", to_string(inputs[2]));
  attrs.integer("stream");
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const RandomStream random(args.inputs[3].as<int64_t>(), args.attrs->integer("stream"));
  with_float_type(args.inputs[2].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_block(args.inputs[2].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock m, thresholds;
      decode_block<SignedCode>(args.inputs[0].as<uint8_t>() + first,
                               args.inputs[1].as<float>()[block], count, m.data());
      for (int64_t i = 0; i < count; ++i) {
        m[static_cast<size_t>(i)] += static_cast<float>(args.inputs[2].as<T>()[first + i]);
      }
      random.uniform(first, thresholds);
      args.outputs[1].as<float>()[block] =
          encode_block<SignedCode>(m.data(), count, args.outputs[0].as<uint8_t>() + first,
                                   [&](int64_t i) { return thresholds[static_cast<size_t>(i)]; });
    });
  });
}

Work work(const Signature& s) { return {50 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape g, int64_t blocks, int64_t stream) {
    result.push_back({.inputs = {{g, DType::u8}, {{blocks}}, {g}, {{3}, DType::i64}},
                      .attrs = {{"stream", stream}},
                      .fills = {kAnyCodes, kAnyScales, {}, {Fill::Kind::labels, 0, 1000}}});
  };
  add({5, 7}, 1, 3);
  add({16, 3, 3, 8}, 5, 77);
  return result;
}

}  // namespace

extern const OpDef op_momentum_fold_8bit;
const OpDef op_momentum_fold_8bit{
    .name = "momentum_fold_8bit",
    .summary = "adds a gradient into a momentum in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
