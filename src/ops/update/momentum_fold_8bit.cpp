// momentum_fold_8bit(m u8, scale f32 [blocks], g, rng i64 [3] = {seed, step, microbatch}
//                    [, factor f32 [1]]) -> (m, scale) with g added
// attrs stream (Builder::next_random_stream), scaled (ops/update/update.h).
// Adds the gradient of a microbatch into a momentum in one byte a number (ops/update/block_fold.h).
#include "ops/update/block_fold.h"
#include "ops/work.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 4;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("momentum_fold_8bit", inputs, kOwnInputs, attrs);
  check_floating("momentum_fold_8bit", "gradient", inputs[2]);
  check_fold("momentum_fold_8bit", inputs[0], inputs[1], inputs[3], inputs[2], attrs);
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const float factor = factor_of(args, kOwnInputs);
  if (factor == 0) return;
  const RandomStream random(args.inputs[3].as<int64_t>(), args.attrs->integer("stream"));
  with_float_type(args.inputs[2].type.dtype, [&]<class T>(TypeTag<T>) {
    for_each_block(args.inputs[2].elements(), [&](int64_t block, int64_t first, int64_t count) {
      StateBlock share;
      for (int64_t i = 0; i < count; ++i) {
        const float g = static_cast<float>(args.inputs[2].as<T>()[first + i]);
        share[static_cast<size_t>(i)] = factor * g;
      }
      fold_block(args, random, block, share);
    });
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape g, int64_t blocks, int64_t stream) {
    result.push_back({.inputs = {{g, DType::u8}, {{blocks}}, {g}, {{3}, DType::i64}},
                      .attrs = {{"stream", stream}},
                      .fills = {kAnyCodes, kAnyScales, {}, {Fill::Kind::labels, 0, 1000}}});
  };
  add({5, 7}, 1, 3);
  add({16, 3, 3, 8}, 5, 77);
  Sample scaled = result.back();
  scaled.inputs.push_back({{1}});
  scaled.fills.push_back({Fill::Kind::uniform, 0.4, 0.6});
  scaled.attrs.set("scaled", int64_t{1});
  result.push_back(std::move(scaled));
  return result;
}

}  // namespace

extern const OpDef op_momentum_fold_8bit{
    .name = "momentum_fold_8bit",
    .summary = "adds a gradient into a momentum in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<50>,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
