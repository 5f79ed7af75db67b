// sgd_update_8bit(w, g, m u8, scale f32 [blocks], lr f32 [1], ...) -> (w, m, scale); attrs
// momentum, nesterov (0), weight_decay (0); see ops/update/sgd_step.h, and ops/update/update.h for what may
// follow. sgd_update with its momentum in one byte a number (ops/update/block_state.h). The weight moves
// along the momentum as it is before it is encoded.
#include "ops/update/block_state.h"
#include "ops/update/sgd_step.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 5;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("sgd_update_8bit", inputs, kOwnInputs, attrs);
  check_like_weight("sgd_update_8bit", inputs, 2);
  check_block_state("sgd_update_8bit", "momentum", inputs[2], inputs[3], inputs[0]);
  check_scalars("sgd_update_8bit", inputs, 4, kOwnInputs);
  attrs.real("momentum");
  return {inputs[0], inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&]<class Real>(const UpdateElements<Real>& elements) {
    const SgdStep step(elements, *args.attrs, 4);
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock moved;
      decode_block<SignedCode>(args.inputs[2].as<uint8_t>() + first,
                               args.inputs[3].as<float>()[block], count, moved.data());
      for (int64_t i = 0; i < count; ++i) {
        float& m = moved[static_cast<size_t>(i)];
        const auto after =
            step(elements.read(0, first + i), elements.gradient(first + i), static_cast<Real>(m));
        elements.write(0, first + i, after.w);
        m = static_cast<float>(after.m);
      }
      args.outputs[2].as<float>()[block] =
          encode_block<SignedCode>(moved.data(), count, args.outputs[1].as<uint8_t>() + first);
    });
  });
}

Work work(const Signature& s) { return {30 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  const Shape small = {5, 7}, large = {16, 3, 3, 8};
  const Fill rate = {Fill::Kind::uniform, 0.01, 0.1};
  return {
      {.inputs = {{small}, {small}, {small, DType::u8}, {{1}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"weight_decay", 5e-4}},
       .fills = {{}, {}, kAnyCodes, kAnyScales, rate}},
      {.inputs = {{large}, {large}, {large, DType::u8}, {{5}}, {{1}}},
       .attrs = {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 1e-2}},
       .fills = {{}, {}, kAnyCodes, kAnyScales, rate}},
      with_extras({.inputs = {{large}, {large, DType::f16}, {large, DType::u8}, {{5}}, {{1}}},
                   .attrs = {{"momentum", 0.9}},
                   .fills = {{}, {}, kAnyCodes, kAnyScales, rate}}),
  };
}

}  // namespace

extern const OpDef op_sgd_update_8bit;
const OpDef op_sgd_update_8bit{
    .name = "sgd_update_8bit",
    .summary = "one step of stochastic gradient descent, momentum in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
};

}  // namespace thimble
