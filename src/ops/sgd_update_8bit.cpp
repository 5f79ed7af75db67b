// sgd_update_8bit(w, g, m u8, scale f32 [blocks], lr f32 [1]) -> (w, m, scale); attrs momentum,
// nesterov (0), weight_decay (0). sgd_update with its momentum in one byte a number
// (ops/block_state.h). The weight moves along the momentum as it is before it is encoded.
#include "ops/block_state.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("sgd_update_8bit", inputs, 5);
  check_floating("sgd_update_8bit", "weight", inputs[0]);
  check_type("sgd_update_8bit", "gradient", inputs[1], inputs[0]);
  check_block_state("sgd_update_8bit", "momentum", inputs[2], inputs[3], inputs[0]);
  check_type("sgd_update_8bit", "learning rate", inputs[4], {{1}, DType::f32});
  attrs.real("momentum");
  return {inputs[0], inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  const bool nesterov = args.attrs->integer("nesterov", 0) != 0;
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const Real momentum = static_cast<Real>(args.attrs->real("momentum"));
    const Real decay = static_cast<Real>(args.attrs->real("weight_decay", 0));
    const Real lr = static_cast<Real>(*args.inputs[4].as<float>());
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock moved;
      decode_block<SignedCode>(args.inputs[2].as<uint8_t>() + first,
                               args.inputs[3].as<float>()[block], count, moved.data());
      for (int64_t i = 0; i < count; ++i) {
        const Real w = widen(args.inputs[0].as<T>()[first + i]);
        const Real d = widen(args.inputs[1].as<T>()[first + i]) + decay * w;
        const Real m = momentum * static_cast<Real>(moved[static_cast<size_t>(i)]) + d;
        store(args.outputs[0].as<T>(), first + i, w - lr * (nesterov ? d + momentum * m : m));
        moved[static_cast<size_t>(i)] = static_cast<float>(m);
      }
      args.outputs[2].as<float>()[block] =
          encode_block<SignedCode>(moved.data(), count, args.outputs[1].as<uint8_t>() + first);
    });
  });
}

Work work(const Signature& s) { return {30 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, int64_t blocks, Attrs attrs) {
    result.push_back({.inputs = {{w}, {w}, {w, DType::u8}, {{blocks}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{}, {}, kAnyCodes, kAnyScales, {Fill::Kind::uniform, 0.01, 0.1}}});
  };
  add({5, 7}, 1, {{"momentum", 0.9}, {"weight_decay", 5e-4}});
  add({16, 3, 3, 8}, 5, {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 1e-2}});
  return result;
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
