// adam_kahan_update(w, g, m, v, c, lr f32 [1], step f32 [1], ...) -> (w, m, v, c): adam_update on
// w + c, where c holds what the rounding of w has left over so far, as in sgd_kahan_update.
#include "ops/update/adam_step.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 7;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_update("adam_kahan_update", inputs, 5, kOwnInputs, attrs);
  return {inputs[0], inputs[2], inputs[3], inputs[4]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const AdamStep step(elements, args, 5);
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const auto wide = elements.read(0, i) + elements.read(4, i);
      const auto after = step(wide, elements.gradient(i), elements.read(2, i), elements.read(3, i));
      elements.write_compensated(3, i, after.w);
      elements.write(1, i, after.m);
      elements.write(2, i, after.v);
    }
  });
}

Work work(const Signature& s) { return {17 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, double step, Attrs attrs) {
    result.push_back({.inputs = {{w, DType::bf16}, {w}, {w}, {w}, {w, DType::bf16}, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                {},
                                {Fill::Kind::uniform, 0.1, 1},
                                {Fill::Kind::zeros},
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({5, 7}, 1, {});
  add({16, 8}, 1000, {{"weight_decay", 0.1}, {"decoupled", int64_t{1}}, {"beta2", 0.95}});
  return result;
}

}  // namespace

extern const OpDef op_adam_kahan_update;
const OpDef op_adam_kahan_update{
    .name = "adam_kahan_update",
    .summary = "adam_update that carries what rounding leaves over",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}, {3, 4}},
    .tolerance = 1e-3,  // c is a small difference of large numbers, rounded to f32 before
};

}  // namespace thimble
