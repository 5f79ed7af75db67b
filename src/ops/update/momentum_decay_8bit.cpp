// momentum_decay_8bit(m u8, scale f32 [blocks], w) -> (m, scale); attrs momentum, weight_decay (0).
// momentum_decay on a momentum in one byte a number (ops/update/block_state.h). Without weight decay the
// scales shrink and the codes stay, so that nothing is lost.
#include "ops/update/block_state.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("momentum_decay_8bit", inputs, 3);
  check_floating("momentum_decay_8bit", "weight", inputs[2]);
  check_block_state("momentum_decay_8bit", "momentum", inputs[0], inputs[1], inputs[2]);
  attrs.real("momentum");
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const float momentum = static_cast<float>(args.attrs->real("momentum"));
  const float decay = static_cast<float>(args.attrs->real("weight_decay", 0));
  with_float_type(args.inputs[2].type.dtype, [&]<class T>(TypeTag<T>) {
    for_each_block(args.inputs[2].elements(), [&](int64_t block, int64_t first, int64_t count) {
      const uint8_t* codes = args.inputs[0].as<uint8_t>() + first;
      const float scale = momentum * args.inputs[1].as<float>()[block];
      uint8_t* next = args.outputs[0].as<uint8_t>() + first;
      float& next_scale = args.outputs[1].as<float>()[block];
      if (decay == 0) {
        std::copy_n(codes, count, next);
        next_scale = scale;
        return;
      }
      StateBlock m;
      decode_block<SignedCode>(codes, scale, count, m.data());
      for (int64_t i = 0; i < count; ++i) {
        m[static_cast<size_t>(i)] += decay * static_cast<float>(args.inputs[2].as<T>()[first + i]);
      }
      next_scale = encode_block<SignedCode>(m.data(), count, next);
    });
  });
}

Work work(const Signature& s) {
  const bool decays = s.attrs.real("weight_decay", 0) != 0;
  return {(decays ? 25 : 1) * static_cast<double>(s.inputs[0].elements()), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const double decay : {0.0, 1e-2}) {
    const Shape w = {16, 3, 3, 8};
    result.push_back({.inputs = {{w, DType::u8}, {{5}}, {w}},
                      .attrs = {{"momentum", 0.9}, {"weight_decay", decay}},
                      .fills = {kAnyCodes, kAnyScales}});
  }
  return result;
}

}  // namespace

extern const OpDef op_momentum_decay_8bit{
    .name = "momentum_decay_8bit",
    .summary = "what heavy-ball SGD keeps of a momentum in 8 bits, and the pull of weight decay",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
