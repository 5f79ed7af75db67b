// sgd_folded_update_8bit(w, m u8, scale f32 [blocks], lr f32 [1]) -> w - lr m: the end of a step
// whose gradients are in the momentum already, in one byte a number (ops/block_state.h).
#include "ops/block_state.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("sgd_folded_update_8bit", inputs, 4);
  check_floating("sgd_folded_update_8bit", "weight", inputs[0]);
  check_block_state("sgd_folded_update_8bit", "momentum", inputs[1], inputs[2], inputs[0]);
  check_type("sgd_folded_update_8bit", "learning rate", inputs[3], {{1}, DType::f32});
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const Real lr = static_cast<Real>(*args.inputs[3].as<float>());
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock m;
      decode_block<SignedCode>(args.inputs[1].as<uint8_t>() + first,
                               args.inputs[2].as<float>()[block], count, m.data());
      for (int64_t i = 0; i < count; ++i) {
        store(args.outputs[0].as<T>(), first + i,
              widen(args.inputs[0].as<T>()[first + i]) -
                  lr * static_cast<Real>(m[static_cast<size_t>(i)]));
      }
    });
  });
}

Work work(const Signature& s) { return {4 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const Shape w = {16, 3, 3, 8};
  return {{.inputs = {{w}, {w, DType::u8}, {{5}}, {{1}}},
           .fills = {{}, kAnyCodes, kAnyScales, {Fill::Kind::uniform, 0.01, 0.1}}}};
}

}  // namespace

extern const OpDef op_sgd_folded_update_8bit;
const OpDef op_sgd_folded_update_8bit{
    .name = "sgd_folded_update_8bit",
    .summary = "a step along a momentum in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
