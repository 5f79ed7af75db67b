// adam_update_8bit(w, g, m u8, m_scale f32 [blocks], v u8, v_scale f32 [blocks], lr f32 [1],
//                  step f32 [1], ...) -> (w, m, m_scale, v, v_scale)
// attrs beta1 (0.9), beta2 (0.999), epsilon (1e-8), weight_decay (0), decoupled (0), stream
// (Builder::next_random_stream); see ops/update/adam_step.h, and ops/update/update.h for what may follow.
// adam_update with each moment in one byte a number (ops/update/block_state.h). The weight moves by the
// moments as they are before they are encoded. A step changes the second moment by a thousandth,
// far less than the distance of two levels: rounded to the nearest it would stand still, so its
// rounding is stochastic, a function of step and stream.
#include "base/random_stream.h"
#include "ops/update/adam_step.h"
#include "ops/update/block_state.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 8;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("adam_update_8bit", inputs, kOwnInputs, attrs);
  check_like_weight("adam_update_8bit", inputs, 2);
  check_block_state("adam_update_8bit", "first moment", inputs[2], inputs[3], inputs[0]);
  check_block_state("adam_update_8bit", "second moment", inputs[4], inputs[5], inputs[0]);
  check_scalars("adam_update_8bit", inputs, 6, kOwnInputs);
  user_check(inputs[0].elements() <= kMaxRandomElements,
             "[adam_update_8bit] {} has too many elements", to_string(inputs[0]));
  attrs.integer("stream");
  return {inputs[0], inputs[2], inputs[3], inputs[4], inputs[5]};
}

void reference(const KernelArgs& args) {
  const int64_t rng[] = {0, static_cast<int64_t>(*args.inputs[7].as<float>()), 0};
  const RandomStream random(rng, args.attrs->integer("stream"));
  run_update(args, kOwnInputs, [&]<class Real>(const UpdateElements<Real>& elements) {
    const AdamStep step(elements, args, 6);
    for_each_block(args.inputs[0].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock first_moment, second_moment, thresholds;
      decode_block<SignedCode>(args.inputs[2].as<uint8_t>() + first,
                               args.inputs[3].as<float>()[block], count, first_moment.data());
      decode_block<UnsignedCode>(args.inputs[4].as<uint8_t>() + first,
                                 args.inputs[5].as<float>()[block], count, second_moment.data());
      for (int64_t i = 0; i < count; ++i) {
        float& m = first_moment[static_cast<size_t>(i)];
        float& v = second_moment[static_cast<size_t>(i)];
        const auto after = step(elements.read(0, first + i), elements.gradient(first + i),
                                static_cast<Real>(m), static_cast<Real>(v));
        elements.write(0, first + i, after.w);
        m = static_cast<float>(after.m);
        v = static_cast<float>(after.v);
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
  Sample mixed = result.back();
  mixed.inputs[1].dtype = DType::f16;
  result.push_back(with_extras(std::move(mixed)));
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
