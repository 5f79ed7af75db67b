// sgd_folded_update_8bit(w, m u8, scale f32 [blocks], lr f32 [1], ...) -> w - lr m: the end of a
// step whose gradients are in the momentum already, in one byte a number (ops/update/block_state.h). See
// ops/update/update.h for what may follow.
#include "ops/update/block_state.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("sgd_folded_update_8bit", inputs, kOwnInputs, attrs);
  check_like_weight("sgd_folded_update_8bit", inputs, 1);
  check_block_state("sgd_folded_update_8bit", "momentum", inputs[1], inputs[2], inputs[0]);
  check_scalars("sgd_folded_update_8bit", inputs, 3, kOwnInputs);
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&]<class Real>(const UpdateElements<Real>& elements) {
    const Real rate = elements.scalar(3);
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock m;
      decode_block<SignedCode>(args.inputs[1].as<uint8_t>() + first,
                               args.inputs[2].as<float>()[block], count, m.data());
      for (int64_t i = 0; i < count; ++i) {
        const Real moved = rate * static_cast<Real>(m[static_cast<size_t>(i)]);
        elements.write(0, first + i, elements.read(0, first + i) - moved);
      }
    });
  });
}

Work work(const Signature& s) { return {4 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const Shape w = {16, 3, 3, 8};
  const Sample plain = {.inputs = {{w}, {w, DType::u8}, {{5}}, {{1}}},
                        .fills = {{}, kAnyCodes, kAnyScales, {Fill::Kind::uniform, 0.01, 0.1}}};
  return {plain, with_extras(plain)};
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
