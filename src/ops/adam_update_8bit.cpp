// adam_update_8bit(w, g, m u8, m_scale f32 [blocks], v u8, v_scale f32 [blocks], lr f32 [1],
//                  step f32 [1]) -> (w, m, m_scale, v, v_scale)
// attrs beta1 (0.9), beta2 (0.999), epsilon (1e-8), weight_decay (0), decoupled (0), stream
// (Builder::next_random_stream).
// adam_update with each moment in one byte a number (ops/block_state.h). The weight moves by the
// moments as they are before they are encoded. A step changes the second moment by a thousandth,
// far less than the distance of two levels: rounded to the nearest it would stand still, so its
// rounding is stochastic, a function of step and stream.
#include <cmath>

#include "base/random_stream.h"
#include "ops/block_state.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("adam_update_8bit", inputs, 8);
  check_floating("adam_update_8bit", "weight", inputs[0]);
  check_type("adam_update_8bit", "gradient", inputs[1], inputs[0]);
  check_block_state("adam_update_8bit", "first moment", inputs[2], inputs[3], inputs[0]);
  check_block_state("adam_update_8bit", "second moment", inputs[4], inputs[5], inputs[0]);
  check_type("adam_update_8bit", "learning rate", inputs[6], {{1}, DType::f32});
  check_type("adam_update_8bit", "step", inputs[7], {{1}, DType::f32});
  user_check(inputs[0].elements() <= kMaxRandomElements,
             "[adam_update_8bit] {} has too many elements", to_string(inputs[0]));
  attrs.integer("stream");
  return {inputs[0], inputs[2], inputs[3], inputs[4], inputs[5]};
}

void reference(const KernelArgs& args) {
  const double beta1 = args.attrs->real("beta1", 0.9);
  const double beta2 = args.attrs->real("beta2", 0.999);
  const double lr = static_cast<double>(*args.inputs[6].as<float>());
  const double step = static_cast<double>(*args.inputs[7].as<float>());
  const double decay = args.attrs->real("weight_decay", 0);
  const bool decoupled = args.attrs->integer("decoupled", 0) != 0;
  const int64_t rng[] = {0, static_cast<int64_t>(step), 0};
  const RandomStream random(rng, args.attrs->integer("stream"));
  with_float_type(args.inputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    const auto real = [](auto value) { return static_cast<Real>(value); };
    const Real shrink = decoupled ? real(1 - lr * decay) : Real{1};
    const Real penalty = decoupled ? Real{0} : real(decay);
    const Real step_size = real(lr / (1 - std::pow(beta1, step)));
    const Real root_correction = real(std::sqrt(1 - std::pow(beta2, step)));
    const Real epsilon = real(args.attrs->real("epsilon", 1e-8));
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock first_moment, second_moment, thresholds;
      decode_block<SignedCode>(args.inputs[2].as<uint8_t>() + first,
                               args.inputs[3].as<float>()[block], count, first_moment.data());
      decode_block<UnsignedCode>(args.inputs[4].as<uint8_t>() + first,
                                 args.inputs[5].as<float>()[block], count, second_moment.data());
      for (int64_t i = 0; i < count; ++i) {
        const size_t at = static_cast<size_t>(i);
        const Real w = widen(args.inputs[0].as<T>()[first + i]);
        const Real g = widen(args.inputs[1].as<T>()[first + i]) + penalty * w;
        const Real m = real(beta1) * real(first_moment[at]) + real(1 - beta1) * g;
        const Real v = real(beta2) * real(second_moment[at]) + real(1 - beta2) * g * g;
        const Real denominator = std::sqrt(v) / root_correction + epsilon;
        store(args.outputs[0].as<T>(), first + i, shrink * w - step_size * m / denominator);
        first_moment[at] = static_cast<float>(m);
        second_moment[at] = static_cast<float>(v);
      }
      args.outputs[2].as<float>()[block] = encode_block<SignedCode>(
          first_moment.data(), count, args.outputs[1].as<uint8_t>() + first);
      random.uniform(first, thresholds);
      args.outputs[4].as<float>()[block] = encode_block<UnsignedCode>(
          second_moment.data(), count, args.outputs[3].as<uint8_t>() + first,
          [&](int64_t i) { return thresholds[static_cast<size_t>(i)]; });
    });
  });
}

Work work(const Signature& s) { return {60 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, int64_t blocks, double step, Attrs attrs) {
    const TensorType codes = {w, DType::u8}, scales = {{blocks}};
    result.push_back({.inputs = {{w}, {w}, codes, scales, codes, scales, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                kAnyCodes,
                                kAnyScales,
                                kAnyCodes,
                                kAnyScales,
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({5, 7}, 1, 1, {{"stream", int64_t{1}}});
  add({333}, 2, 10, {{"weight_decay", 0.01}, {"stream", int64_t{2}}});
  add({16, 3, 3, 8}, 5, 1000,
      {{"weight_decay", 0.1}, {"decoupled", int64_t{1}}, {"beta2", 0.95}, {"stream", int64_t{77}}});
  return result;
}

}  // namespace

extern const OpDef op_adam_update_8bit;
const OpDef op_adam_update_8bit{
    .name = "adam_update_8bit",
    .summary = "one step of Adam or AdamW, moments in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}, {3, 4}, {4, 5}},
};

}  // namespace thimble
